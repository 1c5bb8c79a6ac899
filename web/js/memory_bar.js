// Device memory against the limit. Every moment of the step has its own stack: what is always there and what is there then.

import { linkRows, stackedBars, swatch } from './bar.js';
import { h, table } from './dom.js';
import { gib, percent, probability, words } from './format.js';

const MOMENTS = [
  ['loss', 'Loss'],
  ['backward', 'Backward'],
  ['update', 'Update'],
];
export const MOMENT_TEXT = {
  loss: 'At the loss',
  backward: 'At the start of the backward pass',
  update: 'At the optimizer update',
  always: 'All the time',
};

// One row per name: {name, index, bytes: {always, loss, backward, update}}; the index is the part's letter and colour.
export function memoryRows(parts) {
  const rows = new Map();
  for (const part of parts) {
    const row = rows.get(part.name) ?? { name: part.name, index: rows.size, bytes: {} };
    row.bytes[part.at] = (row.bytes[part.at] ?? 0) + part.bytes;
    rows.set(part.name, row);
  }
  return [...rows.values()];
}

// [{at, title, label, total, parts: [{name, index, bytes}]}] for the moments that occur; one stack when all is always there.
export function memoryStacks(parts) {
  const rows = memoryRows(parts);
  const moments = MOMENTS.filter(([at]) => parts.some((part) => part.at === at));
  return (moments.length ? moments : [['always', 'Always']]).map(([at, title]) => {
    const stacked = rows.map((row) => ({
      name: row.name,
      index: row.index,
      bytes: (row.bytes.always ?? 0) + (at === 'always' ? 0 : (row.bytes[at] ?? 0)),
    }));
    return { at, title, label: MOMENT_TEXT[at], parts: stacked, total: stacked.reduce((all, part) => all + part.bytes, 0) };
  });
}

export function verdict(name, title = null) {
  return h('span', { class: `verdict verdict-${name}`, title }, words(name));
}

// How surely a plan fits: "tight, fits with a probability of 38.0 %".
export function fitText({ fit_verdict: name, fit_probability: chance }) {
  if (!Number.isFinite(chance)) return words(name);
  if (name === 'does_not_fit') return `does not fit with a probability of ${probability(1 - chance)}`;
  return `${name === 'fits' ? '' : `${words(name)}, `}fits with a probability of ${probability(chance)}`;
}

export const fitVerdict = (estimate) => verdict(estimate.fit_verdict, fitText(estimate));

// Of a stored run, whose row says whether XLA would refuse it and only perhaps how surely it fits.
export function verdictOfRun({ fits, fit_verdict: name, hbm_bytes_per_device: bytes, hbm_limit_bytes_per_device: limit }) {
  if (name) return name;
  if (fits === null || fits === undefined) return null;
  if (!fits) return 'does_not_fit';
  return bytes > limit ? 'tight' : 'fits_or_tight';
}

function partsTable(stacks) {
  const cell = (bytes) => (bytes > 0 ? gib(bytes) : '–');
  return table(
    'Memory parts of one device at each moment',
    [{ title: 'Part' }, ...stacks.map((stack) => ({ title: stack.title, number: true }))],
    stacks[0].parts.map((part, index) => [
      [swatch(part.index), ' ', words(part.name)],
      ...stacks.map((stack) => cell(stack.parts[index].bytes)),
    ]),
    { footer: ['Sum', ...stacks.map((stack) => gib(stack.total))] },
  );
}

export function memoryBar(estimate) {
  const limit = estimate.hbm_limit_bytes_per_device;
  const stacks = memoryStacks(estimate.hbm_parts ?? []);
  const largest = Math.max(estimate.hbm_bytes_per_device ?? 0, ...stacks.map((stack) => stack.total));
  const verb = estimate.fit_verdict === 'does_not_fit' ? 'needed' : 'used';
  const used = `${gib(estimate.hbm_bytes_per_device)} of ${gib(limit)} ${verb} on each device (${percent(estimate.hbm_bytes_per_device / limit)})`;
  const chart = stackedBars({
    label: `Memory: ${used}. ${stacks.map((stack) => `${stack.label}: ${gib(stack.total)}`).join('. ')}. The parts are in the table.`,
    scale: Math.max(limit ?? 0, largest) * 1.02 || 1,
    limit: limit ? { value: limit, label: `limit ${gib(limit)}` } : null,
    rows: stacks.map((stack) => ({
      label: `${stack.label} · ${gib(stack.total)}`,
      parts: stack.parts.map((part) => ({
        index: part.index,
        value: part.bytes,
        title: `${words(part.name)}: ${gib(part.bytes)}`,
      })),
    })),
  });
  const list = partsTable(stacks);
  linkRows(chart, list.querySelectorAll('tbody tr'));
  const host =
    estimate.host_bytes_per_host > 0
      ? h(
          'p',
          { class: 'soft' },
          `Host memory: ${gib(estimate.host_bytes_per_host)} of ${gib(estimate.host_limit_bytes_per_host)} on each host.`,
        )
      : null;
  return h(
    'section',
    { class: 'panel' },
    h('div', { class: 'panel-head' }, h('h3', null, 'Memory'), h('p', null, used), fitVerdict(estimate)),
    h('div', { class: 'beside' }, h('div', null, chart, host), list),
  );
}
