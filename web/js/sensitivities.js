// Causes that would change the best plan: each hardware rate 10 % lower and higher, one step of batch, and where something else binds.

import { h, table } from './dom.js';
import { count, gib, percent, rounded, seconds, signedPercent, words } from './format.js';
import { verdict } from './memory_bar.js';
import { signedBar } from './signed_bar.js';

const NAMES = {
  peak_flops: 'Peak FLOP/s',
  hbm_bandwidth: 'HBM bandwidth',
  ici_link: 'ICI links',
  die_to_die: 'Die to die',
  dcn: 'Data-centre network',
  pcie: 'Host link (PCIe)',
};
const QUESTIONS = {
  fsdp_hidden_per_device_batch: 'Batch per device that hides FSDP',
  dcn_binds_slices_at_per_device_batch: 'Slices until their network binds, same batch per device',
  dcn_binds_slices_at_global_batch: 'Slices until their network binds, same global batch',
};

function ratesTable(rates) {
  if (!rates?.length) return null;
  const sizes = rates.flatMap((rate) => [rate.faster_step_time_change_frac, rate.slower_step_time_change_frac]);
  const scale = Math.max(...sizes.map(Math.abs).filter(Number.isFinite)) || 1;
  const matters = (rate) => Math.abs(rate.slower_step_time_change_frac) + Math.abs(rate.faster_step_time_change_frac);
  const sorted = [...rates].sort((a, b) => matters(b) - matters(a));
  const change = percent(rates[0].change_frac ?? 0.1, 0);
  const shown = (frac) => (frac === 0 ? 'no change' : signedPercent(frac));
  return table(
    'Step time when a hardware rate changes',
    [
      { title: 'Rate' },
      { title: `${change} faster`, number: true },
      { title: 'Step time' },
      { title: `${change} slower`, number: true },
    ],
    sorted.map((rate) => [
      h('span', { title: rate.fields?.join(', ') }, NAMES[rate.rate] ?? rate.rate),
      shown(rate.faster_step_time_change_frac),
      signedBar({ less: rate.faster_step_time_change_frac, more: rate.slower_step_time_change_frac, scale }),
      shown(rate.slower_step_time_change_frac),
    ]),
  );
}

const RULES = { 'batch-by-shards': 'the batch does not divide among the devices that share it' };

function batchTable(batches) {
  if (!batches?.length) return null;
  const cells = (batch) =>
    batch.broken_rule
      ? [count(batch.per_device_batch_size), '–', '–', '–', `not legal: ${RULES[batch.broken_rule] ?? words(batch.broken_rule.replaceAll('-', '_'))}`]
      : [
          count(batch.per_device_batch_size),
          [seconds(batch.step_time_s), h('span', { class: 'second' }, signedPercent(batch.step_time_change_frac))],
          rounded(batch.tokens_per_s_per_chip),
          gib(batch.hbm_bytes_per_device),
          verdict(batch.fit_verdict),
        ];
  return table(
    'The same plan with another batch',
    [
      { title: 'Batch/device', bare: true },
      { title: 'Step time', number: true },
      { title: 'Tokens/s/chip', number: true },
      { title: 'HBM/device', number: true },
      { title: 'Fit' },
    ],
    batches.map(cells),
  );
}

function breakEvens(rows) {
  if (!rows?.length) return null;
  return table(
    'Break-evens',
    [{ title: 'Where something else decides' }, { title: 'At', number: true }],
    rows.map((row) => [
      [QUESTIONS[row.name] ?? row.name, h('span', { class: 'second' }, row.sentence ?? '')],
      row.reached ? count(row.value) : 'not reached',
    ]),
  );
}

export function sensitivitiesPanel(sensitivities) {
  if (!sensitivities) return null;
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h3', null, 'What would change it'),
      h('p', { class: 'soft' }, 'This plan estimated again with one thing changed; mesh, placements and tiles stay.'),
    ),
    h('div', { class: 'columns wide-right' }, ratesTable(sensitivities.rates), batchTable(sensitivities.batch)),
    breakEvens(sensitivities.break_evens),
  );
}
