// Stored runs: the list and one run opened.

import { get } from './api.js';
import { baselineForm } from './baseline.js';
import { codeBlock } from './copy.js';
import { announce, h, table } from './dom.js';
import { dateTime, gib, seconds, words } from './format.js';
import { KERNEL_DEFAULTS, stateOfKernelRequest } from './kernel_request.js';
import { showKernelAnswer } from './kernel_results.js';
import { verdict } from './memory_bar.js';
import { stateToQuery } from './permalink.js';
import { stateOfRequest } from './request.js';
import { showAnswer } from './results.js';

const PAGE = 50;
const MOST = 16; // runs of one comparison

function runRow(run, onTick) {
  const name = run.label || run.run_id.slice(0, 13);
  const comparable = Number.isFinite(run.step_time_s);
  const box = h('input', {
    type: 'checkbox',
    value: run.run_id,
    'aria-label': `Compare ${name}`,
    disabled: !comparable,
  });
  box.addEventListener('change', onTick);
  const fits = run.fits === null || run.fits === undefined ? '' : verdict(run.fits ? 'fits' : 'does_not_fit');
  return [
    h('span', { class: 'nowrap' }, box, ' ', h('a', { href: `#/runs/${encodeURIComponent(run.run_id)}` }, name)),
    [words(run.kind), run.project ? h('span', { class: 'second' }, run.project) : null],
    run.model ?? '–',
    [run.chip, run.topology].filter(Boolean).join(' ') || '–',
    seconds(run.step_time_s),
    [gib(run.hbm_bytes_per_device), ' ', fits],
    h('span', { class: 'nowrap' }, dateTime(run.created_at)),
  ];
}

const RUN_COLUMNS = [
  { title: 'Run' },
  { title: 'Kind' },
  { title: 'Model' },
  { title: 'Cluster' },
  { title: 'Step time', number: true },
  { title: 'HBM per device', number: true },
  { title: 'Stored' },
];
const FILTERS = [
  ['label', 'Label'],
  ['project', 'Project'],
  ['model', 'Model'],
  ['chip', 'Chip'],
];

function filterForm(asked) {
  const fields = FILTERS.map(([name, title]) =>
    h(
      'div',
      { class: 'field' },
      h('label', { for: `filter-${name}` }, title),
      h('input', { type: 'text', id: `filter-${name}`, name, value: asked.get(name) ?? '', autocomplete: 'off' }),
    ),
  );
  const filter = h(
    'form',
    { class: 'filters', 'aria-label': 'Filter the runs' },
    fields,
    h('button', { type: 'submit' }, 'Filter'),
  );
  filter.addEventListener('submit', (event) => {
    event.preventDefault();
    const wanted = [...new FormData(filter)].filter(([, value]) => value.trim());
    location.hash = `#/runs?${new URLSearchParams(wanted.map(([name, value]) => [name, value.trim()]))}`;
  });
  return filter;
}

export async function showRuns(place, query) {
  const asked = new URLSearchParams(query);
  const request = new URLSearchParams({ limit: PAGE });
  for (const name of [...FILTERS.map(([filter]) => filter), 'cursor'])
    if (asked.get(name)) request.set(name, asked.get(name));
  const answer = await get(`/v1/runs?${request}`);
  const runs = answer.runs ?? [];
  const compare = h('button', { type: 'button', 'aria-disabled': 'true' }, 'Compare');
  const ticked = () => [...place.querySelectorAll('input[type="checkbox"]:checked')].map((box) => box.value);
  const isEnough = () => ticked().length >= 2 && ticked().length <= MOST;
  compare.addEventListener('click', () => {
    if (isEnough()) location.hash = `#/compare?runs=${ticked().reverse().join(',')}`;
    else announce(`Tick two to ${MOST} runs first`);
  });
  const older = new URLSearchParams(asked);
  if (answer.next_cursor) older.set('cursor', answer.next_cursor);
  place.replaceChildren(
    h(
      'section',
      { class: 'panel' },
      h(
        'div',
        { class: 'panel-head' },
        h('h1', null, 'Stored runs'),
        h('p', { class: 'soft' }, 'Tick two or more to compare the later with the earliest.'),
        h('p', { class: 'actions' }, compare),
      ),
      filterForm(asked),
      runs.length
        ? table(
            'Stored runs',
            RUN_COLUMNS,
            runs.map((run) => runRow(run, () => compare.setAttribute('aria-disabled', String(!isEnough())))),
          )
        : h('p', null, 'No such run is stored. Tick “Store the answer as a run” in the form, or send "store": true.'),
      answer.next_cursor ? h('p', null, h('a', { href: `#/runs?${older}` }, 'Older runs')) : null,
    ),
  );
  announce(`${runs.length} runs`);
}

// How a stored answer of each kind is drawn, and the address at which its request can be changed and sent again.
const KINDS = {
  advise: { show: showAnswer, address: (request) => `#/?${stateToQuery(stateOfRequest(request))}` },
  estimate: { show: showAnswer, address: (request) => `#/?${stateToQuery(stateOfRequest(request))}` },
  kernel: {
    show: showKernelAnswer,
    address: (request) => `#/kernels?${stateToQuery(stateOfKernelRequest(request), KERNEL_DEFAULTS)}`,
  },
};

function showUnknown(place, request, answer) {
  place.append(h('section', { class: 'panel' }, codeBlock('Answer', JSON.stringify(answer, null, 2))));
}

export async function showRun(place, id) {
  const run = await get(`/v1/runs/${encodeURIComponent(id)}`);
  const kind = KINDS[run.kind];
  const body = h('div', { class: 'results' });
  const head = h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h1', null, run.label || `Run ${run.run_id}`),
      h(
        'p',
        { class: 'soft' },
        `${words(run.kind)}, stored ${dateTime(run.created_at)}, engine ${run.engine_version}`,
      ),
      kind ? h('p', { class: 'actions' }, h('a', { href: kind.address(run.request) }, 'Open in the form')) : null,
    ),
    Number.isFinite(run.step_time_s) ? baselineForm(run) : null,
  );
  place.replaceChildren(h('div', { class: 'results' }, head, body));
  await (kind?.show ?? showUnknown)(body, run.request, run.response);
}
