#!/usr/bin/env python3
"""hugging_face.py: a Hugging Face configuration against MaxText's own file of that model, both settled by pyconfig."""
import json
import pathlib

import judge
import yaml
from eco import ROOT, Part, Shell, artifact, program
from maxtext.configs import types

# Not the decoder: the tokenizer, and what looks at pictures and listens.
APART = ('tokenizer', 'image', 'vision', '_for_vit', 'load_balance')
# Where a published configuration and MaxText's file are of different opinion, with the reason.
KNOWN = {('gemma3-4b', 'vocab_size'): 'the published table has 64 rows more than MaxText loads'}


def main():
    part = Part('hugging_face', "Hugging Face configurations against MaxText's model files")
    shell = Shell()
    folder = pathlib.Path(types.__file__).parent / 'models'
    for file in sorted((ROOT / 'tests/data/hf').glob('*.json')):
        own = folder / f'{file.stem}.yml'
        if not own.exists():
            part.count('without a model file in MaxText')
            continue
        request = {'model': {'hf_config': json.load(open(file))}, 'cluster': {'chip': 'tpu7x', 'topology': '2x2x1'},
                   'config': {'per_device_batch_size': 1}}
        answer = program('estimate', '-', text=json.dumps(request))
        started = shell.start(artifact('maxtext.sh', json.loads(answer))) if answer else {'error': 'refused'}
        if 'error' in started:
            part.disagree(file.stem, started['error'])
            continue
        ours = judge.settled(started['argv'][2:])
        theirs = judge.settled([f'model_name={file.stem}', 'run_name=eco', 'base_output_directory=/tmp/eco'])
        part.count('models compared')
        for key in yaml.safe_load(open(own)):
            if any(word in key for word in APART):
                continue
            part.count('keys compared')
            if ours.get(key) != theirs.get(key):
                if (file.stem, key) in KNOWN:
                    part.count(f'known difference: {file.stem} {key}, {KNOWN[file.stem, key]}')
                else:
                    part.disagree(file.stem, f'{key} is {ours.get(key)}, in the file {theirs.get(key)}')
    part.close()


if __name__ == '__main__':
    main()
