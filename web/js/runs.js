// Stored runs: the list and one run opened.

import { get, remove } from './api.js';
import { baselineForm } from './baseline.js';
import { codeBlock } from './copy.js';
import { announce, h, table } from './dom.js';
import { dateTime, gib, seconds, words } from './format.js';
import { KERNEL_DEFAULTS, stateOfKernelRequest } from './kernel_request.js';
import { showKernelAnswer } from './kernel_results.js';
import { verdict } from './memory_bar.js';
import { stateToQuery } from './permalink.js';
import { changedSettings, stateOfRequest } from './request.js';
import { showAnswer } from './results.js';
import { filterForm } from './runs_filter.js';

const PAGE = 50;
const MOST = 16; // runs of one comparison

// Deleting asks once more, on the button itself.
function deleteButton(run, name) {
  const button = h('button', { type: 'button', class: 'small', 'aria-label': `Delete ${name}` }, 'Delete');
  button.addEventListener('click', async () => {
    if (button.dataset.sure !== 'true') {
      button.dataset.sure = 'true';
      button.textContent = 'Really delete';
      button.removeAttribute('aria-label');
      return;
    }
    const row = button.closest('tr');
    try {
      await remove(`/v1/runs/${encodeURIComponent(run.run_id)}`);
      row.remove();
      announce(`${name} is deleted`);
    } catch (error) {
      button.replaceWith(h('span', { class: 'field-error', role: 'alert' }, error.errors?.[0]?.detail ?? error.detail ?? error.message));
    }
  });
  return button;
}

// baselines: names ("project label") of which the run is the baseline.
function runRow(run, baselines, onTick) {
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
    [
      h('span', { class: 'nowrap' }, box, ' ', h('a', { href: `#/runs/${encodeURIComponent(run.run_id)}` }, name)),
      baselines.map((baseline) => h('span', { class: 'mark mark-advised' }, `baseline ${baseline}`)),
    ],
    [words(run.kind), run.project ? h('span', { class: 'second' }, run.project) : null],
    run.model ?? '–',
    [run.chip, run.topology].filter(Boolean).join(' ') || '–',
    seconds(run.step_time_s),
    [gib(run.hbm_bytes_per_device), ' ', fits],
    h('span', { class: 'nowrap' }, dateTime(run.created_at)),
    deleteButton(run, name),
  ];
}

const SORTS = [
  ['newest', 'newest first', null],
  ['name', 'name', (run) => run.label ?? '~'],
  ['model', 'model', (run) => run.model ?? '~'],
  ['chip', 'cluster', (run) => `${run.chip} ${run.topology}`],
  ['time', 'step time', (run) => run.step_time_s ?? Infinity],
  ['hbm', 'HBM per device', (run) => run.hbm_bytes_per_device ?? Infinity],
];

// Runs in which every word of the text stands somewhere, in the order asked for. Pure.
export function chosenRuns(runs, text, sort) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const said = (run) =>
    [run.label, run.project, run.kind, run.model, run.chip, run.topology, run.git_ref, run.run_id].join(' ').toLowerCase();
  const found = runs.filter((run) => wanted.every((word) => said(run).includes(word)));
  const value = SORTS.find(([id]) => id === sort)?.[2];
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return value ? [...found].sort((a, b) => order(value(a), value(b))) : found;
}

const RUN_COLUMNS = [
  { title: 'Run' },
  { title: 'Kind' },
  { title: 'Model' },
  { title: 'Cluster' },
  { title: 'Step time', number: true },
  { title: 'HBM per device', number: true },
  { title: 'Stored' },
  { title: 'Change' },
];
const FILTERS = [
  ['label', 'Label'],
  ['project', 'Project'],
  ['model', 'Model'],
  ['chip', 'Chip'],
];

// Map of run id -> names of the baselines that it is; empty where they cannot be had.
async function baselinesOf() {
  const named = new Map();
  const { baselines } = await get('/v1/baselines?limit=200').catch(() => ({ baselines: [] }));
  for (const { run_id: id, project, label } of baselines) named.set(id, [...(named.get(id) ?? []), `${project} ${label}`]);
  return named;
}

// Free text and order, applied to what is shown without asking again.
function chooser(redraw) {
  const search = h('input', { type: 'search', id: 'runs-search', autocomplete: 'off' });
  const sort = h('select', { id: 'runs-sort' }, SORTS.map(([id, title]) => h('option', { value: id }, title)));
  const change = () => redraw(search.value, sort.value);
  search.addEventListener('input', change);
  sort.addEventListener('change', change);
  return h(
    'div',
    { class: 'inline-form' },
    h('div', { class: 'field' }, h('label', { for: 'runs-search' }, 'Search these runs'), search),
    h('div', { class: 'field' }, h('label', { for: 'runs-sort' }, 'Sort by'), sort),
  );
}

function runsList(runs, baselines, onTick) {
  const place = h('div');
  let ticked = new Set();
  const draw = (text, sort) => {
    for (const box of place.querySelectorAll('input[type="checkbox"]')) {
      if (box.checked) ticked.add(box.value);
      else ticked.delete(box.value);
    }
    const found = chosenRuns(runs, text, sort);
    place.replaceChildren(
      found.length
        ? table('Stored runs', RUN_COLUMNS, found.map((run) => runRow(run, baselines.get(run.run_id) ?? [], onTick)))
        : h('p', null, 'No run on this page has these words.'),
    );
    for (const box of place.querySelectorAll('input[type="checkbox"]')) box.checked = ticked.has(box.value);
    ticked = new Set([...ticked].filter((id) => found.some((run) => run.run_id === id)));
    onTick();
  };
  draw('', 'newest');
  return [chooser(draw), place];
}

export async function showRuns(place, query) {
  const asked = new URLSearchParams(query);
  const request = new URLSearchParams({ limit: PAGE });
  for (const name of [...FILTERS.map(([filter]) => filter), 'cursor'])
    if (asked.get(name)) request.set(name, asked.get(name));
  const [answer, baselines] = await Promise.all([get(`/v1/runs?${request}`), baselinesOf()]);
  const runs = answer.runs ?? [];
  const compare = h('button', { type: 'button', 'aria-disabled': 'true' }, 'Compare');
  const ticked = () => [...place.querySelectorAll('input[type="checkbox"]:checked')].map((box) => box.value);
  const isEnough = () => ticked().length >= 2 && ticked().length <= MOST;
  compare.addEventListener('click', () => {
    const oldestFirst = runs.map((run) => run.run_id).filter((id) => ticked().includes(id)).reverse();
    if (isEnough()) location.hash = `#/compare?runs=${oldestFirst.join(',')}`;
    else announce(`Tick two to ${MOST} runs first`);
  });
  const older = new URLSearchParams(asked);
  if (answer.next_cursor) older.set('cursor', answer.next_cursor);
  const onTick = () => compare.setAttribute('aria-disabled', String(!isEnough()));
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
      filterForm(asked, FILTERS, 'runs', 'Filter the runs'),
      runs.length
        ? runsList(runs, baselines, onTick)
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

// A change of a stored plan is tried in the form: its address says the whole question, and runs at once.
const repairOf = (request) => (plan, change, drop) => {
  const state = { ...stateOfRequest(request), ...changedSettings(plan, change, drop), mode: 'estimate' };
  location.hash = `#/?${stateToQuery(state)}&plan=mine`;
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
  await (kind?.show ?? showUnknown)(body, run.request, run.response, { repair: repairOf(run.request) });
}
