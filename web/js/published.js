// The published and the compiled steps that the constants are fitted to: how far off their predictions are, from the reports that
// the bundler puts in.

import { h, table } from './dom.js';
import { plural } from './format.js';
import { inline } from './inline.js';

const LEFT_OUT = /^left out: /;
const ERRORS = /^(left out: )?(median|p90|max|bias|inside the interval|interval)$/;
const PERCENT = / %$/;
const PROSE = /ledger|missing/;
const TITLES = {
  rows: 'steps',
  interval: '90 % interval',
  'measured s': 'measured, s',
  'predicted s': 'predicted, s',
  ledger: 'largest parts of the prediction, s',
  row: 'step',
  'fit_probability from': 'probability to fit, from',
  'on average': 'probability, on average',
  expected: 'it was expected to take',
  drawn: 'drawn at random',
};

// Of a table of rows by many kinds those of each chip, and of all. Pure.
export function byChip({ head, rows }) {
  if (head[0] !== 'by') return { head, rows };
  const wanted = [...rows.filter(([kind]) => kind === 'chip'), ...rows.filter(([kind, name]) => kind === 'all' && name === 'all rows')];
  return { head: ['chip', ...head.slice(2)], rows: wanted.map(([, name, ...errors]) => [name === 'all rows' ? 'all chips' : name, ...errors]) };
}

// Heads that can be told apart, and percent where percent is meant: {columns, rows}; years newest first. Pure.
export function readPublished({ head, rows }) {
  const from = head.findIndex((title) => LEFT_OUT.test(title));
  const names = head
    .map((title) => title.replace(PERCENT, ''))
    .map((title, at) => (from >= 0 && at > from && ['p90', 'max'].includes(title) ? `left out: ${title}` : title));
  const isPercent = names.map((name, at) => ERRORS.test(name) || PERCENT.test(head[at]));
  const withUnit = (cell, at) => (isPercent[at] && /\d$/.test(cell) ? `${cell} %` : cell);
  const filled = rows.map((row) => row.map(withUnit));
  return {
    columns: names.map((name, at) => ({ title: TITLES[name] ?? name, number: at > 0 && !PROSE.test(name), prose: PROSE.test(name) })),
    rows: /^year/.test(head[0]) ? filled.sort((a, b) => Number(b[0]) - Number(a[0])) : filled,
  };
}

function draw(what, published) {
  const { columns, rows } = readPublished(published);
  const by = columns[0].title;
  const list = table(`${what} by ${by}`, columns, rows.map((row) => row.map((cell, at) => (columns[at].prose ? inline(cell) : cell))));
  return rows.length > 12 ? h('details', null, h('summary', null, `By ${by}, ${plural(rows.length, 'row', 'rows')}`), list) : list;
}

function panel(title, meaning, tables) {
  if (!tables.length) return null;
  return h('section', { class: 'panel' }, h('h2', null, title), h('p', { class: 'soft' }, meaning), tables.map((one) => draw(title, one)));
}

export const publishedPanel = () =>
  panel(
    'Published steps',
    'How far off the predictions of the published steps are that the constants are fitted to: below zero is predicted too short, and 90 % of the errors are below p90. “Left out”: fitted again without the step’s model and predicted then. That is at best what a new model sees, as terms were revised while looking at these steps; and the intervals are half as wide again as the left-out errors ask for, up to 14 %.',
    typeof PUBLISHED === 'undefined' ? [] : PUBLISHED,
  );

export const compiledPanel = () =>
  panel(
    'Compiled steps',
    'How far off the predicted memory is from what XLA counts when it compiles the step, and whether its verdict, fits or not, was foreseen. The counts of memory are fitted on these steps; the last table has what was drawn at random, first plans of jobs and configurations that nobody advised, by what was predicted before they were compiled.',
    typeof COMPILED === 'undefined' ? [] : COMPILED,
  );
