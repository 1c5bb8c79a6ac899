"""judge.py: MaxText's own word on a command line. Needs the environment with MaxText."""
import contextlib
import io
import logging
import os

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
os.environ.setdefault('TPU_SKIP_MDS_QUERY', '1')
logging.disable(logging.CRITICAL)

from maxtext.configs import pyconfig  # noqa: E402  (the environment must be set first)

# Only what keeps the check away from devices, the network and the disk.
APART = ['skip_jax_distributed_system=true', 'log_config=false', 'save_config_to_gcs=false']


@contextlib.contextmanager
def quiet_in(folder):
    """In `folder` (None: where one is), without a word on the terminal."""
    before = os.getcwd()
    try:
        os.chdir(folder or before)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        os.chdir(before)


def on(accelerator, slices):
    """The arguments that count the devices of a slice in place of this machine's."""
    return [f'compile_topology={accelerator}', f'compile_topology_num_slices={slices}'] if accelerator else []


def refusal(arguments, accelerator='', slices=1, folder=None):
    """None when MaxText accepts the arguments, else what it says. `arguments` may begin with a .yml file."""
    try:
        with quiet_in(folder):
            pyconfig.initialize_pydantic(['', *arguments, *APART, *on(accelerator, slices)])
        return None
    except (Exception, SystemExit) as error:  # whatever ends the user's run ends it here
        return f'{type(error).__name__}: {error}'


def settled(arguments, accelerator='', slices=1, folder=None):
    """Every value of a configuration that MaxText accepts."""
    with quiet_in(folder):
        return pyconfig.initialize_pydantic(['', *arguments, *APART, *on(accelerator, slices)]).model_dump()
