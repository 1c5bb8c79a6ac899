// Makes a stored run the baseline of a project and label, which CI then checks against without knowing the run.

import { put } from './api.js';
import { connectAsk } from './ask.js';
import { announce, h } from './dom.js';
import { errorSummary } from './errors.js';

const FIELDS = [
  ['project', 'Project'],
  ['label', 'Label'],
];

export function baselineForm(run) {
  const done = h('p', { class: 'soft', tabindex: '-1', role: 'status' });
  const field = ([name, title]) =>
    h(
      'div',
      { class: 'field' },
      h('label', { for: `baseline-${name}` }, title),
      h('input', { type: 'text', id: `baseline-${name}`, autocomplete: 'off', value: run[name] ?? '' }),
    );
  const form = h(
    'form',
    { class: 'inline-form', novalidate: true, 'aria-label': 'Make it the baseline' },
    errorSummary('baseline-problem'),
    FIELDS.map(field),
    h('button', { type: 'submit' }),
  );
  const read = (name) => form.querySelector(`#baseline-${name}`).value.trim();
  const ask = connectAsk({
    form,
    results: done,
    build: () => {
      const missing = FIELDS.filter(([name]) => !read(name));
      const path = `/v1/baselines/${FIELDS.map(([name]) => encodeURIComponent(read(name))).join('/')}`;
      const errors = missing.map(([name, title]) => ({ pointer: `/${name}`, detail: `${title} is missing.` }));
      return { path, body: { run_id: run.run_id }, errors, locate, send: put };
    },
    label: () => 'Make it the baseline',
    failed: () => done.replaceChildren(),
    show: (body, answer) => {
      done.textContent = `This run is now the baseline ${answer.label} of ${answer.project}.`;
      announce(done.textContent);
    },
  });
  ask.relabel();
  const which = run.kind === 'advise' ? h('p', { class: 'soft' }, 'A check compares with plan 1 of this advice. For another one, estimate its settings and store that.') : null;
  return h('details', null, h('summary', null, 'Make this run a baseline for CI'), which, form, done);
}

function locate(pointer) {
  const name = pointer.slice(1);
  return { field: FIELDS.some(([known]) => known === name) ? `baseline-${name}` : null, below: '' };
}
