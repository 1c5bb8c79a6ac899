// Measurements of a stored plan: a log pasted or dropped, or a step time; what there is, beside the prediction.

import { get, postText, remove } from './api.js';
import { connectAsk } from './ask.js';
import { announce, h, loading, table } from './dom.js';
import { errorSummary } from './errors.js';
import { failure } from './failure.js';
import { dateTime, gib, percent, plural, seconds, secondsRange, signedPercent } from './format.js';
import { measuredChart } from './measured_chart.js';
import { storeFirst } from './store_first.js';
import { askTwice } from './sure.js';

const FIELDS = { '/step_time_s': 'step', '/source': 'source', '/at': 'at' };

function insideText(row) {
  const word = row.inside_interval ? 'inside' : 'outside';
  return h('span', { class: `verdict verdict-${row.inside_interval ? 'fits' : 'does_not_fit'}` }, word);
}

// "too short" of a prediction below what was measured.
const sideOf = (error) => (error < 0 ? 'too short' : error > 0 ? 'too long' : '');

// rows: measurements, newest first; lead(row) heads a row; last(row), if given, ends it.
export function measurementsTable(rows, { caption, first, lead, last }) {
  return table(
    caption,
    [
      { title: first },
      { title: 'Measured', number: true },
      { title: 'Predicted', number: true },
      { title: 'Error', number: true },
      { title: '90 % interval' },
      { title: 'HBM measured', number: true },
      ...(last ? [{ title: 'Change' }] : []),
    ],
    rows.map((row) => [
      lead(row),
      [
        seconds(row.measured_step_time_s),
        row.steps_count ? h('span', { class: 'second' }, `median of ${plural(row.steps_count, 'step', 'steps')}`) : null,
      ],
      [
        seconds(row.step_time_s),
        h('span', { class: 'second' }, secondsRange(row.step_time_low_s, row.step_time_high_s, row.step_time_s)),
      ],
      [signedPercent(row.error_frac), h('span', { class: 'second' }, sideOf(row.error_frac))],
      insideText(row),
      row.measured_hbm_bytes_per_device ? gib(row.measured_hbm_bytes_per_device) : '–',
      ...(last ? [last(row)] : []),
    ]),
  );
}

const lead = (row) => [
  h('span', { class: 'nowrap' }, dateTime(row.at)),
  h('span', { class: 'second' }, row.source),
];

// prefix: of the ids, because the form's answer and a stored run may both be in the page.
function measureForm(run, prefix, onStored) {
  const idOf = (name) => `${prefix}measure-${name}`;
  const done = h('p', { class: 'soft', role: 'status', tabindex: '-1' });
  const field = (name, label, attributes) =>
    h(
      'div',
      { class: 'field' },
      h('label', { for: idOf(name) }, label),
      h('input', { type: 'text', id: idOf(name), autocomplete: 'off', ...attributes }),
    );
  const log = h('textarea', {
    id: idOf('log'),
    rows: 5,
    spellcheck: 'false',
    'aria-describedby': idOf('log-hint'),
  });
  const form = h(
    'form',
    { class: 'measure', novalidate: true, 'aria-label': 'Add a measurement' },
    errorSummary(idOf('problem')),
    h(
      'div',
      { class: 'field drop' },
      h('label', { for: idOf('log') }, 'MaxText log'),
      log,
      h('p', { class: 'hint', id: idOf('log-hint') }, 'Paste it or drop the file here: its “completed step” lines are read, the first three steps left out.'),
    ),
    h(
      'div',
      { class: 'inline-form' },
      field('step', 'Or the step time, s', { inputmode: 'decimal' }),
      field('source', 'Measured by', { value: 'by hand' }),
      field('at', 'When', { value: new Date().toISOString().slice(0, 16) + ':00Z' }),
      h('button', { type: 'submit', class: 'primary' }),
    ),
  );
  form.addEventListener('dragover', (event) => event.preventDefault());
  form.addEventListener('drop', async (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (!file) return;
    log.value = await file.text();
    announce(`${file.name} is entered`);
    form.requestSubmit();
  });
  const value = (name) => form.querySelector(`#${idOf(name)}`).value.trim();
  const path = `/v1/runs/${encodeURIComponent(run.id)}/measurements?rank=${run.rank}`;
  const ask = connectAsk({
    form,
    results: done,
    build: () => {
      const fieldOf = (pointer) => FIELDS[pointer] ?? (value('log') ? 'log' : null);
      const locate = (pointer) => ({ field: fieldOf(pointer) && idOf(fieldOf(pointer)), below: '' });
      if (log.value.trim()) {
        const query = new URLSearchParams({ source: value('source') || 'MaxText log', at: value('at') });
        return { path: `${path}&${query}`, body: log.value, errors: [], locate, send: postText };
      }
      const time = Number(value('step').replace(/\s*s$/, ''));
      const errors = time > 0 ? [] : [{ pointer: '/step_time_s', detail: 'Give a step time in seconds, or paste a log.' }];
      return { path, body: { step_time_s: time, source: value('source'), at: value('at') }, errors, locate };
    },
    label: () => 'Add',
    failed: () => done.replaceChildren(),
    show: async (body, answer) => {
      done.textContent = `Stored: ${seconds(answer.measured_step_time_s)} measured, the prediction is ${percent(Math.abs(answer.error_frac))} ${sideOf(answer.error_frac)}.${answer.note ? ` Note: ${answer.note}.` : ''}`;
      log.value = '';
      await onStored();
    },
  });
  ask.relabel();
  return [form, done];
}

// plan.run {id, rank}: where the plan is stored; plan.onStore(tab)? stores it.
export function measurePanel({ run, onStore }, { prefix }) {
  if (!run) return storeFirst('The time that a stored plan took on the machine can be put beside its prediction here.', 'measured', onStore);
  const shown = h('div', { class: 'results', tabindex: '-1', role: 'group', 'aria-label': 'Measurements' }, loading());
  const path = `/v1/runs/${encodeURIComponent(run.id)}/measurements`;
  const draw = async () => {
    try {
      const { measurements, measurements_count: count } = await get(`${path}?rank=${run.rank}&limit=200`);
      const mine = measurements.filter((row) => row.rank === run.rank);
      const takeBack = (row) => {
        const button = h('button', { type: 'button', class: 'small', 'aria-label': `Take back ${seconds(row.measured_step_time_s)} of ${dateTime(row.at)}` }, 'Take back');
        return askTwice(button, 'Really take back, for good', async () => {
          try {
            await remove(`${path}/${encodeURIComponent(row.measurement_id)}`);
          } catch (error) {
            button.after(failure(error));
            return;
          }
          await draw();
          shown.focus({ preventScroll: true }); // the button has gone
          announce('Taken back');
        });
      };
      shown.replaceChildren(
        ...(mine.length
          ? [
              measuredChart([...mine].reverse()),
              measurementsTable(mine, { caption: 'Measurements of this plan', first: 'When, by whom', lead, last: takeBack }),
              count > mine.length ? h('p', { class: 'soft' }, `The newest ${mine.length} of ${count}.`) : '',
            ]
          : [h('p', { class: 'soft' }, 'Nothing is measured yet.')]),
      );
    } catch (error) {
      shown.replaceChildren(failure(error));
    }
  };
  draw();
  return h('section', { class: 'panel' }, h('h3', null, 'Predicted against measured'), shown, measureForm(run, prefix, draw));
}
