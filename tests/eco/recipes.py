#!/usr/bin/env python3
"""recipes.py: published recipes through lint and through pyconfig, side by side."""
import json
import math

import judge
from eco import ROOT, Part, program


def spell(value):
    if isinstance(value, list):
        return '[' + ','.join(str(item) for item in value) + ']'
    return str(value)


def lint_verdict(row):
    request = {'config': row['config'], 'xla_flags': row.get('xla_flags', []), 'strict': True}
    for member in ('model', 'cluster'):
        if row.get(member):
            request[member] = row[member]
    done = program('lint', '-', text=json.dumps(request))
    return json.loads(done)['valid'] if done else False


def slices_of(config):
    """Recipes for several slices do not always come with their cluster: the axes between slices say how many."""
    degrees = [value for key, value in config.items() if key.startswith('dcn_') and isinstance(value, int)]
    return math.prod(degree for degree in degrees if degree > 1)


def judge_rules(part):
    """What lint refuses by a rule of its own, pyconfig must refuse too."""
    for row in json.load(open(ROOT / 'tests/data/lint_rules.json')):
        config = {'dataset_type': 'synthetic', **row['config']}
        says = judge.refusal([f'{key}={spell(value)}' for key, value in config.items()] +
                             ['run_name=eco', 'base_output_directory=/tmp/eco'])
        part.count('configurations that break a rule of lint')
        if not says:
            part.disagree(f'rule {row["rule"]}', f'pyconfig accepts {row["config"]}')


def main():
    part = Part('recipes', 'published recipes through lint and through pyconfig')
    for name in ('lint_recipes', 'lint_tuned'):
        for row in json.load(open(ROOT / f'tests/data/{name}.json')):
            config = dict(row['config'])
            if row.get('model') and row['model'] != 'default':
                config.setdefault('model_name', row['model'])
            arguments = [f'{key}={spell(value)}' for key, value in config.items()]
            slices = slices_of(config)
            says = judge.refusal(arguments + ['run_name=eco', 'base_output_directory=/tmp/eco'],
                                 'v6e-256' if slices > 1 else '', slices)
            ours = lint_verdict({**row, 'config': config})
            part.count('recipes')
            part.count(f'lint {"accepts" if ours else "refuses"}, pyconfig {"refuses" if says else "accepts"}')
            if ours and says:
                part.disagree(row['name'], says)
    judge_rules(part)
    part.close()


if __name__ == '__main__':
    main()
