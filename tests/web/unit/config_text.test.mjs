import assert from 'node:assert/strict';
import test from 'node:test';
import { configToCommand, configToLines, parseConfig, parseFlags, parseValue } from '../../../web/js/config_text.js';

test('key=value lines become typed values', () => {
  const { value, errors } = parseConfig(
    'per_device_batch_size=2.5\nremat_policy=custom\nscan_layers=True\ndtype=\'bfloat16\'\nmlp_activations=["silu", "linear"]\nquantization=\n',
  );
  assert.deepEqual(errors, []);
  assert.deepEqual(value, {
    per_device_batch_size: 2.5,
    remat_policy: 'custom',
    scan_layers: true,
    dtype: 'bfloat16',
    mlp_activations: ['silu', 'linear'],
    quantization: '',
  });
});

test('a whole command line gives its settings and the flags in its environment', () => {
  const text =
    'export LIBTPU_INIT_ARGS="--xla_a=1 --xla_b=true" && \\\npython3 -m MaxText.train maxtext/configs/base.yml \\\n  model_name=llama3.1-70b steps=30 \\\n  run_name=x';
  const { value, flags, errors } = parseConfig(text);
  assert.deepEqual(errors, []);
  assert.deepEqual(value, { model_name: 'llama3.1-70b', steps: 30, run_name: 'x' });
  assert.deepEqual(flags, ['--xla_a=1', '--xla_b=true']);
});

test('YAML lines and comments are read', () => {
  const { value, errors } = parseConfig('# the recipe\nici_fsdp_parallelism: -1  # the rest\nrun_name: two words\n');
  assert.deepEqual(errors, []);
  assert.deepEqual(value, { ici_fsdp_parallelism: -1, run_name: 'two words' });
});

test('a YAML file of MaxText is read, and its lists of rules are passed over by name', () => {
  const text = `---
remat_policy: 'full'
mlp_activations:
  - silu
  - "linear"
logical_axis_rules:
  - ['activation_batch', ['data', 'fsdp']]
  - ['mlp', ['tensor']]

data_sharding: [['data', 'stage']]
context_rules: [
  [a, [b]],
]
remat_policy_for_vit:
quantization: ''  # none
a_mapping:
- x: 1
steps: 3
...
`;
  assert.deepEqual(parseConfig(text), {
    value: { remat_policy: 'full', mlp_activations: ['silu', 'linear'], data_sharding: [['data', 'stage']], remat_policy_for_vit: null, quantization: '', steps: 3 },
    flags: [],
    passedOver: ['logical_axis_rules', 'context_rules', 'a_mapping'],
    errors: [],
  });
  assert.match(parseConfig('a_list:\n  - b: 1\nwhat').errors[0].detail, /^Line 3: “what”/);
});

test('settings may come as flags, or with spaces at the sign', () => {
  const { value, flags, errors } = parseConfig('--remat_policy=full\nopt_type = adamw\nrun_name = "my run"\nsteps =3\n--xla_a=1\nquantization= x=1');
  assert.deepEqual(errors, []);
  assert.deepEqual(value, { remat_policy: 'full', opt_type: 'adamw', run_name: 'my run', steps: 3, quantization: '', x: 1 });
  assert.deepEqual(flags, ['--xla_a=1']);
  assert.deepEqual(parseConfig('python3 train.py --cluster=a steps=3').value, { steps: 3 });
});

test('a JSON object is taken as it is, and broken JSON is said', () => {
  assert.deepEqual(parseConfig('{"steps": 3, "a": null}').value, { steps: 3, a: null });
  assert.match(parseConfig('{"steps": 3,').errors[0].detail, /not valid JSON/);
});

test('a line that is no setting is named by its number', () => {
  const { errors } = parseConfig('steps=3\nwhat is this\n');
  assert.match(errors[0].detail, /^Line 2: “what”/);
});

test('a key given twice is refused instead of one silently winning', () => {
  assert.match(parseConfig('steps=3\nsteps=4').errors[0].detail, /steps is given twice, in lines 1 and 2/);
});

test('values that only look like numbers stay text', () => {
  assert.equal(parseValue('4x4x4'), '4x4x4');
  assert.equal(parseValue('1.2.3'), '1.2.3');
  assert.equal(parseValue('-1'), -1);
  assert.equal(parseValue('1e-5'), 1e-5);
});

test('flags come as one string, as lines or as an export', () => {
  const expected = ['--xla_a=1', '--xla_b=2'];
  assert.deepEqual(parseFlags('--xla_a=1 --xla_b=2'), expected);
  assert.deepEqual(parseFlags('--xla_a=1 \\\n--xla_b=2\n'), expected);
  assert.deepEqual(parseFlags('export LIBTPU_INIT_ARGS="--xla_a=1\n --xla_b=2"'), expected);
});

test('settings survive the way out and in again', () => {
  const config = { a: 1, b: 'two words', c: true, d: 'x', e: "it's", f: [1, 'z'] };
  for (const more of [{}, { g: 'a #b', h: '# x', i: "it's # two 'quotes'", j: '3', k: 'true', l: '', m: null }]) {
    const { value, errors } = parseConfig(configToLines({ ...config, ...more }));
    assert.deepEqual(errors, []);
    assert.deepEqual(value, { ...config, ...more });
  }
  assert.equal(configToLines({ e: "it's" }), "e='it'\\''s'");
});

test('the command is one a shell can run', () => {
  assert.equal(
    configToCommand({ steps: 3 }, ['--xla_a=1']),
    'LIBTPU_INIT_ARGS="--xla_a=1" \\\npython3 -m maxtext.trainers.pre_train.train maxtext/configs/base.yml \\\n  steps=3',
  );
});
