#!/usr/bin/env python3
"""Compiles training steps with the real MaxText and libtpu, without a TPU, and writes what XLA says of their memory.

usage: compile.py CASES.json OUT.jsonl [--jobs N] [--timeout S] [--only TEXT] [--keep FOLDER] [--whole] [--schedule]

CASES: a JSON list of {"id", "request"} where request is an estimate request ({model, cluster, config, xla_flags}).
OUT: one JSON line a case; ids that it already holds are skipped. --keep leaves XLA's dump of each case in FOLDER/ID.
The step itself is server/verifier/step.py. Run it with the interpreter of server/verifier/environment.sh.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../server/verifier"))
import schedule  # noqa: E402
import step  # noqa: E402

RENAMED = {"fsdp_shard_on_exp": "shard_exp_on_fsdp"}
# Routing that is only random beside expert parallelism changes no shape either.
LEFT_OUT = step.OF_THE_RUN | {"use_random_routing"}
POLL_S = 0.2


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases")
    parser.add_argument("out")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=900)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", default="")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--schedule", action="store_true", help="adds how collectives are scheduled (schedule.py)")
    options = parser.parse_args()
    known, table, versions = step.prepare()
    software = ", ".join(f"{name} {version}" for name, version in versions.items())

    done = {json.loads(line)["id"] for line in open(options.out)} if os.path.exists(options.out) else set()
    waiting = [c for c in json.load(open(options.cases)) if c["id"] not in done and options.only in c["id"]]
    running = []
    while waiting or running:
        while waiting and len(running) < options.jobs:
            case = waiting.pop(0)
            request = case["request"]
            topology = step.topology_of(request["cluster"], table)
            if not topology:
                print(case["id"], "no compile_topology for", request["cluster"], flush=True)
                continue
            args, dropped = step.arguments(request, known, RENAMED, LEFT_OUT)
            args += [f"compile_topology={topology}",
                     f"compile_topology_num_slices={request['cluster'].get('slices', 1)}"]
            flags = [f for f in request.get("xla_flags") or [] if f.startswith("--xla")]
            folder = os.path.join(os.path.abspath(options.keep), case["id"]) if options.keep else tempfile.mkdtemp(prefix="compile-")
            job = step.Job(args, flags, folder, options.timeout, options.whole)
            job.case, job.dropped = case, dropped
            running.append(job)
        time.sleep(POLL_S)
        for job in list(running):
            end = job.poll()
            if not end or (end == "refused" and job.retry()):
                continue
            running.remove(job)
            compiled = job.row(end)
            if job.dropped:
                compiled["keys_left_out"] = job.dropped
            row = {"id": job.case["id"], "request": job.case["request"], "software": software,
                   "date": time.strftime("%Y-%m-%d"), "compiled": compiled}
            if "drawn" in job.case:
                row["drawn"] = job.case["drawn"]
            if options.schedule:
                row["schedule"] = schedule.transfers(job.folder)
            with open(options.out, "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
            print(f"{row['id']}: {compiled['verdict']} {compiled.get('need_bytes_per_device', 0) / 1e9:.2f} GB, "
                  f"{compiled['seconds']} s", *(compiled.get("text") or "").strip().splitlines()[:1], flush=True)
            if not options.keep:
                shutil.rmtree(job.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
