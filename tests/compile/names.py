#!/usr/bin/env python3
"""Asks MaxText which tensors of each model its remat policies can name: writes tests/compile/names.json.

usage: names.py OUT.json [--only TEXT]      with the interpreter of server/verifier/environment.sh; some seconds a model

A step is traced, not compiled, under remat_policy=custom. JAX asks the policy about each value inside the checkpointed
layers; those that carry a name are the row's: what no layer names, a key of that name cannot move. A row is {model,
config, names}.
"""
import argparse
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../server/verifier"))
import step  # noqa: E402

SPARSE, EINSUM = {"sparse_matmul": True, "megablox": True}, {"sparse_matmul": False}
TOKAMAX = {**SPARSE, "use_tokamax_splash": True}
CASES = [("llama2-7b", {}), ("llama2-7b", {"attention": "dot_product"}), ("mistral-7b", {}), ("mixtral-8x7b", SPARSE),
         ("mixtral-8x7b", {**EINSUM, "capacity_factor": 1.25}), ("gemma-2b", {}), ("gemma2-2b", {}), ("gemma3-4b", {}),
         ("gemma4-26b", SPARSE), ("gemma4-31b", {}), ("gemma4-e2b", {"scan_layers": False}), ("gpt3-6b", {}),
         ("gpt-oss-20b", SPARSE), ("gpt-oss-20b", EINSUM), ("qwen2.5-1.5b", {}), ("qwen3-0.6b", {}),
         ("qwen3-30b-a3b", SPARSE), ("qwen3-custom-30b-a3b", SPARSE), ("qwen3-next-80b-a3b", SPARSE),
         ("qwen3.5-35b-a3b", SPARSE), ("deepseek2-16b", SPARSE), ("deepseek3-671b", SPARSE),
         ("deepseek3.2-671b", {**TOKAMAX, "indexer_sparse_training": True}), ("deepseek4-284b", TOKAMAX),
         ("llama4-17b-16e", SPARSE), ("olmo3-7b", {}), ("envy-switch-base", SPARSE)]
USUAL = {"override_model_config": True, "ici_fsdp_parallelism": -1, "per_device_batch_size": 1,
         "max_target_length": 2048, "attention": "flash", "remat_policy": "custom", "compile_topology": "v5p-32",
         "compile_topology_num_slices": 1}


def trace(model, config, folder):
    """The names of one step, in a child; None where MaxText refuses the configuration."""
    path = os.path.join(folder, "names")
    if os.path.exists(path):
        os.remove(path)
    pid = os.fork()
    if pid == 0:
        child(model, config, path, folder)
    os.waitpid(pid, 0)
    if os.path.exists(path):
        return json.load(open(path, encoding="utf-8"))
    print(model, config, open(os.path.join(folder, "log"), errors="replace").read()[-600:], file=sys.stderr)
    return None


def child(model, config, path, folder):
    """Traces; never returns."""
    log = os.open(os.path.join(folder, "log"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(folder)
    try:
        import jax
        import maxtext
        from maxtext.trainers.pre_train import train_compile
        policies, found = jax.checkpoint_policies, set()

        def recording(usual):
            def policy_of(*names, **places):
                policy = usual(*names, **places)

                def asked(primitive, *values, **parameters):
                    if primitive.name == "name":
                        found.add(parameters["name"])
                    return policy(primitive, *values, **parameters)
                return asked
            return policy_of

        def traced(func, args, kwargs, mesh, ins, outs, static, donated, _, rules):
            with jax.set_mesh(mesh), rules:
                jax.jit(func, in_shardings=ins, out_shardings=outs, static_argnums=static,
                        donate_argnums=donated).trace(*args, **kwargs)
            json.dump(sorted(found), open(path, "w", encoding="utf-8"))
            os._exit(0)

        for name in ("save_and_offload_only_these_names", "save_only_these_names"):
            setattr(policies, name, recording(getattr(policies, name)))
        train_compile.jit_and_compile = traced
        base = os.path.join(os.path.dirname(maxtext.__file__), "configs", "base.yml")
        keys = {"model_name": model, **USUAL, **config, **step.FIXED}
        train_compile.main([train_compile.__file__, base, *(f"{k}={step.spell(v)}" for k, v in keys.items())])
    except BaseException as error:  # the parent prints it
        print(type(error).__name__, error)
    finally:
        sys.stdout.flush()
        os._exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    _, _, versions = step.prepare()
    software, rows = ", ".join(f"{name} {version}" for name, version in versions.items()), []
    with tempfile.TemporaryDirectory(prefix="names-") as folder:
        for model, config in CASES:
            names = trace(model, config, folder) if options.only in model else None
            if names is not None:
                rows.append({"model": model, "config": config, "names": names})
                print(model, config, *names, flush=True)
    with open(options.out, "w", encoding="utf-8") as out:
        out.write("{\"software\":" + json.dumps(software) + ",\"rows\":[\n")
        out.write(",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]}\n")


if __name__ == "__main__":
    main()
