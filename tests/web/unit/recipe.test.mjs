import assert from 'node:assert/strict';
import test from 'node:test';
import { parseConfig } from '../../../web/js/config_text.js';
import { isRecipe, stateOfRecipe } from '../../../web/js/recipe.js';
import { buildRequest, DEFAULTS, stateOfRequest } from '../../../web/js/request.js';
import { suggestionsOf } from '../../../web/js/suggestions.js';

const ANSWER = {
  model: { name: 'llama3.1-70b', config: { model_name: 'llama3.1-70b' } },
  cluster: { chip: 'tpu7x', topology: '4x8x8', slices: 2, devices: 1024 },
  config: { model_name: 'llama3.1-70b', per_device_batch_size: 2, max_target_length: 4096, opt_type: 'adam_pax', run_name: 'a', dataset_path: '${HOME}/data', remat_policy: 'full' },
  xla_flags: ['--xla_a=1', '--xla_b=2'],
};

test('scripts, submitting commands and manifests are recipes; settings and one command line are not', () => {
  const recipes = ['#!/bin/bash\necho', 'BATCH=2\npython3 train.py per_device_batch_size=$BATCH', 'xpk workload create --tpu-type=v6e-16', 'gcluster job submit', 'apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet', 'name=$(date)'];
  for (const text of recipes) assert.ok(isRecipe(text), text);
  const settings = ['', 'remat_policy=full\nper_device_batch_size=2', 'remat_policy: full', '{"run_name": "$HOME"}', 'python3 -m maxtext.trainers.pre_train.train base.yml remat_policy=full', '# xpk\nremat_policy=full'];
  for (const text of settings) assert.ok(!isRecipe(text), text);
});

test('the form gets what a recipe says, in settings that it reads back, without what only the run knows', () => {
  const { state, said } = stateOfRecipe(ANSWER);
  assert.deepEqual(
    { ...state, config: undefined },
    { model_kind: 'catalog', model: 'llama3.1-70b', chip: 'tpu7x', topology: '4x8x8', slices: '2', seq_len: '4096', batch_kind: 'global_batch_sequences', batch: '2048', xla_flags: '--xla_a=1\n--xla_b=2', config: undefined },
  );
  assert.ok(!isRecipe(state.config), 'it is read once');
  assert.deepEqual(parseConfig(state.config).value, { per_device_batch_size: 2, max_target_length: 4096, opt_type: 'adam_pax', remat_policy: 'full' });
  assert.equal(said, 'Read as a recipe: llama3.1-70b on tpu7x 4x8x8 × 2, 4 settings, 2 XLA flags. All of it is in the form now.');
});

test('a model that the catalog has not comes as its dimensions', () => {
  const { state } = stateOfRecipe({ ...ANSWER, model: { name: 'mine', config: { base_emb_dim: 64 } } });
  assert.deepEqual([state.model_kind, JSON.parse(state.model_text)], ['dims', { base_emb_dim: 64 }]);
});

test('beside my configuration the form says its own number format, and leaves the others to the configuration', () => {
  const config = 'opt_type=adam_pax\nquantization=int8';
  const { body } = buildRequest({ ...DEFAULTS, model: 'llama3.1-8b', config }, 128);
  assert.deepEqual([body.workload.quantization, 'optimizer' in body.workload], ['none', false]);
  assert.equal(stateOfRequest(body).quantization, '');
  const asked = buildRequest({ ...DEFAULTS, model: 'llama3.1-8b', config, quantization: 'int8' }, 128);
  assert.equal(asked.body.workload.quantization, 'int8');
  assert.equal('quantization' in buildRequest({ ...DEFAULTS, model: 'llama3.1-8b' }, 128).body.workload, false);
});

test('hints without backticks, and those of renamed keys, have suggestions too', () => {
  assert.deepEqual(suggestionsOf('did you mean remat_policy?'), ['remat_policy']);
  assert.deepEqual(suggestionsOf('did you mean `a` or `b`?'), ['a', 'b']);
  assert.deepEqual(suggestionsOf('use base_output_directory'), ['base_output_directory']);
  assert.deepEqual(suggestionsOf('use a run of an estimate'), []);
});
