#!/usr/bin/env python3
"""Asks releases of MaxText, JAX and libtpu themselves what they know, and writes engine/catalog/data/releases.json.

usage: releases.py OUT [--work FOLDER]      with the interpreter of server/verifier/environment.sh; minutes, 1 GB from PyPI

MaxText: which keys each release has (base.yml and types.py of its wheel) and which models (the names that its check of
model_name takes, and their files). JAX: the libtpu that each asks for. libtpu: which
flags of our catalog are no compile options, by compiling a matmul with each; and which it refuses on a chip, by compiling
a small step of MaxText with each published bundle and with each pair that belongs together. The refusal names the flag.
What a libtpu takes and changes nothing by ("ignored") is kept: it was read off whole steps (schedules.md).
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
sys.path.insert(0, os.path.join(ROOT, "server/verifier"))
DATA = os.path.join(ROOT, "engine/catalog/data")
MAXTEXT = ["0.1.0", "0.2.0", "0.2.1", "0.2.2", "0.2.3", "0.2.4", "0.2.5"]
JAX = ["0.8.3", "0.9.2", "0.10.2", "0.11.0", "0.12.0.1"]
LIBTPU = ["0.0.50.1", "0.0.52"]
CHIPS = {"v6e": "4x4", "v5p": "2x2x2", "v5e": "4x4", "v4": "2x2x2", "tpu7x": "2x2x1"}
FUSION = "xla_tpu_enable_async_collective_fusion"
PAIRS = [["xla_enable_async_all_gather=true", f"{FUSION}_fuse_all_gather=true"],
         ["xla_enable_async_all_reduce=true", f"{FUSION}_fuse_all_reduce=true"],
         ["xla_enable_async_all_gather=true", f"{FUSION}_fuse_reduce_scatter=true"]]
STEP = {"model_name": "default", "override_model_config": True, "base_emb_dim": 1024, "base_num_query_heads": 8,
        "base_num_kv_heads": 8, "head_dim": 128, "base_mlp_dim": 4096, "base_num_decoder_layers": 2, "vocab_size": 32000,
        "per_device_batch_size": 2, "max_target_length": 1024, "ici_fsdp_parallelism": -1, "attention": "flash",
        "remat_policy": "full", "sa_block_q": 512, "sa_block_kv": 512, "sa_block_kv_compute": 512, "sa_block_q_dkv": 512,
        "sa_block_kv_dkv": 512, "sa_block_kv_dkv_compute": 512, "sa_use_fused_bwd_kernel": True}


def wheel(name, release, work):
    """The wheel of a release, from PyPI by pip; None where there is none for this Python."""
    found = glob.glob(f"{work}/{name}-{release}-*.whl")
    if not found:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", work,
                        f"{name}=={release}"], check=False)
        found = glob.glob(f"{work}/{name}-{release}-*.whl")
    return zipfile.ZipFile(found[0]) if found else None


def maxtext_keys(release, work):
    """The keys that a release's base.yml and configuration classes have."""
    # Every pyconfig.py reads base_config before it looks at keys; the tables of early releases do not list it.
    archive, keys = wheel("maxtext", release, work), {"base_config"}
    for name in archive.namelist() if archive else ():
        if re.search(r"configs/base\.yml$", name):
            keys |= set(re.findall(r"^(\w+):", archive.read(name).decode(), re.M))
        elif re.search(r"configs/types\.py$", name):
            keys |= set(re.findall(r"^  (\w+)\s*: ", archive.read(name).decode(), re.M))
    return keys


def maxtext_models(release, work):
    """The values of model_name that a release takes: by its list of names, which begins with these two, and by file."""
    archive, names, files = wheel("maxtext", release, work), set(), set()
    for name in archive.namelist() if archive else ():
        if re.search(r"configs/models/.*\.yml$", name):
            files.add(os.path.basename(name)[:-len(".yml")])
        elif re.search(r"(configs/types|MaxText/pyconfig)\.py$", name):
            for found in re.findall(r'[\[(]\s*"default",\s*"llama2-7b"[^\])]*', archive.read(name).decode()):
                names |= set(re.findall(r'"([\w.-]+)"', found))
    return names & files


def ranges(ours, by_release):
    """[name, first release or null, last or null] of each of ours that some releases have and others lack."""
    order, rows = list(by_release), []
    for name in sorted(ours):
        have = [release for release in order if name in by_release[release]]
        if have and len(have) < len(order):
            rows.append([name, have[0] if have[0] != order[0] else None, have[-1] if have[-1] != order[-1] else None])
    return rows


def jax_asks(release, work):
    """The libtpu that a JAX release asks for: "0.0.50.*"; None unknown."""
    archive = wheel("jax", release, work)
    for name in archive.namelist() if archive else ():
        if name.endswith("METADATA"):
            asked = re.search(r"Requires-Dist: libtpu[ (]*==([\d.*]+)", archive.read(name).decode())
            return asked.group(1) if asked else None
    return None


def sample(flag_type):
    return {"bool": "true", "int": "1", "float": "1.0"}.get(flag_type, "ENABLED")


def unknown_options(flags):
    """The flags that are no compile options, by compiling a matmul with each. In a child: libtpu is not started here,
    so that later children can be forked."""
    answer = tempfile.NamedTemporaryFile("r", suffix=".json")
    pid = os.fork()
    if pid == 0:
        import jax
        import jax.numpy as jnp
        from jax.experimental import topologies
        device = topologies.get_topology_desc(platform="tpu", topology_name="v6e:2x2").devices[0]
        where = jax.sharding.SingleDeviceSharding(device)
        lowered = jax.jit(lambda x: x @ x, in_shardings=where).lower(jax.ShapeDtypeStruct((256, 256), jnp.bfloat16))
        found = []
        for name, kind in flags:
            try:
                lowered.compile(compiler_options={name: sample(kind)})
            except Exception as error:  # pylint: disable=broad-except
                if "No such compile option" in str(error):
                    found.append(name)
        with open(answer.name, "w", encoding="utf-8") as out:
            json.dump(found, out)
        os._exit(0)
    os.waitpid(pid, 0)
    return json.load(answer)


def probe(out):
    """In a process of its own, with TPU_LIBRARY_PATH set: {unknown: [...], refused: [...]} to `out`."""
    import step
    known, table, _ = step.prepare()
    catalog = json.load(open(f"{DATA}/flags.json", encoding="utf-8"))

    def run(chip, flags):
        plan = {"cluster": {"chip": chip, "topology": CHIPS[chip]}, "config": STEP}
        args, _ = step.arguments(plan, known)
        args += [f"compile_topology={step.topology_of(plan['cluster'], table)}", "compile_topology_num_slices=1"]
        folder = tempfile.mkdtemp(prefix="releases-")
        job, end = step.Job(args, [f"--{flag}" for flag in flags], folder, 300, False), None
        while not end or (end == "refused" and job.retry()):
            time.sleep(0.1)
            end = job.poll()
        text = job.text() if end == "refused" else ""
        step.shutil.rmtree(folder, ignore_errors=True)
        return job.left_out, job.disabled, text

    unknown = set(unknown_options([(n, k) for n, k, _ in catalog["flags"] if n.startswith("xla_")]))
    refused = []
    for chip in CHIPS:
        sets = PAIRS + [bundle["flags"] for bundle in catalog["bundles"] if chip in bundle["chips"]]
        for flags in sets:
            given = [f.lstrip("-") for f in flags]
            plain = [f for f in given if f.startswith("xla_") and f.split("=")[0] not in unknown]
            left_out, disabled, text = run(chip, plain)
            unknown |= set(left_out)
            for flag in disabled:
                if not any(row["flag"] == flag and chip in row["chips"] and set(row["with"]) <= set(plain) for row in refused):
                    same = next((r for r in refused if r["flag"] == flag and r["with"] == plain), None)
                    if same:
                        same["chips"].append(chip)
                    else:
                        refused.append({"flag": flag, "value": "true", "chips": [chip], "with": plain})
            print(chip, flags[0], disabled or left_out or text[-200:], file=sys.stderr, flush=True)
    json.dump({"unknown": sorted(unknown), "refused": refused}, open(out, "w", encoding="utf-8"))


def ask_libtpu(release, work):
    archive = wheel("libtpu", release, work)
    folder, out = f"{work}/libtpu-{release}", f"{work}/libtpu-{release}.json"
    if not archive:
        return None
    if not os.path.exists(out):
        library = [n for n in archive.namelist() if n.endswith("libtpu.so")][0]
        archive.extract(library, folder)
        environment = dict(os.environ, TPU_LIBRARY_PATH=os.path.join(folder, library))
        subprocess.run([sys.executable, os.path.abspath(__file__), out, "--probe"], env=environment, check=False)
    return json.load(open(out, encoding="utf-8")) if os.path.exists(out) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--work", default=os.path.expanduser("~/.cache/tpu-advisor/releases"))
    parser.add_argument("--probe", action="store_true")
    options = parser.parse_args()
    if options.probe:
        probe(options.out)
        return
    os.makedirs(options.work, exist_ok=True)
    pinned = json.load(open(os.path.join(ROOT, "server/verifier/versions.json"), encoding="utf-8"))
    by_release = {release: maxtext_keys(release, options.work) for release in MAXTEXT}
    by_release = {release: keys for release, keys in by_release.items() if keys}
    ours = {row["name"] for row in json.load(open(f"{DATA}/keys.json", encoding="utf-8"))["rows"]}
    ours |= {row[0] for row in json.load(open(f"{DATA}/old_keys.json", encoding="utf-8"))["rows"]}
    keys = ranges(ours, by_release)
    known = json.load(open(f"{DATA}/models.json", encoding="utf-8"))["models"]
    models = ranges({row["name"] for row in known}, {release: maxtext_models(release, options.work) for release in by_release})
    libtpu = []
    known = json.load(open(f"{DATA}/releases.json", encoding="utf-8"))["libtpu"]
    ignored = {row["release"]: row["ignored"] for row in known}  # read off tests/compile/schedules.md
    for release in LIBTPU:
        said = ask_libtpu(release, options.work)
        if said:
            libtpu.append({"release": release, "unknown": said["unknown"], "refused": said["refused"],
                           "ignored": ignored.get(release, [])})
    asks = [[release, jax_asks(release, options.work)] for release in JAX]
    table = {"source": "the releases themselves, from PyPI (tests/compile/releases.py)", "date": time.strftime("%Y-%m-%d"),
             "confidence": "high", "pinned": {name: pinned[name] for name in ("maxtext", "jax", "libtpu")},
             "maxtext": {"releases": list(by_release), "keys": keys, "models": models}, "jax": [row for row in asks if row[1]], "libtpu": libtpu}
    lines = [f'"{name}":{json.dumps(value, separators=(",", ":"))}' for name, value in table.items() if name not in ("maxtext", "libtpu")]
    lines.append('"maxtext":{"releases":' + json.dumps(list(by_release)) + "".join(
        f',"{name}":[\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]" for name, rows in (("keys", keys), ("models", models))) + "}")
    lines.append('"libtpu":[\n' + ",\n".join(json.dumps(row) for row in libtpu) + "\n]")
    with open(options.out, "w", encoding="utf-8") as out:
        out.write("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
