"""One training step through the real MaxText and libtpu, without a TPU: what both the verifier and the harness of the
compiled rows use.

A step runs in a forked child, so that MaxText and JAX are imported once. The child is stopped as soon as XLA has written
the buffer assignment: the verdict on memory is known then, and the code generation behind it takes minutes. A flag that
libtpu does not know, or refuses on the chip, is left out, named, and the step tried again.
"""
import ctypes
import errno
import glob
import json
import os
import re
import shutil
import signal
import time

import dump

FIXED = {"steps": 3, "dataset_type": "synthetic", "enable_checkpointing": False, "skip_jax_distributed_system": True,
         "run_name": "compile", "base_output_directory": "compile-out", "save_config_to_gcs": False, "log_config": False}
# Files and services of a real run. None changes a shape.
OF_THE_RUN = {"tokenizer_path", "tokenizer_type", "hf_path", "dataset_path", "profiler", "hf_access_token"}
PR_SET_PDEATHSIG = 1
OF_THE_MACHINE = {errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO}
SHORT = 3  # exit status of a child for which the machine had no room
SAID_CHARS = 1500  # that a row keeps of why it ended
NO_STEP = "the compiled program holds no training step: nothing that the model computes reaches the loss"


def prepare():
    """Imports MaxText, once for all children; (its keys, its compile topologies, the versions by name)."""
    os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost",
                      ALLOW_MULTIPLE_LIBTPU_LOAD="1", TF_CPP_MIN_LOG_LEVEL="2", PYTHONUNBUFFERED="1",
                      HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    import importlib.metadata as metadata
    import sys
    import yaml
    import maxtext
    from absl import flags as absl_flags
    from maxtext.configs import types
    from maxtext.trainers.pre_train import train_compile  # noqa: F401 (imported once, for all children)
    from maxtext.utils import accelerator_to_spec_map
    try:  # tokamax must not look for a TPU
        from tokamax._src import config as _tokamax_config  # noqa: F401
        if not absl_flags.FLAGS.is_parsed():
            absl_flags.FLAGS(["compile", "--tokamax_cross_compile=true"])
    except Exception as error:  # pylint: disable=broad-except
        print("tokamax:", error, file=sys.stderr)
    base = os.path.join(os.path.dirname(maxtext.__file__), "configs", "base.yml")
    known = set(yaml.safe_load(open(base, encoding="utf-8"))) | set(types.MaxTextConfig.model_fields)
    versions = {name: metadata.version(name) for name in ("maxtext", "jax", "libtpu")}
    return known, accelerator_to_spec_map.UserFacingNameToSystemCharacteristics, versions


def spell(value):
    """A value as MaxText's command line takes it."""
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, (list, dict)):
        return json.dumps(value, separators=(",", ":"))
    return str(value)


def topology_of(cluster, table):
    """The compile_topology name of a slice, or None: MaxText compiles for the shapes of its own table only."""
    wanted = sorted(int(n) for n in cluster["topology"].split("x"))
    while len(wanted) > 2 and wanted[0] == 1 and cluster["chip"] in ("v5e", "v6e"):
        wanted = wanted[1:]
    for name, about in table.items():
        if not name.startswith(cluster["chip"] + "-") or not about.topology_name:
            continue
        dims = sorted(int(n) for n in about.topology_name.split(":")[1].split("x"))
        if [d for d in dims if d > 1] == [d for d in wanted if d > 1]:
            return name
    return None


def arguments(request, known, renamed=(), left_out=OF_THE_RUN):
    """(MaxText arguments, keys that this release does not know)."""
    args, dropped = {}, []
    model, renamed = request.get("model"), dict(renamed)
    if isinstance(model, str):
        args["model_name"] = model
    elif model:
        args.update({k: v for k, v in model.items() if k in known and k != "name"})
    for key, value in request["config"].items():
        key = renamed.get(key, key)
        if key in known and key not in left_out:
            args[key] = value
        elif key not in left_out:
            dropped.append(key)
    args.update(FIXED)
    return [f"{k}={spell(v)}" for k, v in args.items() if v is not None], dropped


def tell(config, folder):
    """Leaves word that MaxText took the configuration, and the sizes by which buffers are told apart."""
    about = {name: getattr(config, name, None) for name in ("vocab_size", "emb_dim", "num_decoder_layers", "use_indexer",
                                                            "indexer_sparse_training", "max_target_length",
                                                            "ici_context_parallelism")}
    with open(os.path.join(folder, "checked"), "w", encoding="utf-8") as out:
        json.dump(about, out)
    return config


def child(args, flags, folder):
    """Runs train_compile; never returns."""
    log = os.open(os.path.join(folder, "log"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody compiles for a parent that is gone
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(folder)
    os.environ["XLA_FLAGS"] = (f"--xla_dump_to={folder} --xla_dump_hlo_as_text "
                               "--xla_dump_hlo_module_re=.*train_step.*")
    status = SHORT  # until a refusal is written
    try:
        import maxtext
        from maxtext.trainers.pre_train import train_compile
        base = os.path.join(os.path.dirname(maxtext.__file__), "configs", "base.yml")
        initialize = train_compile.pyconfig.initialize
        train_compile.pyconfig.initialize = lambda argv: tell(initialize(argv), folder)
        if flags:
            args = args + ["compile_xla_flags=" + " ".join(flags)]
        train_compile.main([train_compile.__file__, base, *args])
        status = 0
    except BaseException as error:  # the row says what it was
        with open(os.path.join(folder, "refusal"), "w", encoding="utf-8") as out:
            out.write(f"{type(error).__name__}: {error}"[:6000])
        if not isinstance(error, MemoryError) and getattr(error, "errno", None) not in OF_THE_MACHINE:
            status = 1
    finally:
        os._exit(status)


class Job:
    """One step under way."""

    def __init__(self, args, flags, folder, timeout_s, whole):
        self.args, self.flags, self.folder, self.timeout_s, self.whole = args, flags, folder, timeout_s, whole
        self.left_out, self.disabled, self.began = [], [], time.time()
        self.start()

    def start(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.last, self.steady, self.fault = None, 0, ""
        self.pid = os.fork()
        if self.pid == 0:
            try:
                child(self.args, self.flags, self.folder)
            finally:
                os._exit(SHORT)  # before its first line: never back into the parent's code

    def stop(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)

    def assigned(self):
        """True when the buffer assignment is written and no longer grows."""
        found = [f for suffix in ("after_optimizations_after_buffer_assignment.txt",
                                  "after_optimizations-memory-usage-report.txt",
                                  "after_optimizations-buffer-assignment.txt",
                                  "after_optimizations-live-range.txt")
                 for f in glob.glob(f"{self.folder}/*train_step*{suffix}")]
        now = (len(found), sum(os.path.getsize(f) for f in found))
        self.steady = self.steady + 1 if now == self.last else 0
        self.last = now
        return len(found) >= 4 and self.steady >= 2

    def poll(self):
        """None while it runs, else how it ended: assigned, finished, refused, timeout."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            if os.WIFSIGNALED(status):
                self.fault = f"the compile was ended by signal {os.WTERMSIG(status)}"
            elif os.WEXITSTATUS(status) == SHORT:
                self.fault = "this machine had no room for the compile"
            return "finished" if status == 0 else "refused"
        if time.time() - self.began > self.timeout_s:
            self.stop()
            return "timeout"
        if not self.whole and self.assigned():
            self.stop()
            return "assigned"
        return None

    def text(self):
        try:
            return open(os.path.join(self.folder, "refusal"), encoding="utf-8").read()
        except OSError:
            return open(os.path.join(self.folder, "log"), errors="replace").read()[-3000:]

    def said(self):
        """Why it ended: what the refusal says, whose first lines hold the reason, or else the end of the log."""
        text = self.text()
        if not os.path.exists(os.path.join(self.folder, "refusal")):
            return text[-SAID_CHARS:]
        return text.split("Suspected Python Code Location:")[0].strip()[:SAID_CHARS]

    def stage(self):
        """How far it is: checking, tracing, compiling, generating."""
        if not os.path.exists(os.path.join(self.folder, "checked")):
            return "checking"
        if not glob.glob(f"{self.folder}/*train_step*before_optimizations.txt"):
            return "tracing"
        return "generating" if self.assigned() else "compiling"

    def retry(self):
        """Takes out the flag that the refusal names. False: it names none."""
        text = self.text()
        unknown = re.search(r"No such compile option: '(\w+)'", text)
        refused = re.search(r"Please disable it with (\w+)=false", text)
        if unknown:
            flag, replacement, names = unknown.group(1), [], self.left_out
        elif refused:
            flag, names = refused.group(1), self.disabled
            replacement = [f"--{flag}=false"]
        else:
            return False
        if flag in names:
            return False
        names.append(flag)
        self.flags = [f for f in self.flags if f.split("=")[0].lstrip("-") != flag] + replacement
        self.start()
        return True

    def why_no_step(self):
        """The reason of a program without a step, with the keys behind it where they are known."""
        about = self.about()
        if about.get("use_indexer") and not about.get("indexer_sparse_training"):
            return NO_STEP + "; with use_indexer MaxText leaves the model's loss out unless indexer_sparse_training is true"
        return NO_STEP

    def about(self):
        """What tell() left, {} before."""
        try:
            return json.load(open(os.path.join(self.folder, "checked"), encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def row(self, end):
        """What a row keeps of how it ended. A verdict that is no word on the plan (timeout, died, no_step) has no
        bytes. Only what MaxText or XLA said themselves is a refusal: a child that was killed has said nothing."""
        text = self.text()
        oom = (re.search(r"required for HLO temporaries \(([\d.]+)([GM])\) exceeds available HBM \(([\d.]+)G\)", text)
               or re.search(r"Used ([\d.]+)([GM]) of ([\d.]+)G hbm", text))
        found = dump.summary(self.folder)
        compiled = {"seconds": round(time.time() - self.began), "flags_left_out": self.left_out,
                    "flags_refused": self.disabled}
        if oom:
            need = float(oom.group(1)) * (2**30 if oom.group(2) == "G" else 2**20)
            compiled.update(verdict="does_not_fit", need_bytes_per_device=found["spaces"].get("hbm") or round(need),
                            limit_bytes_per_device=round(float(oom.group(3)) * 2**30))
        elif end in ("assigned", "finished") and dump.holds_step(self.folder) is False:
            compiled.update(verdict="no_step", text=self.why_no_step())
        elif end in ("assigned", "finished") and found["spaces"].get("hbm"):
            compiled.update(verdict="fits", need_bytes_per_device=found["spaces"]["hbm"])
        elif self.fault or end in ("assigned", "finished"):
            fault = self.fault or "XLA left no report of the program's memory"
            compiled.update(verdict="died", text=f"{fault}: {text[-1400:]}".strip().rstrip(":"))
        else:
            compiled.update(verdict="timeout" if end == "timeout" else "refused", text=self.said())
        if "need_bytes_per_device" in compiled:
            compiled["host_bytes_per_device"] = found["spaces"].get("host", 0)
            for name in ("argument_bytes", "heap_bytes", "live_peak_bytes", "peak_moment", "moments", "alive", "turned"):
                compiled[name] = found.get(name)
        return compiled
