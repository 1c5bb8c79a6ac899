#!/usr/bin/env python3
"""Makes rows of truth of what compile.py wrote.

usage: keep.py OUT.jsonl truth/NAME.json

Adds one row a compiled case, in place of a row of the same id. Cases that ran out of time, did not compile or
hold no step are left out.
"""
import json
import os
import sys

BUFFERS_KEPT = 10
KEPT = ("seconds", "verdict", "need_bytes_per_device", "limit_bytes_per_device", "host_bytes_per_device", "argument_bytes",
        "heap_bytes", "live_peak_bytes", "peak_moment", "moments", "flags_left_out", "flags_refused")


def row_of(found):
    compiled = found["compiled"]
    kept = {name: compiled[name] for name in KEPT if compiled.get(name)}
    kept["host_bytes_per_device"] = compiled["host_bytes_per_device"]
    alive = (compiled.get("alive") or {}).get(compiled.get("peak_moment"), [])
    kept["buffers_at_peak"] = [{"bytes": size, "count": count, "shape": shape, "operation": operation[-80:]}
                               for size, count, shape, operation in alive[:BUFFERS_KEPT]]
    kept["turned"] = [{"bytes": size, "shape": shape, "layout": layout, "layout_before": before}
                      for size, shape, layout, before in compiled.get("turned") or []]
    said = {name: found[name] for name in ("id", "request", "software", "date", "drawn") if name in found}
    return {**said, "compiled": kept}


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    source, target = sys.argv[1:]
    rows = json.load(open(target)) if os.path.exists(target) else []
    new = [row_of(found) for found in map(json.loads, open(source)) if found["compiled"].get("need_bytes_per_device")]
    ids = {row["id"] for row in new}
    rows = [row for row in rows if row["id"] not in ids] + new
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    with open(target, "w", encoding="utf-8") as out:
        out.write(f"[\n{lines}\n]\n")
    print(f"{len(new)} rows, {target} has {len(rows)}")


if __name__ == "__main__":
    main()
