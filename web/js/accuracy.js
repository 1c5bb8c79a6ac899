// How far off predictions have been: of the measurements stored here, and of the published ones the constants are fitted to.

import './common.js';
import { failedPage } from './failure.js';
import { get } from './api.js';
import { calibrationPanel } from './calibration.js';
import { announce, fact, h, table } from './dom.js';
import { gib, percent, plural, signedPercent } from './format.js';
import { measurementsTable } from './measure.js';
import { measuredChart } from './measured_chart.js';
import { compiledPanel, publishedPanel } from './published.js';
import { filterForm } from './runs_filter.js';

const FILTERS = [
  ['project', 'Project'],
  ['label', 'Label'],
  ['model', 'Model'],
  ['chip', 'Chip'],
];

const runLink = (row) => [
  h('a', { href: `#/runs/${encodeURIComponent(row.run_id)}?plan=${row.rank}` }, row.label || row.model || row.run_id.slice(0, 13)),
  h('span', { class: 'second' }, [row.model, row.chip, row.topology].filter(Boolean).join(' ')),
];

function totals(answer) {
  return h(
    'dl',
    { class: 'facts' },
    fact('Measurements', String(answer.judged_count)),
    fact('Median error', percent(answer.median_abs_error_frac), `90 % of the errors are below ${percent(answer.p90_abs_error_frac)}`),
    fact('Bias', signedPercent(answer.bias_frac), 'median of the signed errors; below zero is predicted too short'),
    fact('Inside the interval', percent(answer.interval_coverage_frac, 0), 'promised: 90 %'),
  );
}

function groupsTable(groups) {
  return table(
    'Errors by chip and model',
    [
      { title: 'Chip, model' },
      { title: 'Measurements', number: true },
      { title: 'Median error', number: true },
      { title: 'Bias', number: true },
      { title: 'Inside the interval', number: true },
    ],
    groups.map((group) => [
      `${group.chip} ${group.model}`,
      String(group.judged_count),
      percent(group.median_abs_error_frac),
      signedPercent(group.bias_frac),
      percent(group.interval_coverage_frac, 0),
    ]),
  );
}

// One line of facts: how far predicted bytes are off.
const memoryFact = (title, count, errors) =>
  count > 0
    ? fact(
        title,
        plural(count, 'plan', 'plans'),
        `median ${percent(errors.median_abs_error_frac)}, 90 % below ${percent(errors.p90_abs_error_frac)}, bias ${signedPercent(errors.bias_frac)}`,
      )
    : null;

function memoryPanel(memory) {
  const { rows, measured } = memory;
  if (!rows.length && !measured.judged_count) return null;
  return h(
    'section',
    { class: 'panel' },
    h('h2', null, 'Memory: predicted, compiled, measured'),
    h(
      'dl',
      { class: 'facts' },
      memoryFact('Against the compiler', memory.compiled_count, memory),
      memoryFact('Against measured bytes', measured.judged_count, measured),
    ),
    rows.length ? compiledTable(rows) : null,
  );
}

function compiledTable(rows) {
  return table(
    'Memory of plans that the compiler has spoken of',
    [
      { title: 'Run' },
      { title: 'Compiled', number: true },
      { title: 'Predicted', number: true },
      { title: 'Error', number: true },
      { title: 'Measured', number: true },
    ],
    rows.map((row) => [
      runLink(row),
      gib(row.compiled_hbm_bytes_per_device),
      gib(row.predicted_hbm_bytes_per_device),
      signedPercent(row.hbm_error_frac),
      row.measured_hbm_bytes_per_device ? gib(row.measured_hbm_bytes_per_device) : '–',
    ]),
  );
}

export async function showAccuracy(place, query) {
  const asked = new URLSearchParams(query);
  const request = new URLSearchParams({ limit: 200 });
  for (const [name] of FILTERS) if (asked.get(name)) request.set(name, asked.get(name));
  const judged = [publishedPanel(), compiledPanel()].filter(Boolean);
  let answer;
  try {
    answer = await get(`/v1/accuracy?${request}`);
  } catch (error) {
    place.replaceChildren(h('div', { class: 'results' }, failedPage('Accuracy', error), judged));
    return;
  }
  const has = answer.rows.length > 0;
  const none = FILTERS.some(([name]) => request.has(name))
    ? 'Nothing is measured of such plans. Each entry is matched as a whole.'
    : 'Nothing is measured here yet. Open a stored run, choose a plan and its tab Measured, and paste the log of the training.';
  place.replaceChildren(
    h(
      'div',
      { class: 'results' },
      h(
        'section',
        { class: 'panel' },
        h('h1', null, 'Accuracy'),
        filterForm(asked, FILTERS, 'accuracy', 'Filter the measurements'),
        has ? totals(answer) : h('p', null, none),
        has ? measuredChart([...answer.rows].reverse(), { isShare: true }) : null,
        has ? groupsTable(answer.groups) : null,
        has ? measurementsTable(answer.rows, { caption: 'Measurements, newest first', first: 'Run', lead: runLink }) : null,
        answer.left_out_count ? h('p', { class: 'soft' }, `${plural(answer.left_out_count, 'measurement', 'measurements')} left out: ${answer.left_out[0].detail}.`) : null,
        answer.next_cursor ? h('p', { class: 'soft' }, 'The newest 200 are shown; the totals are of all.') : null,
      ),
      calibrationPanel(asked.get('project') ?? ''),
      memoryPanel(answer.memory) ?? '',
      judged,
    ),
  );
  announce(`${answer.rows.length} measurements`);
}
