"""eco.py: what the parts of the eco test share: the program, its files run as a user would, the result of a part."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get('PROGRAM', str(ROOT / 'build/tpu-advisor'))
OUT = pathlib.Path(os.environ.get('ECO_OUT', ROOT / 'build/eco/results'))

# Stands for python3 in the emitted scripts: says what it was started with and under which environment.
STUB = '''#!%s
import json, os, sys
json.dump({'argv': sys.argv[1:], 'env': {k: os.environ.get(k) for k in
           ('LIBTPU_INIT_ARGS', 'JAX_PLATFORMS', 'ENABLE_PJRT_COMPATIBILITY')}}, open(os.environ['ECO_CAUGHT'], 'w'))
''' % sys.executable


def program(*arguments, text):
    """Standard output of the program for `text` on standard input; None where it refuses."""
    done = subprocess.run([PROGRAM, *arguments], input=text, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode in (0, 1) else None


def artifact(name, answer, rank=1):
    """The file `name` made from an answer (an object)."""
    made = program('artifact', name, '-', '--rank', str(rank), text=json.dumps(answer))
    if made is None:
        raise RuntimeError(f'no {name} of rank {rank}')
    return made


def keep(name, value):
    """A fact of the real tools for recorded.json."""
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f'{name}.recorded').write_text(json.dumps(value))


class Shell:
    """Runs emitted shell text in a folder of its own, with a python3 that only tells how it was started."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        stub = self.path / 'bin' / 'python3'
        stub.parent.mkdir()
        stub.write_text(STUB)
        stub.chmod(0o755)

    def start(self, text, **variables):
        """What python3 was started with by `text`; the text of the error where it was not."""
        caught = self.path / 'caught.json'
        caught.unlink(missing_ok=True)
        env = {'PATH': f'{self.path}/bin:{os.environ["PATH"]}', 'HOME': str(self.path), 'ECO_CAUGHT': str(caught),
               'RUN_NAME': 'eco', 'BASE_OUTPUT_DIRECTORY': '/tmp/eco', **variables}
        done = subprocess.run(['bash', '-c', text], cwd=self.path, env=env, capture_output=True, text=True, check=False)
        return json.loads(caught.read_text()) if caught.exists() else {'error': done.stderr[-400:]}


class Part:
    """Counts and disagreements of one part of the test; both are printed and kept as JSON for the report."""

    def __init__(self, name, title):
        self.name, self.title = name, title
        self.counts, self.disagreements, self.notes = {}, [], []

    def count(self, what, by=1):
        self.counts[what] = self.counts.get(what, 0) + by

    def disagree(self, case, says):
        self.disagreements.append([case, ' '.join(str(says).split())[:400]])

    def close(self):
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / f'{self.name}.json').write_text(json.dumps(self.__dict__, indent=1) + '\n')
        print(f'eco: {self.title}')
        for what, count in self.counts.items():
            print(f'  {count:6d} {what}')
        for case, says in self.disagreements:
            print(f'  DISAGREES {case}: {says}')
        sys.exit(1 if self.disagreements else 0)
