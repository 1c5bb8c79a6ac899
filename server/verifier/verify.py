#!/usr/bin/env python3
"""Asks MaxText and libtpu for their word on one plan.

usage: verify.py [--whole] [--timeout S] [--keep FOLDER] < PLAN

PLAN: {"cluster": {"chip", "topology", "slices"}, "config": {MaxText key: value}, "xla_flags": [...]}; the configuration is
complete. Standard output gets one JSON object a line: {"stage": ...} at each step forward, and last {"result": ...}. The
program that starts this limits its memory and its time, and ends it when nobody waits any more. Bytes are of one device.
"""
import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time

import parts
import step

POLL_S = 0.2
BUFFERS_SHOWN = 24


def say(words, **members):
    words.write(json.dumps(members) + "\n")
    words.flush()


def buffers_of(found, sizes):
    """What is alive at the peak, largest first, each with the part of the prediction that it belongs to."""
    moment = found.get("peak_moment")
    alive = (found.get("alive") or {}).get(moment) or []
    return [{"bytes": size, "count": count, "shape": shape, "operation": operation[-120:], "at": moment,
             "part": parts.part_of(shape, operation, sizes)} for size, count, shape, operation in alive]


def memory_analysis(log):
    """The bytes that a finished compile reports, by name; {} without."""
    line = re.findall(r"Memory analysis:.*", log)
    return {name: int(value) for name, value in re.findall(r"(\w+)_size_in_bytes=(\d+)", line[-1])} if line else {}


def reason(text):
    """The sentence that says why, out of a message with a stack behind it."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines)[:1500]


def named_keys(text, known):
    """The keys that a refusal of MaxText's checks names, in its order: what it has no word for, or misses."""
    text = re.sub(r"\[type=\w+, input_value=.*", "", text)  # pydantic ends with the whole configuration
    named = re.findall(r"['\"`](\w+)['\"`]", text) + re.findall(r"\b(\w+)=", text)
    return list(dict.fromkeys(key for key in named if key in known))


def judge(job, end, unknown_keys, known=()):
    """The result of a step that has ended. `unknown_keys` were left out; `known` are MaxText's own."""
    row = job.row(end)
    buffers = buffers_of(row, job.about())
    fits = row["verdict"] == "fits"
    checked = row["verdict"] == "refused" and job.stage() == "checking"
    refused_keys = unknown_keys + (named_keys(row["text"], known) if checked else [])
    if refused_keys or job.disabled or row["verdict"] == "refused":
        verdict = "refused"
    else:
        verdict = "compiles" if fits else "does_not_fit" if row["verdict"] == "does_not_fit" else "failed"
    why = []
    if unknown_keys:
        why.append("this MaxText does not know: " + ", ".join(unknown_keys))
    why += [f"libtpu refuses --{flag}=true on this chip" for flag in job.disabled]
    if row["verdict"] == "does_not_fit":
        why.append("XLA needs more than the device has")
    elif row["verdict"] == "timeout":
        why.append(f"not compiled within {job.timeout_s} s")
    elif row["verdict"] in ("refused", "died", "no_step"):
        why.append(reason(row["text"]))
    return {"verdict": verdict, "compiled_hbm_bytes_per_device": row.get("need_bytes_per_device"),
            "compiled_host_bytes_per_device": row.get("host_bytes_per_device"),
            "hbm_limit_bytes_per_device": row.get("limit_bytes_per_device"),
            "argument_bytes_per_device": row.get("argument_bytes"), "heap_bytes_per_device": row.get("heap_bytes"),
            "peak_at": row.get("peak_moment"), "moments": row.get("moments") or {}, "parts": parts.totals(buffers),
            "buffers": buffers[:BUFFERS_SHOWN], "refused_keys": refused_keys, "unknown_flags": job.left_out,
            "refused_flags": job.disabled, "reason": "; ".join(why) or None,
            "whole": memory_analysis(open(os.path.join(job.folder, "log"), errors="replace").read())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--timeout", type=int, default=900)
    parser.add_argument("--keep", default="")
    options = parser.parse_args()
    plan = json.load(sys.stdin)
    words = os.fdopen(os.dup(1), "w")  # what MaxText prints belongs to the log
    os.dup2(2, 1)
    began = time.time()
    say(words, stage="starting", seconds=0)
    known, table, versions = step.prepare()
    result = {}
    topology = step.topology_of(plan["cluster"], table)
    if topology:
        args, unknown_keys = step.arguments(plan, known)
        args += [f"compile_topology={topology}", f"compile_topology_num_slices={plan['cluster'].get('slices', 1)}"]
        flags = [f for f in plan.get("xla_flags") or [] if f.startswith("--xla")]
        folder = os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="tpu-advisor-compile-")
        try:
            job, stage, end = step.Job(args, flags, folder, options.timeout, options.whole), None, None
            while not end or (end == "refused" and job.retry()):
                if job.stage() != stage:
                    stage = job.stage()
                    say(words, stage=stage, seconds=round(time.time() - began))
                time.sleep(POLL_S)
                end = job.poll()
            result = judge(job, end, unknown_keys, known)
        finally:
            if not options.keep:
                shutil.rmtree(folder, ignore_errors=True)
    else:
        result = {"verdict": "failed", "refused_keys": [], "unknown_flags": [], "refused_flags": [], "buffers": [], "parts": [],
                  "reason": "MaxText has no compile_topology for {chip} {topology}".format(**plan["cluster"])}
    result.update(mode="whole" if options.whole else "assign", versions=versions, seconds=round(time.time() - began))
    say(words, result=result)


if __name__ == "__main__":
    main()
