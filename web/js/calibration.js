// Calibrations of projects by their own measurements: fitted, looked at, put in force and reverted.

import { get, post } from './api.js';
import { connectAsk } from './ask.js';
import { announce, h, table } from './dom.js';
import { errorSummary } from './errors.js';
import { failure } from './failure.js';
import { dateTime, percent, plural, seconds, signedPercent } from './format.js';
import { inline, sentenceOf } from './inline.js';

const pathOf = (row, change) => `/v1/calibrations/${encodeURIComponent(row.calibration_id)}${change ? `/${change}` : ''}`;

// The factor on each chip's predictions, how far the measurements are trusted, and the effect on the error.
function factors(row) {
  const line = (chip, what, fit) =>
    fit.measurements_count
      ? h(
          'span',
          { class: 'second' },
          `${chip} ${what} ${signedPercent(fit.correction_frac)} from ${plural(fit.measurements_count, 'measurement', 'measurements')}${fit.plans_count ? ` of ${plural(fit.plans_count, 'plan', 'plans')}` : ''}, trusted ${percent(fit.weight_frac, 0)}; mean error ${percent(fit.mean_abs_error_published_frac)}, then ${percent(fit.mean_abs_error_calibrated_frac)}`,
        )
      : null;
  return row.chips.flatMap(({ chip, step_time: time, hbm }) => [line(chip, 'step time', time), line(chip, 'memory', hbm)]);
}

const runOf = (plan, before = '') => h('a', { href: `#/runs/${encodeURIComponent(plan.run_id)}?plan=${plan.rank}` }, `${before}${plan.run_id.slice(0, 13)}`);

// Every measured plan before and after; asked for when it is opened.
function effect(row) {
  const place = h('div');
  const box = h('details', null, h('summary', null, 'Effect on every measured plan'), place);
  box.addEventListener('toggle', async () => {
    if (!box.open || place.children.length) return;
    try {
      const { rows, left_out: leftOut } = await get(pathOf(row));
      place.replaceChildren(
        table(
          'Measured plans before and after',
          [
            { title: 'Run' },
            { title: 'Measured', number: true },
            { title: 'Published fit', number: true },
            { title: 'Calibrated', number: true },
          ],
          rows.map((plan) => [
            runOf(plan, `${plan.chip} `),
            seconds(plan.measured_step_time_s),
            [seconds(plan.published_step_time_s), h('span', { class: 'second' }, signedPercent(plan.error_published_frac))],
            [seconds(plan.calibrated_step_time_s), h('span', { class: 'second' }, signedPercent(plan.error_calibrated_frac))],
          ]),
        ),
        ...leftOut.map((plan) => h('p', { class: 'soft' }, 'Left out, ', runOf(plan), `: ${plan.detail}`)),
      );
    } catch (error) {
      place.replaceChildren(failure(error));
    }
  });
  return box;
}

// Another catalog is another engine, too: its predictions are others.
function fittedBy({ fitted_by: by }) {
  return by ? `engine ${by.version} (catalog ${by.catalog_hash})` : 'an engine of an earlier release';
}

// What of it should be known before it is trusted.
function remarks(row) {
  return [
    row.outdated
      ? h('span', { class: 'second' }, `Fitted by ${fittedBy(row)}, which is not this one: what it corrects may be corrected by now. Fit the project again, and activate that.`)
      : null,
    row.refusal ? h('span', { class: 'second' }, 'It cannot be put in force: ', inline(sentenceOf(row.refusal))) : null,
    row.left_out_count ? h('span', { class: 'second' }, `${plural(row.left_out_count, 'measurement', 'measurements')} left out: the engine does not price the plan, or it is on what-if hardware.`) : null,
  ];
}

function changeButton(row, redraw) {
  if (row.refusal && !row.active) return '–';
  const change = row.active ? 'revert' : 'activate';
  const button = h('button', { type: 'button', class: 'small' }, row.active ? 'Revert' : 'Activate');
  const said = h('div');
  button.addEventListener('click', async () => {
    try {
      await post(pathOf(row, change)); // it takes no body
      announce(row.active ? 'It is no longer in force' : 'It is in force');
      await redraw();
    } catch (error) {
      said.replaceChildren(failure(error));
    }
  });
  return [button, said];
}

function list(calibrations, redraw) {
  if (!calibrations.length) return h('p', { class: 'soft' }, 'No project is calibrated.');
  return table(
    'Calibrations, newest first',
    [{ title: 'Project' }, { title: 'Factors' }, { title: 'In force' }, { title: 'Change' }],
    calibrations.map((row) => [
      [row.project, h('span', { class: 'second' }, dateTime(row.created_at))],
      [factors(row), remarks(row), effect(row)],
      [
        row.active ? h('span', { class: 'verdict verdict-fits' }, 'in force') : 'no',
        row.outdated ? [' ', h('span', { class: 'verdict verdict-tight' }, 'outdated')] : null,
      ],
      changeButton(row, redraw),
    ]),
  );
}

function fitForm(project, redraw) {
  const done = h('p', { class: 'soft', role: 'status', tabindex: '-1' });
  const form = h(
    'form',
    { class: 'inline-form', novalidate: true, 'aria-label': 'Calibrate a project' },
    errorSummary('calibrate-problem'),
    h('div', { class: 'field' }, h('label', { for: 'calibrate-project' }, 'Project'), h('input', { type: 'text', id: 'calibrate-project', autocomplete: 'off', value: project })),
    h('button', { type: 'submit' }),
  );
  const read = () => form.querySelector('#calibrate-project').value.trim();
  const ask = connectAsk({
    form,
    results: done,
    build: () => ({
      path: '/v1/calibrations',
      body: { project: read() },
      errors: read() ? [] : [{ pointer: '/project', detail: 'Name the project whose measurements are fitted.' }],
      locate: (pointer) => ({ field: pointer === '/project' ? 'calibrate-project' : null, below: '' }),
    }),
    label: () => 'Fit',
    failed: () => done.replaceChildren(),
    show: async (body, answer) => {
      done.textContent = `Fitted on ${plural(answer.rows.length, 'measurement', 'measurements')}${answer.left_out_count ? `, ${answer.left_out_count} left out` : ''}; nothing changes until it is activated.`;
      await redraw();
    },
  });
  ask.relabel();
  return [form, done];
}

// project: what the page is filtered by, or ''.
export function calibrationPanel(project) {
  const shown = h('div');
  const redraw = async () => {
    try {
      const { calibrations } = await get(`/v1/calibrations?${new URLSearchParams(project ? { project } : {})}`);
      shown.replaceChildren(list(calibrations, redraw));
    } catch (error) {
      shown.replaceChildren(failure(error));
    }
  };
  redraw();
  return h(
    'section',
    { class: 'panel' },
    h('h2', null, 'Calibration'),
    h('p', { class: 'soft' }, 'One factor on the step time and one on memory for each chip, from a project’s own measurements, shrunk towards the published fit of the engine of today. Requests that name the project are answered by what is in force.'),
    shown,
    fitForm(project, redraw),
  );
}
