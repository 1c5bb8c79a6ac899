#!/usr/bin/env python3
"""Counts what a compiled step multiplies on one device, beside what the engine says.

usage: flops.py CASES.json [--only TEXT] [--timeout S] [--largest N]

One JSON line a case, {id, request, software, compiled_flops, ratio}: the FLOPs of all matrix products in XLA's final
program, each times the iterations of the loops around it, over the engine's (padding left out); and the N largest products
[flops, times, shape, operation]. Kernels of attention and grouped matmuls are in neither. A ratio above 1 is work that is
done again, below 1 work that XLA spares. Gated delta nets count as kernels of attention do: their products stand in a
shard_map, behind a convolution of each channel. tests/compile/products.json holds such lines, and products.test.mjs the
engine to them. The engine's numbers come from the program named by ADVISOR (build/tpu-advisor otherwise). Run it with the
interpreter of server/verifier/environment.sh.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../server/verifier"))
import dump  # noqa: E402  pylint: disable=wrong-import-position
import step  # noqa: E402  pylint: disable=wrong-import-position
from dumped import dumped  # noqa: E402  pylint: disable=wrong-import-position

UNROLLED = 2  # XLA's windowed einsums do two shards an iteration and count both
TERMS = ("matmul_", "logits", "router", "mtp", "embedding")


def computations_of(path):
    """({name: [(instruction, shape, opcode, the rest)]}, the entry's name)."""
    computations, entry, now = {}, None, None
    for line in open(path, encoding="utf-8", errors="replace"):
        if (m := re.match(r"(ENTRY )?%(\S+) \(", line)) and line.rstrip().endswith("{"):
            now = m.group(2)
            computations[now] = []
            entry = now if m.group(1) else entry
        elif now and (m := re.match(r"\s+(?:ROOT )?%(\S+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)", line)):
            computations[now].append(m.groups())
    return computations, entry


def dims_of(shape):
    m = re.match(r"\w+\[([\d,]*)\]", shape)
    return [int(size) for size in m.group(1).split(",") if size] if m else []


def pairs_of(window, i, inputs, kernel, outputs):
    """Products along one spatial dimension: pairs of kernel and output that meet an element of the input."""
    def at(name, default):
        return window[name].split("x")[i] if name in window else default
    stride, low = int(at("stride", 1)), int(str(at("pad", "0_0")).split("_", maxsplit=1)[0])
    base, spread = int(at("lhs_dilate", 1)), int(at("rhs_dilate", 1))
    met = 0
    for k in range(kernel):
        first = math.ceil((low - k * spread) / stride)
        last = ((inputs - 1) * base + low - k * spread) // stride
        for o in range(max(0, first), min(outputs - 1, last) + 1):
            met += (o * stride - low + k * spread) % base == 0
    return met


def product_flops(output, left, right, rest):
    """Of a matrix product, which TPU programs write as a convolution."""
    of_left, of_right, of_output = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", rest).groups()
    m = re.search(r"window=\{([^}]*)\}", rest)
    window = dict(word.split("=", 1) for word in m.group(1).split()) if m else {}
    groups = re.findall(r"(?:feature|batch)_group_count=(\d+)", rest)
    flops = 2.0 * output[of_output.index("b")] * output[of_output.index("f")] * left[of_left.index("f")]
    for label in filter(str.isdigit, of_left):
        sizes = (left[of_left.index(label)], right[of_right.index(label)], output[of_output.index(label)])
        flops *= pairs_of(window, int(label), *sizes)
    return flops / math.prod(int(group) for group in groups)


def of_delta_net(rest):
    return bool(re.search(r'op_name="[^"]*shard_map|(feature|batch)_group_count=', rest))


def trips_of(computations, body, condition):
    limits = [int(m.group(1)) for _, _, opcode, rest in computations[condition]
              if opcode == "constant" and (m := re.match(r"(\d+)\)", rest))]
    trips = max(limits, default=1)
    return max(1, trips // UNROLLED) if "windowed_dot_general" in body else trips


def products_of(folder):
    """[(flops, times, shape, operation)] of a dumped step."""
    computations, entry = computations_of(dump.file_of(folder, "after_optimizations.txt"))
    found = []

    def walk(name, times):
        shapes = {instruction: shape for instruction, shape, _, _ in computations[name]}
        for _, shape, opcode, rest in computations[name]:
            if opcode == "convolution" and not of_delta_net(rest):
                left, right = re.findall(r"%([\w.\-]+)", rest.split(")")[0])[:2]
                flops = product_flops(dims_of(shape), dims_of(shapes[left]), dims_of(shapes[right]), rest)
                operation = re.search(r'op_name="([^"]*)"', rest)
                found.append((flops * times, times, re.sub(r"\{.*", "", shape), operation.group(1)[-80:] if operation else ""))
            elif opcode == "while":
                body, condition = (re.search(rf"{part}=%([\w.\-]+)", rest).group(1) for part in ("body", "condition"))
                walk(body, times * trips_of(computations, body, condition))
            else:
                for called in re.findall(r"(?:calls|to_apply)=%([\w.\-]+)", rest):
                    walk(called, times)

    walk(entry, 1)
    return found


def engine_flops(request):
    command = [os.environ.get("ADVISOR", "build/tpu-advisor"), "estimate", "-"]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    parts = answer.get("estimate", answer)["time_parts"]
    return sum(part.get("flops_per_device") or 0 for part in parts if part["name"].startswith(TERMS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("cases")
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=int, default=300)
    parser.add_argument("--largest", type=int, default=0)
    options = parser.parse_args()
    prepared = step.prepare()
    software = ", ".join(f"{name} {version}" for name, version in prepared[2].items())
    for case in json.load(open(options.cases, encoding="utf-8")):
        if options.only not in case["id"]:
            continue
        products = dumped(case, prepared, options.timeout,
                          lambda end, folder: products_of(folder) if end == "assigned" else end)
        said = {"id": case["id"], "request": case["request"], "software": software}
        if isinstance(products, str):
            said["end"] = products
        else:
            compiled = sum(product[0] for product in products)
            said.update(compiled_flops=compiled, ratio=round(compiled / engine_flops(case["request"]), 4))
            if options.largest:
                said["largest"] = sorted(products, reverse=True)[:options.largest]
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
