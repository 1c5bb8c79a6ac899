#!/usr/bin/env python3
"""Prints how XLA reckons, einsum by einsum, whether a loop over shards pays (windowed einsum).

usage: einsums.py CASES.json [--only TEXT] [--timeout S]

One JSON line an einsum over a group of devices: what is gathered or added up, how long the multiplication and the transfer
take by XLA's own count, over how many rings, and whether it makes a loop. engine/cost/regime.c reckons the same from
windowed_bytes_per_flop: the bytes of a transfer over one ring in the time of one operation. Run it with the interpreter of
server/verifier/environment.sh.
"""
import argparse
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../server/verifier"))
import step  # noqa: E402  pylint: disable=wrong-import-position
from dumped import dumped  # noqa: E402  pylint: disable=wrong-import-position

LOG = {"TF_CPP_VMODULE": "dot_handler=2", "TPU_VMODULE": "dot_handler=2", "TPU_MIN_LOG_LEVEL": "0", "TPU_STDERR_LOG_LEVEL": "0"}
RECKONED = re.compile(
    r"GetCommunicationMultiplier: (?P<rings>\S+)\n.*?collective: \S+ = (?P<moved>\w+\[[\d,]*\]).*\n"
    r"dot: \S+ = (?P<result>\w+\[[\d,]*\]).*\nnum_partitions: (?P<devices>\d+)\n"
    r"computation_time_in_ms: (?P<multiply_ms>\S+) communication_time_in_ms: (?P<transfer_ms>\S+) .*\n"
    r"lhr_needs_ag: \w+ rhs_needs_ag: \w+\n(?P<whole>.*Overhead outweighs)?")


def reckoned(log):
    for found in RECKONED.finditer(log):
        yield {"moved": found["moved"], "result": found["result"], "devices": int(found["devices"]),
               "rings": float(found["rings"]), "multiply_ms": float(found["multiply_ms"]),
               "transfer_ms": float(found["transfer_ms"]), "windowed": not found["whole"]}


def read_log(_, folder):
    return open(os.path.join(folder, "log"), errors="replace", encoding="utf-8").read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases")
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=int, default=300)
    options = parser.parse_args()
    os.environ.update(LOG)
    prepared = step.prepare()
    for case in json.load(open(options.cases, encoding="utf-8")):
        if options.only in case["id"]:
            for row in reckoned(dumped(case, prepared, options.timeout, read_log)):
                print(json.dumps({"id": case["id"], **row}), flush=True)


if __name__ == "__main__":
    main()
