#!/usr/bin/env python3
"""validators.py [--update]: every refusal in MaxText's validators, and what stands for it here.

validators.json has a line for each `raise` of configs/types.py: the rule of lint that says the same, or why there is
none. A refusal that the file does not have, or one that is gone from MaxText, is a disagreement."""
import ast
import importlib.util
import json
import pathlib
import re
import sys

from eco import ROOT, Part

STORE = ROOT / 'tests/eco/validators.json'

# Checks that are not for a training on TPUs, or that a rule of plans makes: by function or condition.
ELSEWHERE = [
    (r'validate_te|te_moe_block|te_comm|hardware|cudnn|max_segments_per_seq <= 0', 'not: GPUs only'),
    (r'set_derived_values_and_validate', 'not: reinforcement learning, which has no model here'),
    (r'distill_|schedule != .constant', 'not: the schedules of distillation'),
    (r"context_parallel_strategy == 'ring'", 'rule: context-ring'),
    (r"context_parallel_strategy == 'ulysses'|ulysses_context_sharding", 'rule: context-ulysses'),
    (r'_validate_usp_context_parallelism', 'rule: context-usp'),
    (r'compress_ratio', 'rule: compressed-context'),
    (r'attention_type=.compressed|AttentionType.COMPRESSED.value && self.dq', 'rule: dq-reduction-steps'),
    (r'gdn_context_parallel_size', 'rule: linear-context'),
    (r'first_num_hash_layers', 'rule: hash-routing'),
    (r'fsdp_size > 1', 'rule: optimizer-over-data'),
    (r'get_individual_scales', 'rule: global_parameter_scale of the model'),
    (r'interleave_moe_layer_step != 0|scan_layers.*(gemma4|Deepstack)|(gemma4-e2b|deepstack).*scan_layers', 'rule: scan-cycle'),
    (r'num_vocab_tiling != 0', 'rule: vocab-tiling'),
    (r'Multimodal is (not yet|only) supported for', 'rule: vision-models'),
    (r"opt_type == 'muon'", 'rule: muon-decoder'),
    (r'DEEPSEEK4 -> .*dot_product|supports_dot_product', 'rule: sparse-attention-kernel'),
    (r'context_parallel_strategy not in|context_sharding not in|elastic_backup_kind not in', 'rule: the allowed values of the key'),
    (r'not self.num_slices > 1', 'rule: dcn-product'),
    (r'engram', 'rule: engram-tokenizer'),
    (r'_load_mesh_config|chat_template|XLA_FLAGS|internal_compile|forced_routing|video_max_grid', 'not: files, variables and tools around the configuration'),
    (r'total_fraction', 'not: the learning rate, which no plan depends on'),
    (r'dpo\.', 'not: keys inside a key'),
]

ARITHMETIC = r'max_blocks|num_transformer_fragments|rotary_dim'  # a row of lint compares keys as they are


def refusals(source):
    """(line, function, condition, text) of every raise."""
    found = []

    def walk(node, conditions, function):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                walk(child, [], child.name)
            elif isinstance(child, ast.Raise):
                found.append((child.lineno, function, ' && '.join(conditions), ast.unparse(child.exc) if child.exc else ''))
            elif isinstance(child, ast.If):
                test = ast.unparse(child.test)
                walk(ast.Module(child.body, []), conditions + [test], function)
                walk(ast.Module(child.orelse, []), conditions + [f'not({test})'], function)
            else:
                walk(child, conditions, function)
    walk(ast.parse(source), [], '')
    return sorted(found)


def lint_rows():
    text = (ROOT / 'engine/maxtext/lint_rule_rows.c').read_text()
    return {int(line): name for name, line in re.findall(r'\{\s*"([a-z0-9-]+)",\s*(\d+),', text)}


def stands_for(refusal, rows):
    line, function, condition, text = refusal
    if re.search(ARITHMETIC, condition):
        return 'not: a sum or product of keys; a row of lint compares keys as they are'
    near = [rows[at] for at in (line, line - 1, line + 1, line - 2, line - 3) if at in rows]
    if near:
        return f'lint: {near[0]}'
    for pattern, answer in ELSEWHERE:
        if re.search(pattern, f'{function} {condition} -> {text}'):
            return answer
    return 'missed'


def main():
    part = Part('validators', "refusals of MaxText's validators and what stands for them")
    types = pathlib.Path(importlib.util.find_spec('maxtext').origin).parent / 'configs/types.py'
    rows = lint_rows()
    now = [{'line': r[0], 'in': r[1], 'here': stands_for(r, rows)} for r in refusals(types.read_text())]
    if '--update' in sys.argv:
        STORE.write_text('[\n' + ',\n'.join(json.dumps(row) for row in now) + '\n]\n')
    stored = {(row['line'], row['in']): row['here'] for row in json.loads(STORE.read_text())}
    for row in now:
        kind = row['here'].split(':')[0]
        part.count({'lint': 'are rows of lint', 'rule': 'are rules of plans and keys', 'not': 'do not apply, with the reason',
                    'missed': 'are missed'}[kind])
        if stored.get((row['line'], row['in'])) != row['here']:
            part.disagree(f'types.py:{row["line"]} {row["in"]}', f'is stored as {stored.get((row["line"], row["in"]))}, is {row["here"]}')
    for line, function in stored.keys() - {(row['line'], row['in']) for row in now}:
        part.disagree(f'types.py:{line} {function}', 'is stored, and is not in MaxText')
    part.close()


if __name__ == '__main__':
    main()
