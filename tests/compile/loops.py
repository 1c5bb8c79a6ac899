#!/usr/bin/env python3
"""Prints what lies in HBM ahead of the backward loop over layers, in it, and behind it.

usage: loops.py CASES.json [--only TEXT] [--timeout S]

One JSON line a case: for each of the three the fullest moment's live bytes and largest buffers [bytes, count, shape, operation].
Behind the loop means the iteration that XLA takes out of it for transfers. A logits' gradient or a stack that was copied whole
shows here where a row's single peak of the backward pass hides it. Run it with the interpreter of server/verifier/environment.sh.
"""
import argparse
import itertools
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../server/verifier"))
import dump  # noqa: E402  pylint: disable=wrong-import-position
import step  # noqa: E402  pylint: disable=wrong-import-position
from dumped import dumped  # noqa: E402  pylint: disable=wrong-import-position

SHOWN_BYTES_FRAC = 0.004


def loops_of(path):
    """(instruction names by computation, bodies of all loops: a loop over microbatches holds those over layers)."""
    names, bodies, now = {}, [], None
    for line in open(path, encoding="utf-8", errors="replace"):
        if (m := re.match(r"(?:ENTRY )?%(\S+) \(", line)) and line.rstrip().endswith("{"):
            now = m.group(1)
            names[now] = []
        elif now and (m := re.match(r"\s+(?:ROOT )?%(\S+) = (.*)", line)):
            names[now].append(m.group(1))
            if body := re.search(r" while\(.*body=%([\w.\-]+)", m.group(2)):
                bodies.append(body.group(1))
    return names, bodies


def fullest(alive, live, order, operations, begin, end):
    top = max(alive[begin:end + 1])
    at = alive.index(top, begin, end + 1)
    merged = {}
    for first, last, row in live:
        if first <= at <= last:
            entry = merged.setdefault((re.sub(r"\{.*", "", row["shape"]), row["op"][-80:]), [0, 0])
            entry[0] += row["size"]
            entry[1] += 1
    large = [[size, count, shape, op] for (shape, op), (size, count) in merged.items() if size > SHOWN_BYTES_FRAC * top]
    return {"live_bytes": top, "operation": operations.get(order[at], "")[-80:], "buffers": sorted(large, reverse=True)}


def profile(folder):
    """What the three stretches of a dumped step hold; None: the step has no backward loop."""
    rows = [r for r in dump.buffers(folder) if r["color"] == "0"]
    order, ranges, _ = dump.schedule(folder)
    operations = dump.program(folder)
    for row in rows:
        row["op"] = operations.get(row["value"].split("{")[0], "").replace("jit(train_step)/", "")
    live = dump.intervals(rows, ranges)
    deltas = [0] * (len(order) + 2)
    for first, last, row in live:
        deltas[first] += row["size"]
        deltas[last + 1] -= row["size"]
    alive = list(itertools.accumulate(deltas[:len(order)]))
    names, bodies = loops_of(dump.file_of(folder, "after_optimizations.txt"))

    def is_of_layers(name):
        return "checkpoint" in operations.get(name, "") and "transpose(" in operations.get(name, "")

    # a forward loop holds some that XLA found in both passes, a loop over microbatches some behind its loops over layers
    shares = {body: sum(map(is_of_layers, names[body])) / len(names[body])
              for body in bodies if names.get(body) and "windowed_dot_general" not in body}
    body = max(shares, key=shares.get, default="")
    if not shares.get(body):
        return None
    position = {name: i for i, name in enumerate(order)}
    inside = [position[name] for name in names[body] if name in position]
    begin, end = min(inside), max(inside)
    behind = [i for i, name in enumerate(order) if i > end and is_of_layers(name) and operations[name].endswith("dot_general")]
    found = {"ahead": (0, begin - 1), "loop": (begin, end), "behind": (end + 1, max(behind, default=end))}
    return {name: fullest(alive, live, order, operations, *places) for name, places in found.items() if places[0] <= places[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("cases")
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=int, default=300)
    options = parser.parse_args()
    prepared = step.prepare()
    for case in json.load(open(options.cases, encoding="utf-8")):
        if options.only in case["id"]:
            found = dumped(case, prepared, options.timeout,
                           lambda end, folder: {"end": end, **((profile(folder) if end == "assigned" else None) or {})})
            print(json.dumps({"id": case["id"], **found}), flush=True)


if __name__ == "__main__":
    main()
