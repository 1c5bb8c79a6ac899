// A check of one run against another within limits, as CI does it, and the command that does the same there.

import { connectAsk } from './ask.js';
import { codeBlock } from './copy.js';
import { announce, h } from './dom.js';
import { errorSummary } from './errors.js';
import { signedPercent } from './format.js';
import { inline, sentenceOf } from './inline.js';

const LIMITS = {
  step_time_increase_frac: ['gate-step', 'Time per token may grow by', '3'],
  hbm_increase_frac: ['gate-hbm', 'Memory may grow by', ''],
};

// In what the two runs may be unlike work: by default that is refused.
const UNLIKE = {
  model: ['gate-unlike-model', 'Another model is allowed'],
  sequence_length: ['gate-unlike-length', 'Another sequence length is allowed'],
};

// What is ticked of UNLIKE, as the API's member, or nothing of it.
function unlikeOf(read) {
  const unlike = Object.keys(UNLIKE).filter((name) => read(UNLIKE[name][0]));
  return unlike.length ? { allow_unlike: unlike } : {};
}

// {limits, errors}: what is left empty is not checked. Percent exists only here; the API has fractions.
export function limitsOf(read) {
  const limits = { must_fit: read('gate-fit') };
  const errors = [];
  for (const [name, [id, title]] of Object.entries(LIMITS)) {
    const text = read(id).trim().replace(/\s*%$/, '');
    if (!text) continue;
    limits[name] = Number(text) / 100;
    if (!Number.isFinite(limits[name]))
      errors.push({ pointer: `/limits/${name}`, detail: `${title}: “${text}” is not a number of percent.` });
  }
  return { limits, errors };
}

// rest: the members of the check beside its two sides.
export function ciCommand(baseline, rest) {
  const members = Object.entries(rest).map(([name, value]) => `, "${name}": ${JSON.stringify(value)}`);
  const body = `{"baseline": {"run_id": "${baseline}"}, "candidate": '"$(cat train.json)"'${members.join('')}}`;
  return [
    'curl -sS --fail-with-body "$TPU_ADVISOR_URL/v1/checks?fail_status=true"',
    '  -H "Authorization: Bearer $TPU_ADVISOR_TOKEN" -H "Content-Type: application/json"',
    `  -d '${body}'`,
  ].join(' \\\n');
}

// name: of the run that was judged.
function verdictOf(answer, name, baseline, rest) {
  const passed = answer.verdict === 'pass';
  const reasons = answer.reasons ?? [];
  announce(passed ? `${name} passes` : `${name} fails: ${reasons.map((reason) => reason.detail).join('; ')}`);
  return [
    h(
      'p',
      { class: 'gate-verdict' },
      `${name} `,
      h('span', { class: `verdict verdict-${passed ? 'pass' : 'fail'}` }, passed ? 'passes' : 'fails'),
      ` Time per token ${signedPercent(answer.time_per_token_increase_frac)}, memory ${signedPercent(answer.hbm_increase_frac)}.`,
    ),
    reasons.length
      ? h(
          'ul',
          { class: 'findings' },
          reasons.map((reason) => h('li', { class: 'severity-error' }, inline(sentenceOf(reason.detail)))),
        )
      : '',
    ...(answer.notes ?? []).map((note) => h('p', { class: 'soft' }, inline(sentenceOf(note.detail)))),
    h(
      'details',
      null,
      h('summary', null, 'The same in CI'),
      codeBlock('Check in CI', ciCommand(baseline, rest), 'h3'),
    ),
  ];
}

function checkbox(id, title, checked = false) {
  const input = h('input', { type: 'checkbox', id });
  input.checked = checked;
  return h('p', { class: 'check' }, h('label', null, input, ` ${title}`));
}

function field(id, title, value) {
  return h(
    'div',
    { class: 'field' },
    h('label', { for: id }, title, ' ', h('span', { class: 'unit' }, '%')),
    h('input', { type: 'text', id, value, inputmode: 'decimal', autocomplete: 'off', placeholder: 'not checked' }),
  );
}

// candidates: [{id, name}]; the first run of the comparison is the baseline.
export function gatePanel(baseline, candidates) {
  const place = h('div', { class: 'results', tabindex: '-1', 'aria-label': 'Verdict', role: 'group' });
  const choice = h(
    'select',
    { id: 'gate-candidate' },
    candidates.map((run) => h('option', { value: run.id }, run.name)),
  );
  const form = h(
    'form',
    { class: 'inline-form', novalidate: true, 'aria-label': 'Check against limits' },
    errorSummary('gate-problem'),
    h('div', { class: 'field', hidden: candidates.length < 2 }, h('label', { for: 'gate-candidate' }, 'Run'), choice),
    Object.values(LIMITS).map(([id, title, usual]) => field(id, title, usual)),
    checkbox('gate-fit', 'Must fit in memory', true),
    Object.values(UNLIKE).map(([id, title]) => checkbox(id, title)),
    h('button', { type: 'submit' }),
  );
  const nameOf = ({ run_id: id }) => candidates.find((run) => run.id === id).name;
  const read = (id) => {
    const control = form.querySelector(`#${id}`);
    return control.type === 'checkbox' ? control.checked : control.value;
  };
  // A verdict is of the entries that it was asked with.
  const clear = () => place.replaceChildren();
  form.addEventListener('input', clear);
  const ask = connectAsk({
    form,
    results: place,
    failed: clear,
    build: () => {
      const { limits, errors } = limitsOf(read);
      const body = { baseline: { run_id: baseline.id }, candidate: { run_id: choice.value }, limits, ...unlikeOf(read) };
      return { path: '/v1/checks', body, errors, locate: (pointer, error) => locate(pointer, error, candidates.length) };
    },
    label: () => 'Check',
    show: ({ candidate, limits, allow_unlike: unlike }, answer) =>
      place.replaceChildren(...verdictOf(answer, nameOf(candidate), baseline.id, unlike ? { limits, allow_unlike: unlike } : { limits })),
  });
  ask.relabel();
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h2', null, 'Check against limits'),
      h('p', { class: 'soft' }, `${baseline.name} is the baseline.`),
    ),
    form,
    place,
  );
}

// What is refused as unlike work stands at the box that lets it pass; a run that there is no choice of, in the summary.
function locate(pointer, error, choices) {
  const [, first, second] = pointer.split('/');
  if (first === 'limits') return { field: LIMITS[second]?.[0] ?? 'gate-fit', below: '' };
  const unlike = UNLIKE[/^unlike-(.*)/.exec(error?.code)?.[1].replaceAll('-', '_')];
  if (unlike) return { field: unlike[0], below: '' };
  return { field: first === 'candidate' && choices > 1 ? 'gate-candidate' : null, below: pointer };
}
