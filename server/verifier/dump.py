"""Reads what XLA dumps of a compiled step: bytes by memory space, buffers by value, and what is alive when.

Times are positions in XLA's flattened schedule. All bytes are per device.
"""
import glob
import itertools
import re

SPACES = {"0": "hbm", "1": "vmem", "2": "smem", "5": "host"}
MOMENTS = ("before", "forward", "loss", "backward", "update")
SHOWN_BYTES_FRAC = 0.0005  # of the peak: smaller buffers are summed up
SHOWN_COUNT = 60
PRODUCT = re.compile(r" (?:dot|convolution)\(|custom_call_target=\"tpu_custom_call\"")  # of matrices; a kernel


def file_of(folder, suffix):
    found = sorted(glob.glob(f"{folder}/*train_step*{suffix}"))
    return found[0] if found else None


def space_bytes(folder):
    """Total bytes of each memory space; empty when XLA wrote no report."""
    path = file_of(folder, "after_optimizations-memory-usage-report.txt")
    totals, name = {}, None
    for line in open(path, errors="replace") if path else ():
        if m := re.match(r"Memory Space: .*\(color=(\d+)\)", line):
            name = SPACES.get(m.group(1))
        elif (m := re.match(r"Total bytes: (\d+)", line)) and name:
            totals[name] = int(m.group(1))
    return totals


def program(folder):
    """{instruction: op_name} of the scheduled program."""
    names = {}
    path = file_of(folder, "after_optimizations.txt")
    for line in open(path, errors="replace") if path else ():
        if m := re.match(r"\s*(?:ROOT )?%(\S+) = ", line):
            op = re.search(r'op_name="([^"]*)"', line)
            names[m.group(1)] = op.group(1) if op else ""
    return names


def holds_step(folder):
    """Whether the compiled program multiplies anything in the loss or its gradient; None where XLA wrote no program.

    Work that the loss does not depend on is removed, in the extreme all of the model: what is left are the optimizer's
    updates, whose products (muon's) are no part of the differentiated function.
    """
    path = file_of(folder, "after_optimizations.txt")
    if not path:
        return None
    with open(path, errors="replace") as lines:
        return any("jvp(" in line and PRODUCT.search(line) for line in lines)


def buffers(folder):
    """Buffers of HBM: {allocation, size, offset, shape, values[], kind: argument|output|constant|temporary|local|other}.

    Local ones belong to computations that are called. Those of a step run on the host (they make the stacks there), so
    these buffers take no HBM, though XLA's report adds them up with the others.

    Values with one allocation and one offset that never live together share a row per value.
    """
    path = file_of(folder, "after_optimizations-buffer-assignment.txt")
    rows, kind, color = [], None, "0"
    for line in open(path, errors="replace") if path else ():
        if m := re.match(r"allocation (\d+): size (\d+)(.*)", line):
            text = m.group(3)
            found = re.search(r"color (\d+)", text)
            color = found.group(1) if found else "0"
            kind = ("argument" if "parameter" in text else "constant" if "constant" in text
                    else "temporary" if "preallocated-temp" in text else "output" if "maybe-live-out" in text
                    else "local" if "thread-local" in text else "other")
            allocation, total = int(m.group(1)), int(m.group(2))
        elif m := re.match(r" value: <\d+ (\S+?)(\{[\d,]*\})?(?: \(phi\))? @(\d+)> \(size=(\d+),offset=(\d+)\): (.*)", line):
            rows.append({"allocation": allocation, "allocation_bytes": total, "kind": kind, "color": color,
                         "value": m.group(1) + (m.group(2) or ""), "size": int(m.group(4)),
                         "offset": int(m.group(5)), "shape": m.group(6)})
    return rows


def schedule(folder):
    """(instruction names in order, {value: (begin, end)}, peak position or None)."""
    path = file_of(folder, "after_optimizations-live-range.txt")
    order, ranges, peak, part = [], {}, None, None
    for line in open(path, errors="replace") if path else ():
        if "InstructionSequence:" in line:
            part = "order"
        elif "BufferLiveRange:" in line:
            part = "ranges"
        elif m := re.match(r"\s*Live ranges at (\d+) \(peak\)", line):
            peak = int(m.group(1))
            break
        elif part == "order" and (m := re.match(r"\s*\d+:(\S+)", line)):
            order.append(m.group(1))
        elif part == "ranges" and (m := re.match(r"\s*(\S+):(\d+)-(\d+)\s*$", line)):
            name = m.group(1)
            ranges[name[:-2] if name.endswith("{}") else name] = (int(m.group(2)), int(m.group(3)))
    return order, ranges, peak


def moments(order, names, sizes, least_bytes):
    """The moment of every position: the matmuls of the layers part the step, those of at least `least_bytes`.

    An iteration that XLA takes out of the loops over layers counts as theirs. Tiles of the vocabulary have a loop too;
    it is not checkpointed, and differentiates inside its body.
    """
    layers = [(i, names.get(name, "")) for i, name in enumerate(order)]
    layers = [(i, op) for i, op in layers if any(word in op for word in ("while/body", "layers", "/checkpoint"))]
    matmuls = [(i, op) for i, op in layers if op.endswith("dot_general") and sizes.get(order[i], 0) >= least_bytes]
    layers = matmuls or layers
    behind = [(i, op) for i, op in layers if "transpose(" in op]
    behind = [i for i, op in behind if "/checkpoint" in op] or [i for i, _ in behind] or [len(order)]
    begin, end = behind[0], behind[-1]
    ahead = [i for i, op in layers if "transpose(" not in op and op.count("jvp(") == 1 and i < begin] or [0]
    return ["before" if i < ahead[0] else "forward" if i <= ahead[-1] else "loss" if i < begin
            else "backward" if i <= end else "update" for i in range(len(order))]


def turned(folder):
    """Whole tensors of four and more dimensions that the step copies into another layout outside its loops:
    [[bytes, shape, layout, layout before], ...], largest first."""
    layouts, found, inside = {}, [], False
    path = file_of(folder, "after_optimizations.txt")
    for line in open(path, errors="replace") if path else ():
        if line.startswith(("%", "ENTRY")):
            inside, layouts = line.startswith("ENTRY"), {}
            continue
        m = re.match(r"\s*(?:ROOT )?%(\S+) = (.*?) ([\w-]+)\((.*)", line)
        if not inside or not m:
            continue
        name, shape, operation, rest = m.groups()
        layouts[name] = shape
        m = re.match(r"(\w+?)(\d+)\[([\d,]+)\]\{([\d,]+)[:}]", shape)
        if operation != "copy" or not m or m.group(3).count(",") < 3:
            continue
        size = int(m.group(2)) // 8
        for count in m.group(3).split(","):
            size *= int(count)
        operand = re.search(r"%([\w.\-]+)", rest)
        before = re.match(r"\w+\[[\d,]+\]\{([\d,]+)", layouts.get(operand.group(1), "")) if operand else None
        found.append([size, f"{m.group(1)}{m.group(2)}[{m.group(3)}]", m.group(4), before.group(1) if before else ""])
    return sorted(found, reverse=True)


def intervals(rows, ranges):
    """(begin, end, buffer) of the temporaries. Values at one offset with one size whose lives touch are one buffer
    (a loop's state and what its body writes into it)."""
    places = {}
    for r in rows:
        if r["kind"] == "temporary" and r["value"] in ranges and r["size"] > 0:
            places.setdefault((r["offset"], r["size"]), []).append((*ranges[r["value"]], r))
    merged = []
    for lives in places.values():
        lives.sort(key=lambda x: (x[0], x[1]))
        begin, end, first = lives[0]
        for b, e, r in lives[1:]:
            if b <= end:
                end = max(end, e)
                if not first["op"] or "dynamic_update_slice" in first["op"]:
                    first = r if r["op"] else first
            else:
                merged.append((begin, end, first))
                begin, end, first = b, e, r
        merged.append((begin, end, first))
    return merged


def _plain(shape):
    return re.sub(r"\{.*", "", shape)


def summary(folder):
    """What a row keeps of a dump: bytes by space, the temporary heap, the peak of each moment, buffers at the peak."""
    spaces = space_bytes(folder)
    rows = [r for r in buffers(folder) if r["color"] == "0"]
    totals = {}
    for r in rows:
        totals.setdefault(r["kind"], {})[r["allocation"]] = r["allocation_bytes"]
    by_kind = {kind: sum(v.values()) for kind, v in totals.items()}
    if "hbm" in spaces:
        spaces["hbm"] -= by_kind.get("local", 0)
    order, ranges, peak = schedule(folder)
    if not rows or not order:
        return {"spaces": spaces}
    names, sizes = program(folder), {}
    for r in rows:
        value = r["value"].split("{")[0]
        r["op"] = names.get(value, "").replace("jit(train_step)/", "")
        sizes[value] = max(r["size"], sizes.get(value, 0))
    always = by_kind.get("argument", 0)
    live = intervals(rows, ranges)
    deltas = [0] * (len(order) + 2)
    for begin, end, r in live:
        deltas[begin] += r["size"]
        deltas[end + 1] -= r["size"]
    alive = list(itertools.accumulate(deltas[:len(order)]))
    top = max(alive)
    at = alive.index(top)
    when = moments(order, names, sizes, SHOWN_BYTES_FRAC * top)
    peaks = {}
    for i, now in enumerate(alive):
        if now > peaks.get(when[i], (-1, 0))[0]:
            peaks[when[i]] = (now, i)
    shown = {}
    for moment, (_, position) in peaks.items():
        merged = {}
        for begin, end, r in live:
            if begin <= position <= end:
                key = (_plain(r["shape"]), r["op"])
                entry = merged.setdefault(key, [0, 0])
                entry[0] += r["size"]
                entry[1] += 1
        cut = SHOWN_BYTES_FRAC * max(1, top)
        large = sorted(((b, n, s, o) for (s, o), (b, n) in merged.items() if b >= cut), key=lambda x: (-x[0], x[2], x[3]))
        shown[moment] = [list(x) for x in large[:SHOWN_COUNT]]
    return {"spaces": spaces, "allocations": by_kind, "argument_bytes": always,
            "heap_bytes": by_kind.get("temporary", 0), "live_peak_bytes": top,
            "peak_moment": when[at], "peak_operation": names.get(order[at], ""),
            "moments": {m: b for m, (b, _) in peaks.items()}, "alive": shown,
            "turned": [t for t in turned(folder) if t[0] >= 0.005 * max(1, top)][:SHOWN_COUNT]}
