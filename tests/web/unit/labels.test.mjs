// The words of the API in the words of the page.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { LABELS, placeOf, spoken, spokenAt } from '../../../web/js/labels.js';

test('the labels are those of the form', () => {
  const html = readFileSync(new URL('../../../web/index.html', import.meta.url), 'utf8');
  for (const [name, label] of Object.entries(LABELS)) assert.ok(new RegExp(`<label for="${name}">${label}( <|<)`).test(html), name);
});

test('a member of the request is called what its entry is called', () => {
  assert.equal(spokenAt('`seq_len` is -1, must be from 1 to 16777216', 'seq_len', 'Sequence length'), 'Sequence length is -1, must be from 1 to 16777216');
  assert.equal(spokenAt('at most `top_k` of them', 'top_k', 'Plans to show'), 'at most “Plans to show” of them');
  assert.equal(spokenAt('`q_len` is 0', 'q_len', 'q_len'), '`q_len` is 0', 'an entry that has the name of its member');
  assert.equal(spoken('search.fit_probability=0.73 ranks it'), '“Probability to fit” 0.73 ranks it');
  assert.equal(spoken('give cluster.price_usd_per_chip_hour'), 'give a price: “Price” under Options, or that of each machine');
  assert.equal(spoken('it works with seq_len=128'), 'it works with a sequence length of 128');
  assert.equal(spoken('with tokens_per_step=8192 or per_device_batch_size=1'), 'with a batch of 8192 tokens per step or per_device_batch_size=1', 'keys of MaxText stay');
  assert.equal(spoken('2 machines times top_k 100 are 200 plans'), '2 machines times 100 plans to show are 200 plans');
  assert.doesNotMatch(spoken('GET /v1/catalog/models lists them; own models are given as an object of MaxText keys or as {"hf_config": {…}}'), /GET|hf_config/);
  assert.equal(spoken('roofline at the request\'s MFU of 0.4'), 'roofline at the form’s MFU of 0.4');
  assert.equal(spoken('compare runs of one length, or say "allow_unlike": ["sequence_length"]'), 'compare runs of one length, or tick the box that allows it');
  assert.equal(spoken('search.axes has none left'), 'search.axes has none left', 'what the form has no entry for keeps its name');
});

test('a remark says which entry it is about', () => {
  assert.deepEqual(placeOf('/config/foo'), { place: '', key: 'foo' });
  assert.deepEqual(placeOf('/pins/quantization'), { place: 'Pinned settings', key: 'quantization' });
  assert.deepEqual(placeOf('/baseline/xla_flags/0'), { place: 'My configuration', key: '' });
  assert.deepEqual(placeOf('/workload/quantization'), { place: 'Number format of matrix products', key: '' });
  assert.deepEqual(placeOf('/tile/block_q'), { place: '', key: 'block_q' });
  assert.deepEqual(placeOf(undefined), { place: '', key: '' });
});

test('how a baseline is set is said as the page does it', () => {
  const note = 'no baseline is set (PUT /v1/baselines/{project}/{label}): run 1 stands in';
  assert.equal(spoken(note), 'no baseline is set (open a run and make it the baseline there): run 1 stands in');
});
