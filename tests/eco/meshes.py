#!/usr/bin/env python3
"""meshes.py [--update]: which meshes JAX lays on a slice without allow_split_physical_axes, and what lint says of them.

No device is needed: create_device_mesh only reads coordinates. --update stores what JAX said for the unit test.
"""
import json
import os
import random
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
import jax  # noqa: E402
from jax.experimental import mesh_utils  # noqa: E402

from eco import ROOT, Part, program  # noqa: E402

KINDS = {'v4': 'TPU v4', 'v5p': 'TPU v5', 'v5e': 'TPU v5 lite', 'v6e': 'TPU v6 lite', 'tpu7x': 'TPU7x'}
FLAT = ('1x1', '2x2', '2x4', '4x4', '4x8', '8x8', '8x16', '16x16')
DEEP = ('2x2x1', '2x2x2', '2x2x4', '2x4x4', '4x4x4', '4x4x8', '4x4x12', '4x8x8', '8x8x8', '8x8x16')
SHAPES = {'v4': DEEP, 'v5p': DEEP, 'v5e': FLAT, 'v6e': FLAT, 'tpu7x': ('1x1x1', *DEEP)}
AXES = ('data', 'fsdp', 'fsdp_transpose', 'context', 'tensor')  # in MaxText's order
MESHES = 400


class Device:
    """A chip, or a core of one, as create_device_mesh looks at it."""

    def __init__(self, kind, coords, core):
        self.device_kind, self.coords, self.core_on_chip = kind, coords, core
        self.platform, self.process_index, self.slice_index = 'tpu', 0, 0


def dims_of(topology):
    return [int(size) for size in topology.split('x')] + [1] * (2 - topology.count('x'))


def devices_of(chip, topology):
    x_size, y_size, z_size = dims_of(topology)
    return [Device(KINDS[chip], (x, y, z), core) for z in range(z_size) for y in range(y_size) for x in range(x_size)
            for core in range(2 if chip == 'tpu7x' else 1)]


def prime_factors(number):
    factor = 2
    while number > 1:
        while number % factor == 0:
            yield factor
            number //= factor
        factor += 1


def draw(chance):
    """A chip, a slice and degrees that multiply to its devices."""
    chip = chance.choice(sorted(SHAPES))
    topology = chance.choice(SHAPES[chip])
    degrees = dict.fromkeys(AXES, 1)
    used = chance.sample(AXES, chance.choice((1, 2, 2, 2, 3, 3, 4)))
    for factor in prime_factors(len(devices_of(chip, topology))):
        degrees[chance.choice(used)] *= factor
    return chip, topology, degrees


def jax_refuses(chip, topology, degrees):
    try:
        mesh_utils.create_device_mesh([degrees[axis] for axis in AXES], devices_of(chip, topology))
    except NotImplementedError:
        return True
    return False


def lint_refuses(chip, topology, degrees):
    config = {f'ici_{axis}_parallelism': size for axis, size in degrees.items()}
    config.update(per_device_batch_size=64, max_target_length=8192, context_parallel_load_balance=False)
    answer = program('lint', '-', text=json.dumps({'cluster': {'chip': chip, 'topology': topology}, 'config': config}))
    codes = {finding['code'] for finding in json.loads(answer)['findings'] if finding['severity'] == 'error'}
    return None if codes - {'split-axes'} else bool(codes)


def main():
    part = Part('meshes', 'Meshes on slices: what JAX refuses without allow_split_physical_axes, and what lint says')
    chance = random.Random(1)
    rows = []
    for chip, topology, degrees in (draw(chance) for _ in range(MESHES)):
        refused, ours = jax_refuses(chip, topology, degrees), lint_refuses(chip, topology, degrees)
        rows.append({'chip': chip, 'topology': topology, 'refused': refused,
                     **{axis: size for axis, size in degrees.items() if size > 1}})
        if ours is None:
            part.count('not legal for another reason, left out')
            continue
        part.count('refused by JAX' if refused else 'taken by JAX')
        if ours != refused:
            part.disagree(f'{chip} {topology} {degrees}', 'JAX refuses it' if refused else 'JAX takes it')
    if '--update' in sys.argv:
        text = ',\n'.join(json.dumps(row, separators=(',', ':')) for row in rows)
        (ROOT / 'tests/data/jax_meshes.json').write_text(
            f'{{"jax":"{jax.__version__}","meshes":[\n{text}\n]}}\n')
    part.close()


main()
