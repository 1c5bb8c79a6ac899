#!/usr/bin/env python3
"""Compiles single operations with the real libtpu, without a TPU, and writes what XLA says each of them costs.

usage: cycles.py OUT_DIR [--chip CHIP] [--only REGEX]

OUT_DIR/CHIP.json, a file a chip: {software, date, chip, rows}. A row is {id, class, shape, vmem_kib, cycles, flops,
hbm_bytes, optimal_s, fusions}: `cycles` is the sum of XLA's `estimated_cycles`, `hbm_bytes` what the operations of the
finished program read and write outside VMEM, `optimal_s` XLA's own roofline, `fusions` its operations one by one (those
without cycles are transfers: XLA counts none for them). One device, so no row holds a collective; on v4 and v5p a device
is both cores. A row that XLA refuses is left out, and named. Run it with the interpreter of server/verifier/environment.sh.
"""
import argparse
import importlib.metadata as metadata
import json
import os
import re
import time

os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost",
                  ALLOW_MULTIPLE_LIBTPU_LOAD="1", TF_CPP_MIN_LOG_LEVEL="2")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from jax.sharding import SingleDeviceSharding  # noqa: E402

# libtpu's name, its chip configuration, the scoped VMEM that published recipes of the generation ask for (None: its default)
CHIPS = {"tpu7x": ("tpu7x:2x2x1", "default", 65536), "v6e": ("v6e:2x2", "default", 65536),
         "v5p": ("v5:2x2x1", "megacore", None), "v5e": ("v5e:2x2", "default", None),
         "v4": ("v4:2x2x1", "megacore", None)}
BYTES = {"pred": 1, "s8": 1, "u8": 1, "f8e4m3fn": 1, "f8e5m2": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2,
         "f32": 4, "s32": 4, "u32": 4, "s64": 8, "u64": 8, "f64": 8}
BF16, F32 = jnp.bfloat16, jnp.float32
# [rows, k, n] of forward projections: small and large streams, both ways through the feed-forward, narrow keys and values,
# odd widths, the head
PROJECTIONS = ((8192, 2048, 8192), (8192, 4096, 4096), (8192, 4096, 1024), (8192, 4096, 14336), (8192, 14336, 4096),
               (16384, 4096, 14336), (2048, 4096, 14336), (512, 4096, 14336), (8192, 8192, 28672), (8192, 28672, 8192),
               (8192, 8192, 1024), (8192, 5120, 13824), (8192, 2880, 2880), (8192, 2304, 9216), (8192, 7168, 1536),
               (8192, 7168, 576), (8192, 512, 16384), (8192, 1536, 24576), (32768, 6144, 6144), (4096, 12288, 49152),
               (2048, 4096, 128256))
# Of these alone on generations whose matmuls are published, and which compile slowly with much scoped VMEM.
FEW = ((8192, 4096, 4096), (8192, 4096, 1024), (8192, 4096, 14336), (512, 4096, 14336), (8192, 8192, 28672), (8192, 2880, 2880),
       (8192, 7168, 1536), (8192, 7168, 576), (8192, 512, 16384))
SQUARES = (512, 1024, 2048, 4096, 8192, 16384)


def shape(dims, dtype=BF16):
    return jax.ShapeDtypeStruct(tuple(dims), dtype)


def product(contract, out):
    """A product that sums in f32; `contract` are the dimensions of each side that are summed."""
    def run(a, b):
        sums = jnp.int32 if a.dtype == jnp.int8 else F32
        return jax.lax.dot_general(a, b, ((contract[:1], contract[1:]), ((), ())), preferred_element_type=sums).astype(out)
    return run


def matmul_rows(chip):
    def one(kind, m, k, n, dtype=BF16, out=BF16):
        name = f"{kind}-{m}x{k}x{n}" + ("" if dtype == BF16 else f"-{jnp.dtype(dtype).name}") + ("" if out == BF16 else "-f32")
        # as MaxText has them: [rows, k] and [rows, n] beside weights [k, n], whichever is wanted
        left, right, contract = {"matmul": ((m, k), (k, n), (1, 0)), "data_gradient": ((m, n), (k, n), (1, 1)),
                                 "weight_gradient": ((m, k), (m, n), (0, 0))}[kind]
        return name, kind, {"m": m, "k": k, "n": n, "format": jnp.dtype(dtype).name, "out": jnp.dtype(out).name}, \
            product(contract, out), (shape(left, dtype), shape(right, dtype))
    for n in SQUARES:
        yield one("matmul", n, n, n)
    for m, k, n in FEW if CHIPS[chip][2] else PROJECTIONS:
        for kind in ("matmul", "data_gradient", "weight_gradient"):
            yield one(kind, m, k, n)
    for m, k, n in ((8192, 4096, 14336), (8192, 8192, 28672)):
        yield one("weight_gradient", m, k, n, out=F32)
        if chip in ("tpu7x",):
            for kind in ("matmul", "data_gradient", "weight_gradient"):
                yield one(kind, m, k, n, dtype=jnp.float8_e4m3fn)
        if chip in ("v5e", "v6e"):
            yield one("matmul", m, k, n, dtype=jnp.int8)


def rms_norm(x, scale):
    mean = jnp.mean(jnp.square(x.astype(F32)), -1, keepdims=True)
    return (x.astype(F32) * jax.lax.rsqrt(mean + 1e-6)).astype(BF16) * scale


def swiglu(gate, up):
    return jax.nn.silu(gate) * up


def loss(logits, targets):
    """As MaxText's cross_entropy_with_logits, without the z-loss."""
    logits = logits.astype(F32)
    one_hot = jax.nn.one_hot(targets, logits.shape[-1], dtype=F32)
    shifted = logits - jax.lax.stop_gradient(jnp.max(logits, -1, keepdims=True))
    return jnp.sum(jnp.log(jnp.sum(jnp.exp(shifted), -1)) - jnp.sum(shifted * one_hot, -1))


def adam(weight, gradient, mu, nu):
    mu, nu = 0.9 * mu + 0.1 * gradient, 0.95 * nu + 0.05 * jnp.square(gradient)
    return weight - 3e-4 * (mu / 0.9 / (jnp.sqrt(nu / 0.95) + 1e-8) + 0.1 * weight), mu, nu


def rotary(x, sine, cosine):
    first, second = jnp.split(x, 2, -1)
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def stream_rows():
    # larger than any VMEM: an array that fits is fetched ahead of the operation, by a transfer that has no cost
    for rows, emb in ((16384, 8192),):
        x, about = shape((rows, emb)), {"rows": rows, "columns": emb}
        yield f"add-{rows}x{emb}", "add", about, lambda a, b: a + b, (x, x)
        yield f"rms_norm-{rows}x{emb}", "rms_norm", about, rms_norm, (x, shape((emb,)))
        yield (f"rms_norm_gradient-{rows}x{emb}", "rms_norm_gradient", about,
               lambda a, s, g: jax.vjp(rms_norm, a, s)[1](g), (x, shape((emb,)), x))
        yield f"transpose-{rows}x{emb}", "transpose", about, lambda a: a.T.copy(), (x,)
        yield (f"heads_first-{rows}x{emb}", "heads_first", about,
               lambda a: jnp.transpose(a.reshape(-1, 2048, a.shape[1] // 128, 128), (0, 2, 1, 3)), (x,))
        heads, turn = shape((rows, emb // 128, 128)), shape((rows, 1, 64))
        yield f"rotary-{rows}x{emb}", "rotary", about, rotary, (heads, turn, turn)
    for rows, width in ((8192, 28672),):
        x, about = shape((rows, width)), {"rows": rows, "columns": width}
        yield f"swiglu-{rows}x{width}", "swiglu", about, swiglu, (x, x)
        yield (f"swiglu_gradient-{rows}x{width}", "swiglu_gradient", about,
               lambda a, b, g: jax.vjp(swiglu, a, b)[1](g), (x, x, x))
    for rows, vocab in ((4096, 128256),):
        x, targets, about = shape((rows, vocab)), shape((rows,), jnp.int32), {"rows": rows, "columns": vocab}
        yield f"loss-{rows}x{vocab}", "loss", about, loss, (x, targets)
        yield f"loss_and_gradient-{rows}x{vocab}", "loss_and_gradient", about, jax.value_and_grad(loss), (x, targets)
    for rows, columns in ((8192, 28672),):
        w, about = shape((rows, columns), F32), {"rows": rows, "columns": columns}
        yield f"adam-{rows}x{columns}", "adam", about, adam, (w, w, w, w)
        yield f"cast-{rows}x{columns}", "cast", about, lambda a: a.astype(BF16), (w,)


def bytes_outside_vmem(text):
    """Bytes of the arrays of a shape (or tuple of shapes) that are not in VMEM, S(1), or smaller memories."""
    total = 0
    for kind, dims, layout in re.findall(r"\b([a-z]\w*)\[([\d,]*)\](\{[^{}]*\})?", text):
        if kind in BYTES and not re.search(r"S\([1-9]", layout or ""):
            count = 1
            for d in filter(None, dims.split(",")):
                count *= int(d)
            total += count * BYTES[kind]
    return total


def fusions(text):
    """The operations of the entry computation: [{op, cycles, hbm_bytes}], cycles null where XLA has none."""
    entry = text[text.index("\nENTRY "):]
    shapes, found = {}, []
    for line in entry.splitlines():
        match = re.match(r"\s+(?:ROOT )?%?([\w.\-]+) = (.*?) ([\w\-]+)\((.*?)\)(?:,|$)", line)
        if not match:
            continue
        name, result, op, operands = match.groups()
        shapes[name] = result
        if op in ("parameter", "constant", "bitcast", "tuple", "get-tuple-element") or op.endswith("-done"):
            continue
        moved = 0 if op.endswith("-start") else bytes_outside_vmem(result)
        moved += sum(bytes_outside_vmem(shapes.get(o.strip().lstrip("%"), "")) for o in operands.split(","))
        cycles = re.search(r'"estimated_cycles":"?(\d+)', line)
        label = re.search(r'op_name="([^"]*)"', line)
        found.append({"op": op + (":" + label.group(1).split("/")[-1] if label else ""),
                      "cycles": int(cycles.group(1)) if cycles else None, "hbm_bytes": moved})
    return found


def rows_of(chip, only):
    name, configuration, vmem_kib = CHIPS[chip]
    device = topologies.get_topology_desc(platform="tpu", topology_name=name, chip_config_name=configuration,
                                          chips_per_host_bounds=(2, 2, 1), num_slices=1).devices[0]
    here = SingleDeviceSharding(device)
    options = {"xla_tpu_scoped_vmem_limit_kib": str(vmem_kib)} if vmem_kib else {}
    for ident, kind, about, run, arrays in (*matmul_rows(chip), *stream_rows()):
        if not re.search(only, ident):
            continue
        began = time.time()
        placed = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=here) for a in arrays]
        try:
            compiled = jax.jit(run).lower(*placed).compile(compiler_options=options)
        except Exception as error:  # pylint: disable=broad-except
            print(f"{chip} {ident}: refused: {str(error).splitlines()[0][:160]}", flush=True)
            continue
        cost, parts = compiled.cost_analysis(), fusions(compiled.as_text())
        print(f"{chip} {ident}: {sum(p['cycles'] or 0 for p in parts)} cycles, compiled in {time.time() - began:.1f} s", flush=True)
        yield {"id": ident, "class": kind, "shape": about, "vmem_kib": vmem_kib,
               "cycles": sum(p["cycles"] or 0 for p in parts), "flops": cost.get("flops", 0.0),
               "hbm_bytes": sum(p["hbm_bytes"] for p in parts), "optimal_s": float(f"{cost.get('optimal_seconds', 0.0):.6g}"),
               "fusions": parts}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--chip", choices=CHIPS, action="append")
    parser.add_argument("--only", default="", help="regular expression")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    software = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "libtpu"))
    for chip in options.chip or CHIPS:
        rows = list(rows_of(chip, options.only))
        with open(os.path.join(options.out, f"{chip}.json"), "w", encoding="utf-8") as out:
            out.write(json.dumps({"software": software, "date": time.strftime("%Y-%m-%d"), "chip": chip})[:-1] + ", \"rows\": [\n")
            out.write(",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]}\n")
        print(chip, len(rows), "rows", flush=True)


if __name__ == "__main__":
    main()
