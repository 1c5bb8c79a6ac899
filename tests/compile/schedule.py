"""Reads from XLA's dump of a compiled step how its collectives and host transfers are scheduled.

usage: schedule.py ROWS.json... > PAGE     rows of compile.py --schedule, summed by chip

A row is {pass, kind, way, count, bytes, spanned, unspanned}: `count` transfers in the program's text (a loop's body counts
once), `bytes` what they bring in all, `spanned` the median of the matmuls and kernels between start and end, `unspanned`
how many have none. Ways: `sync` (the device waits), `async` (start and end apart, on the TensorCore's queue),
`sparsecore` (the same on a SparseCore), `fusion` (async collective fusion: steps inside other fusions). Windowed einsums
show as async permutes.
"""
import glob
import json
import math
import re
import statistics
import sys

KINDS = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute")
WIDTH = {"pred": 1, "s8": 1, "u8": 1, "f8e4m3fn": 1, "f8e5m2": 1, "bf16": 2, "f16": 2, "f32": 4, "s32": 4, "u32": 4}
INSTRUCTION = re.compile(r"\s+(?:ROOT )?%([\w.\-#]+) = (.*?) ([a-z][\w\-]*)\((.*)")


def _bytes(shape, host=None):
    """Of the largest array in a shape; with `host`, of the largest in host memory (True) or outside (False)."""
    most = 0
    for kind, dims, layout in re.findall(r"\b([a-z]\w*)\[([\d,]*)\](\{[^{}]*\})?", shape):
        if kind in WIDTH and (host is None or ("S(5)" in (layout or "")) == host):
            count = 1
            for d in filter(None, dims.split(",")):
                count *= int(d)
            most = max(most, count * WIDTH[kind])
    return most


def _computations(path):
    """{name: [(instruction, result shape, opcode, rest of the line)]}, and which of them a device runs as they stand."""
    found, scheduled, home = {}, set(), None
    for line in open(path, errors="replace"):
        if line.startswith(("%", "ENTRY")):
            home = line.replace("ENTRY", "").split("(")[0].strip().lstrip("%")
            found[home] = []
            if line.startswith("ENTRY"):
                scheduled.add(home)
            continue
        match = INSTRUCTION.match(line) if home else None
        if match:
            found[home].append(match.groups())
            if match.group(3) in ("while", "call", "conditional"):
                bodies = re.findall(r"(?:body|to_apply)=%?([\w.\-#]+)", match.group(4))
                scheduled.update(b for b in bodies if not b.startswith("called_computation"))  # those run on SparseCores
    return found, scheduled


def _called(rest):
    match = re.search(r"calls=%?([\w.\-#]+)", rest) or re.match(r".*\bto_apply=%?(called_computation[\w.\-#]*)", rest)
    return match.group(1) if match else None


class _Program:
    def __init__(self, path):
        self.computations, self.scheduled = _computations(path)
        self.known = {}

    def inside(self, name):
        """(has a matmul or kernel, {kind of collective: bytes}, custom-call targets) of a computation and what it calls."""
        if name not in self.known:
            self.known[name] = (False, {}, set())
            works, kinds, targets = False, {}, set()
            for _, shape, op, rest in self.computations.get(name, ()):
                target = re.search(r'custom_call_target="([^"]*)"', rest)
                targets.update([target.group(1)] if target else [])
                works = works or op in ("convolution", "dot") or bool(target and target.group(1) == "tpu_custom_call")
                if op in KINDS:
                    kinds[op] = max(kinds.get(op, 0), _bytes(shape))
                deeper = _called(rest)
                if deeper:
                    more = self.inside(deeper)
                    works, targets = works or more[0], targets | more[2]
                    kinds.update(more[1])
            self.known[name] = (works, kinds, targets)
        return self.known[name]


def _part(rest):
    name = re.search(r'op_name="([^"]*)"', rest)
    name = name.group(1) if name else ""
    return "backward" if "transpose(jvp" in name else "forward" if "jvp" in name else "other"


def _transfers(program, name):
    """(pass, kind, way, bytes, matmuls spanned) of one computation, in its order."""
    waiting, chains, work = {}, {}, 0
    for instruction, shape, op, rest in program.computations[name]:
        works, kinds, targets = program.inside(_called(rest)) if _called(rest) else (False, {}, set())
        works = works or op in ("convolution", "dot") or 'custom_call_target="tpu_custom_call"' in rest
        if op in KINDS:
            yield _part(rest), op, "sync", _bytes(shape), 0
        elif op.endswith("-start"):
            kind = op[:-6] if op[:-6] in KINDS else next(iter(kinds), None)
            way = "sparsecore" if 'execution_thread="sparsecore"' in rest else "async"
            if not kind and way == "sparsecore":
                kind = "copy"
            if kind:
                waiting[instruction] = (_part(rest), kind, way, _bytes(shape), work)
            elif "S(5)" in shape:
                waiting[instruction] = (_part(rest), "host", way, _bytes(shape, host=False), work)
        elif op == "async-update":  # where a started one gets its operands
            source = re.match(r"%([\w.\-#]+)", rest)
            if source and source.group(1) in waiting:
                waiting[instruction] = waiting.pop(source.group(1))
        elif op.endswith("-done"):
            source = re.match(r"%?([\w.\-#]+)", rest.split("%", 1)[-1])
            begun = waiting.pop(source.group(1), None) if source else None
            if begun:
                yield (*begun[:4], work - begun[4])
        elif op == "fusion" and kinds and targets & {"AsyncCollectiveStart", "AsyncCollectiveDone"}:
            kind, size = max(kinds.items(), key=lambda item: item[1])
            if "AsyncCollectiveStart" in targets:
                chains.setdefault((kind, size), []).append((_part(rest), work))
            elif chains.get((kind, size)):
                part, since = chains[(kind, size)].pop(0)
                yield part, kind, "fusion", size, work - since
        elif op == "fusion" and kinds and not works:
            kind, size = max(kinds.items(), key=lambda item: item[1])
            yield _part(rest), kind, "sync", size, 0
        work += works


def transfers(folder):
    """The rows of a step's dump; empty when XLA wrote no scheduled program."""
    paths = sorted(glob.glob(f"{folder}/*train_step*after_optimizations.txt"))
    if not paths:
        return []
    program, groups = _Program(paths[0]), {}
    for name in program.scheduled & set(program.computations):
        for part, kind, way, size, spanned in _transfers(program, name):
            groups.setdefault((part, kind, way), []).append((size, spanned))
    return [{"pass": part, "kind": kind, "way": way, "count": len(found), "bytes": sum(size for size, _ in found),
             "spanned": statistics.median(spanned for _, spanned in found),
             "unspanned": sum(spanned == 0 for _, spanned in found)}
            for (part, kind, way), found in sorted(groups.items())]


SWITCHES = ("all_gather", "2d_all_gather", "3d_all_gather", "reduce_scatter", "all_reduce")


def _print_offload(rows):
    """Of one small step under flags of SparseCore offload: how many transfers go which way."""
    print("\n## One step under each flag of SparseCore offload\n\n`fsdp` is the degree: all devices of the slice, so that a group spans\n"
          "two torus axes (v6e) or three, or so many that it spans one (v6e: 8) or two (v5p: 16), tensor taking the others. Flags are\n"
          "`xla_tpu_enable_sparse_core_collective_offload_*`.\nTransfers by way; a flag that moves none of its kind changes nothing on that chip.\n")
    print("| chip | slice | fsdp | flags | libtpu | all-gather | all-reduce | reduce-scatter |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in sorted(rows, key=lambda row: row["id"]):
        if not row["id"].startswith("offload-"):
            continue
        said = [f"{name} {value}" for name in SWITCHES for value in ("true", "false")
                if f"--xla_tpu_enable_sparse_core_collective_offload_{name}={value}" in row["request"]["xla_flags"]]
        ways = {}
        for t in row["schedule"]:
            ways.setdefault(t["kind"], {}).setdefault(t["way"], []).append(t["count"])
        cells = [", ".join(f"{sum(counts)} {way}" for way, counts in sorted(ways.get(kind, {}).items())) or "none"
                 for kind in ("all-gather", "all-reduce", "reduce-scatter")]
        cluster, fsdp = row["request"]["cluster"], row["request"]["config"].get("ici_fsdp_parallelism", -1)
        chips = math.prod(int(edge) for edge in cluster["topology"].split("x"))
        print(f"| {cluster['chip']} | {cluster['topology']} | {fsdp if 0 < fsdp < chips else 'all'} | {', '.join(said) or 'none'} | {row['software'].split()[-1]} | " + " | ".join(cells) + " |")


def _print(rows):
    """The page: per chip, kind and way, what is awaited at once and what runs beside matmuls."""
    groups, steps = {}, {}
    for row in rows:
        chip = row["request"]["cluster"]["chip"]
        steps[chip] = steps.get(chip, 0) + 1
        for t in row["schedule"]:
            groups.setdefault((chip, t["kind"], t["way"]), []).append((row["id"], t))
    print("# How collectives are scheduled\n\nWritten by `make schedule-report` from `tests/compile/schedules.json`: steps that MaxText and libtpu compiled,\n"
          "without a TPU (`compile.py --schedule`). A transfer counts once where it stands in the program, in a loop's body too. `sync`: the\n"
          "device waits. `async`: start and end are apart. `sparsecore`: the same on a SparseCore. `fusion`: steps inside other fusions.\n"
          "*Beside nothing* is the share of the bytes whose start and end have neither matmul nor kernel between them. Permutes are windowed\n"
          "einsums and context rings; `host` is what goes to the host and back.\n")
    print("| chip | kind | way | steps with it | share of the kind's bytes % | beside nothing % | matmuls spanned |")
    print("| --- | --- | --- | --: | --: | --: | --: |")
    for (chip, kind, way), found in sorted(groups.items()):
        of_kind = sum(t["bytes"] for key, rows in groups.items() if key[:2] == (chip, kind) for _, t in rows)
        size = sum(t["bytes"] for _, t in found)
        alone = sum(t["bytes"] * t["unspanned"] / t["count"] for _, t in found)
        spanned = statistics.median(t["spanned"] for _, t in found)
        print(f"| {chip} | {kind} | {way} | {len({i for i, _ in found})} of {steps[chip]} | {100 * size / max(of_kind, 1):.0f} | "
              f"{100 * alone / max(size, 1):.0f} | {spanned:g} |")


if __name__ == "__main__":
    ROWS = [row for path in sys.argv[1:] for row in json.load(open(path, encoding="utf-8"))]
    _print([row for row in ROWS if not row["id"].startswith("offload-")])
    _print_offload(ROWS)
