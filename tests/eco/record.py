#!/usr/bin/env python3
"""record.py: what the real tools said, for the part of the test that needs no network. usage: record.py VERSIONS"""
import json
import sys

from eco import OUT, ROOT

names = ['maxtext_keys', 'xpk_types']
facts = {'versions': sys.argv[1], **{name: json.loads((OUT / f'{name}.recorded').read_text()) for name in names}}
(ROOT / 'tests/eco/recorded.json').write_text(json.dumps(facts, separators=(',', ':')).replace('],', '],\n') + '\n')
