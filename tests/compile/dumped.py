"""One case to the compiler, for what its folder of dumps says."""
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../server/verifier"))
import step  # noqa: E402  pylint: disable=wrong-import-position

POLL_S = 0.5


def dumped(case, prepared, timeout_s, read):
    """read(how the compile ended, folder) of a case; `prepared`: step.prepare(). The folder is gone behind it."""
    known, table, _ = prepared
    request = case["request"]
    args, _ = step.arguments(request, known)
    topology = step.topology_of(request["cluster"], table)
    if not topology:
        sys.exit(f"{case['id']}: no compile_topology for {request['cluster']}")
    args += [f"compile_topology={topology}", f"compile_topology_num_slices={request['cluster'].get('slices', 1)}"]
    folder = tempfile.mkdtemp(prefix="compile-")
    job = step.Job(args, [flag for flag in request.get("xla_flags") or [] if flag.startswith("--xla")], folder, timeout_s, False)
    try:
        while True:
            end = job.poll()
            if end and not (end == "refused" and job.retry()):
                return read(end, folder)
            time.sleep(POLL_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
