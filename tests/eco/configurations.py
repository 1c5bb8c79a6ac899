#!/usr/bin/env python3
"""configurations.py: MaxText's pyconfig over the configurations that advise writes, as the scripts start them."""
import json
import re
import sys

import judge
from eco import ROOT, Part, Shell, artifact, keep, program
from maxtext.configs import types

CLUSTERS = [('tpu7x', '4x4x8', 1), ('v6e', '16x16', 1), ('v5p', '4x8x8', 1), ('v5e', '16x16', 1), ('v4', '4x8x8', 1),
            ('tpu7x', '4x8x8', 2)]
# Estimates whose configuration MaxText settles in one way as arguments and in another as lines of a file.
VARIANTS = [('llama3.1-8b', {'base_num_decoder_layers': 4}),
            ('qwen3-30b-a3b', {'num_experts': 64, 'override_model_config': True}),
            ('llama3.1-8b', {'logical_axis_rules': [['activation_batch', ['data', 'fsdp']]]})]
PLACE = {'RUN_NAME': 'eco', 'BASE_OUTPUT_DIRECTORY': '/tmp/eco'}
OF_THE_FILE = {'base_config', 'dump_hlo_xla_flags'}  # of the file alone; of the first configuration of a process
NEEDS = {'deepseek-custom': 'tokenizer_path and HF_TOKEN'}  # named in the answer's warnings


def requests(limit):
    models = json.load(open(ROOT / 'engine/catalog/data/models.json'))['models']
    names = [row['name'] for row in models if row['source'].startswith('maxtext')]
    files = sorted((ROOT / 'tests/data/hf').glob('*.json'))
    models = [(name, name) for name in names] + [(f'hf:{f.stem}', {'hf_config': json.load(open(f))}) for f in files]
    for chip, topology, slices in CLUSTERS:
        for label, model in models:
            for quantization in ('any', 'none'):
                yield label, {'model': model, 'cluster': {'chip': chip, 'topology': topology, 'slices': slices},
                              'workload': {'seq_len': 4096, 'per_device_batch_size': 1, 'quantization': quantization},
                              'search': {'top_k': limit, 'max_evaluations': 4000}}


def judge_plan(part, shell, label, answer, rank):
    cluster = answer['cluster']
    case = f'{label} {cluster["chip"]}-{cluster["topology"]} x{cluster["slices"]} rank {rank}'
    started = shell.start(artifact('maxtext.sh', answer, rank))
    if 'error' in started:
        return part.disagree(case, started['error'])
    if started['argv'][:2] != ['-m', 'maxtext.trainers.pre_train.train']:
        return part.disagree(case, started['argv'][:2])
    part.count('configurations judged')
    says = judge.refusal(started['argv'][2:], cluster['accelerator'], cluster['slices'])
    if says is None:
        return part.count('accepted')
    need = next((need for name, need in NEEDS.items() if label == name), None)
    if need and any(w['code'] == 'engram-tokenizer' for w in answer['warnings'] + sum(
            (plan['estimate']['warnings'] for plan in answer['ranked']), [])):
        return part.count(f'refused for a need that the answer names ({label}: {need})')
    part.disagree(case, says)


def judge_file(part, shell, label, answer):
    """maxtext.yml is read, by the line in its head as it stands; libtpu.env works when sourced."""
    text = artifact('maxtext.yml', answer)
    (shell.path / 'maxtext.yml').write_text(text)
    head = re.search(r'^# (python3 -m .*)$', text, re.M)
    started = shell.start(head.group(1) if head else 'false', **PLACE)
    says = started.get('error') or judge.refusal(started['argv'][2:], answer['cluster']['accelerator'],
                                                 answer['cluster']['slices'], shell.path)
    part.count('maxtext.yml read')
    if says and label not in NEEDS:
        part.disagree(f'{label} maxtext.yml', says)
    if not says:
        compare_settled(part, shell, label, answer, started['argv'][2:])
    (shell.path / 'libtpu.env').write_text(artifact('libtpu.env', answer))
    sourced = shell.start('. ./libtpu.env && python3')
    part.count('libtpu.env sourced')
    plan = answer['ranked'][0] if 'ranked' in answer else answer
    if sourced.get('env', {}).get('LIBTPU_INIT_ARGS') != ' '.join(plan['xla_flags']):
        part.disagree(f'{label} libtpu.env', sourced)


def compare_settled(part, shell, label, answer, arguments):
    """maxtext.yml, with the arguments of the line in its head, trains what maxtext.sh trains."""
    machine = answer['cluster']['accelerator'], answer['cluster']['slices']
    script = judge.settled(shell.start(artifact('maxtext.sh', answer), **PLACE)['argv'][2:], *machine)
    file = judge.settled(arguments, *machine, shell.path)
    part.count('maxtext.yml settled as maxtext.sh is')
    for key, value in script.items():
        if key not in OF_THE_FILE and file.get(key) != value:
            part.disagree(f'{label} maxtext.yml', f'{key} is {file.get(key)}, in maxtext.sh {value}')


def judge_variants(part, shell):
    for model, config in VARIANTS:
        request = {'model': model, 'cluster': {'chip': 'tpu7x', 'topology': '4x4x4'},
                   'config': {'per_device_batch_size': 1, **config}}
        judge_file(part, shell, f'{model} {config}', json.loads(program('estimate', '-', text=json.dumps(request))))


def main():
    keep('maxtext_keys', sorted(types.MaxTextConfig.model_fields))
    part = Part('configurations', "MaxText's pyconfig over what advise writes")
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    shell = Shell()
    filed, judged = set(), set()  # a plan in both of its requests is judged once
    for label, request in requests(limit):
        text = program('advise', '-', text=json.dumps(request))
        answer = json.loads(text) if text else None
        part.count('requests' if answer else 'requests that no plan of this block can answer')
        if answer and answer['model'].get('without_maxtext'):
            part.count('requests for a model that MaxText lacks, whose files are refused')
            continue
        if not answer or not answer['ranked']:
            part.count('requests without a plan that fits', 1 if answer else 0)
            continue
        for plan in answer['ranked']:
            key = json.dumps([plan['config'], answer['cluster']], sort_keys=True)
            if key not in judged:
                judge_plan(part, shell, label, answer, plan['rank'])
            judged.add(key)
        if label not in filed:
            judge_file(part, shell, label, answer)
        filed.add(label)
    judge_variants(part, shell)
    part.close()


if __name__ == '__main__':
    main()
