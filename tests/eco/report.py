#!/usr/bin/env python3
"""report.py: the page of the eco test, from the results of its parts. usage: report.py VERSIONS > report.md"""
import json
import re
import sys

from eco import OUT

PARTS = ['configurations', 'clusters', 'hugging_face', 'recipes', 'validators', 'meshes']

print('# What the real tools say\n')
print('Written by `make eco-test`, which installs them in an environment of its own: ' + sys.argv[1] + '.\n')
for name in PARTS:
    part = json.load(open(OUT / f'{name}.json'))
    print(f'## {part["title"]}\n\n| count | of |\n|---|---|')
    for what, count in part['counts'].items():
        print(f'| {count} | {what} |')
    print(f'\nDisagreements: {len(part["disagreements"])}.\n')
    for case, says in part['disagreements']:
        says = re.sub(r'^.*?Value error, | \[type=.*', '', says).replace('`', ' ')
        print(f'- {case}: {says[:120]}')
    if part['disagreements']:
        print()
