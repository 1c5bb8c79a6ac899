// Stored runs: the list and one run opened.

import { get, getTagged, post, remove } from './api.js';
import { baselineForm } from './baseline.js';
import { codeBlock } from './copy.js';
import { announce, h, loading, table } from './dom.js';
import { failure } from './failure.js';
import { dateTime, gib, seconds, words } from './format.js';
import { KERNEL_DEFAULTS, stateOfKernelRequest } from './kernel_request.js';
import { showKernelAnswer } from './kernel_results.js';
import { verdict, verdictOfRun } from './memory_bar.js';
import { stateToQuery } from './permalink.js';
import { changedSettings, stateOfRequest, unaskable } from './request.js';
import { showAnswer } from './results.js';
import { tagLinks, tagsForm } from './run_tags.js';
import { leftOut, runsForm, wishOf } from './runs_query.js';

const PAGE = 50;
const MOST = 16; // runs of one comparison

const nameOf = (run) => run.label || run.run_id.slice(0, 13);
const pathOf = (run) => `/v1/runs/${encodeURIComponent(run.run_id)}`;

// A button that changes a run, and says beside it what went wrong.
function changeButton(text, label, change) {
  const button = h('button', { type: 'button', class: 'small', 'aria-label': label }, text);
  button.addEventListener('click', async () => {
    try {
      await change(button);
    } catch (error) {
      button.replaceWith(h('span', { class: 'field-error', role: 'alert' }, error.errors?.[0]?.detail ?? error.detail ?? error.message));
    }
  });
  return button;
}

// Deleting asks once more, on the button itself.
function deleteButton(run, onDeleted) {
  return changeButton('Delete', `Delete ${nameOf(run)}`, async (button) => {
    if (button.dataset.sure !== 'true') {
      button.dataset.sure = 'true';
      button.textContent = 'Really delete';
      button.removeAttribute('aria-label');
      return;
    }
    await remove(pathOf(run));
    onDeleted(run);
  });
}

function restoreButton(run, onRestored) {
  return changeButton('Restore', `Restore ${nameOf(run)}`, async () => {
    await post(`${pathOf(run)}/restore`);
    onRestored(run);
  });
}

function tickBox(run, ticked, onTick) {
  const box = h('input', {
    type: 'checkbox',
    value: run.run_id,
    checked: ticked.has(run.run_id),
    'aria-label': `Compare ${nameOf(run)}`,
    disabled: !Number.isFinite(run.step_time_s),
  });
  box.addEventListener('change', () => onTick(run, box.checked));
  return box;
}

// baselines: names ("project label") of which the run is the baseline.
function runRow(run, baselines, { ticked, onTick, onDeleted, onRestored }) {
  const name = nameOf(run);
  const isGone = Boolean(run.deleted_at);
  const fit = verdictOfRun(run);
  return [
    [
      isGone
        ? h('span', { class: 'run-name' }, name)
        : h('span', { class: 'run-name' }, tickBox(run, ticked, onTick), ' ', h('a', { href: `#/runs/${encodeURIComponent(run.run_id)}` }, name)),
      baselines.map((baseline) => h('span', { class: 'mark mark-advised' }, `baseline ${baseline}`)),
      run.tags?.length ? h('span', { class: 'tags' }, tagLinks(run.tags)) : null,
    ],
    [words(run.kind), run.project ? h('span', { class: 'second' }, run.project) : null],
    [h('span', { class: run.model?.length < 24 ? 'nowrap' : null }, run.model ?? '–'), run.git_ref ? h('span', { class: 'second' }, `at ${run.git_ref}`) : null],
    h('span', { class: 'nowrap' }, [run.chip, run.topology].filter(Boolean).join(' ') || '–'),
    [seconds(run.step_time_s), run.kind === 'advise' && Number.isFinite(run.step_time_s) ? h('span', { class: 'second' }, 'plan 1') : null],
    [gib(run.hbm_bytes_per_device), ' ', fit ? verdict(fit) : ''],
    [h('span', { class: 'nowrap' }, dateTime(run.created_at)), isGone ? h('span', { class: 'second' }, `deleted ${dateTime(run.deleted_at)}`) : null],
    isGone ? restoreButton(run, onRestored) : deleteButton(run, onDeleted),
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
  { title: 'Change' },
];

// Map of run id -> names of the baselines that it is; empty where they cannot be had.
async function baselinesOf() {
  const named = new Map();
  const { baselines } = await get('/v1/baselines?limit=200').catch(() => ({ baselines: [] }));
  for (const { run_id: id, project, label } of baselines) named.set(id, [...(named.get(id) ?? []), `${project} ${label}`]);
  return named;
}

// On the button: what it does, or why it does not.
export function compareText(count) {
  if (count > MOST) return `${count} ticked, at most ${MOST} can be compared`;
  return count ? `Compare ${count}${count === 1 ? ', tick another' : ''}` : 'Compare';
}

// Two to sixteen ticked runs, compared with the earliest of them; ticks outlast another search.
function comparing(ticked) {
  const button = h('button', { type: 'button', 'aria-disabled': 'true' }, 'Compare');
  const isEnough = () => ticked.size >= 2 && ticked.size <= MOST;
  button.addEventListener('click', () => {
    const earliestFirst = [...ticked.values()].sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : a.run_id < b.run_id ? -1 : 1));
    if (isEnough()) location.hash = `#/compare?runs=${earliestFirst.map((run) => run.run_id).join(',')}`;
    else announce(`Tick two to ${MOST} runs first`);
  });
  const onTick = (run, isTicked) => {
    if (isTicked) ticked.set(run.run_id, run);
    else ticked.delete(run.run_id);
    button.textContent = compareText(ticked.size);
    button.setAttribute('aria-disabled', String(!isEnough()));
  };
  return { button, onTick };
}

// Why a list is empty: what is asked for, or that there is nothing at all.
function noneText(wish) {
  const isFiltered = [...wish.keys()].some((name) => name !== 'sort' && name !== 'deleted');
  const what = wish.get('deleted') ? 'deleted' : 'stored';
  if (isFiltered) return `No such run is ${what}. Words are matched by their beginning, all other entries as a whole.`;
  return what === 'deleted' ? 'No run is deleted.' : 'No run is stored yet. Tick “Store the answer as a run” in the form, or send "store": true.';
}

// The pages of a list, one below the other: {place, fill(wish, cursor?)}. fill() asks afresh and drops what an earlier one still waits
// for; baselines: a promise of baselinesOf().
function runsList(baselines, acts) {
  const place = h('div', { class: 'runs-list' }, loading());
  let asking = null;
  let runs = [];
  const page = (wish, cursor) => {
    asking?.abort();
    asking = new AbortController();
    const request = new URLSearchParams([['limit', PAGE], ...wish, ...(cursor ? [['cursor', cursor]] : [])]);
    return get(`/v1/runs?${request}`, asking.signal);
  };
  const draw = (wish, next, named) => {
    const note = leftOut(wish);
    const more = h('button', { type: 'button' }, 'More runs');
    more.addEventListener('click', () => fill(wish, next));
    place.replaceChildren(
      ...[
        note ? h('p', { class: 'soft' }, note) : null,
        runs.length
          ? table('Stored runs', RUN_COLUMNS, runs.map((run) => runRow(run, named.get(run.run_id) ?? [], acts)))
          : h('p', null, noneText(wish)),
        next ? h('p', null, more) : null,
      ].filter(Boolean),
    );
    announce(`${runs.length}${next ? ' and more' : ''} runs`);
  };
  const fill = async (wish, cursor) => {
    place.setAttribute('aria-busy', 'true');
    try {
      const [answer, named] = await Promise.all([page(wish, cursor), baselines]);
      runs = [...(cursor ? runs : []), ...answer.runs];
      draw(wish, answer.next_cursor, named);
    } catch (error) {
      if (error.name === 'AbortError') return;
      place.replaceChildren(failure(error));
    }
    place.removeAttribute('aria-busy');
  };
  return { place, fill };
}

export async function showRuns(place, query) {
  let wish = wishOf(query);
  const ticked = new Map();
  const { button, onTick } = comparing(ticked);
  const said = h('p', { role: 'status' });
  const tell = (...what) => said.replaceChildren(...what);
  const onRestored = (run) => {
    tell(`${nameOf(run)} is restored.`);
    list.fill(wish);
  };
  const onDeleted = (run) => {
    onTick(run, false);
    tell(`${nameOf(run)} is deleted. `, restoreButton(run, onRestored));
    list.fill(wish);
  };
  const list = runsList(baselinesOf(), { ticked, onTick, onDeleted, onRestored });
  const form = runsForm(wish, (next, isTyped) => {
    if (String(next) === String(wish) && isTyped) return;
    wish = next;
    history[isTyped ? 'replaceState' : 'pushState'](null, '', `#/runs${[...wish].length ? `?${wish}` : ''}`);
    list.fill(wish);
  });
  place.replaceChildren(
    h(
      'section',
      { class: 'panel' },
      h(
        'div',
        { class: 'panel-head' },
        h('h1', null, 'Stored runs'),
        h('p', { class: 'soft' }, 'Tick two or more to compare the later with the earliest.'),
        h('p', { class: 'actions' }, button),
      ),
      form,
      said,
      list.place,
    ),
  );
  await list.fill(wish);
}

// How a stored answer of each kind is drawn, and the address at which its request can be changed and sent again.
const KINDS = {
  advise: { show: showAnswer, lost: unaskable, address: (request) => `#/?${stateToQuery(stateOfRequest(request))}` },
  estimate: { show: showAnswer, lost: unaskable, address: (request) => `#/?${stateToQuery(stateOfRequest(request))}` },
  kernel: {
    show: showKernelAnswer,
    lost: () => [],
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

// A link may outlive its run, which can be restored until it is purged.
function showDeleted(place, id) {
  const restore = restoreButton({ run_id: id }, () => showRun(place, id));
  const text = 'Nothing of it is lost as long as the daemon has not purged it.';
  place.replaceChildren(h('section', { class: 'panel' }, h('h1', null, 'This run was deleted'), h('p', null, text), h('p', null, restore)));
}

// Which engine priced a run, and that the engine of today is another; the same release with another catalog is another, too.
function engineText({ engine_version: version, catalog_hash: catalog, engine: today }) {
  if (!today || (today.version === version && today.catalog_hash === catalog)) return `engine ${version}`;
  const name = (engine, hash) => (today.version === version ? `${engine} (catalog ${hash})` : engine);
  return `priced by engine ${name(version, catalog)}, which is not today’s ${name(today.version, today.catalog_hash)}`;
}

export async function showRun(place, id) {
  const found = await getTagged(`/v1/runs/${encodeURIComponent(id)}`).catch((error) => {
    if (error.status !== 404 || !/was deleted/.test(error.detail)) throw error;
  });
  if (!found) {
    showDeleted(place, id);
    return;
  }
  const { body: run, etag } = found;
  const kind = KINDS[run.kind];
  const lost = kind?.lost(run.request) ?? [];
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
        `${words(run.kind)}${run.project ? ` for project ${run.project}` : ''}, stored ${dateTime(run.created_at)}${run.git_ref ? ` at ${run.git_ref}` : ''}, ${engineText(run)}`,
      ),
      kind ? h('p', { class: 'actions' }, h('a', { href: kind.address(run.request) }, 'Open in the form')) : null,
      lost.length ? h('p', { class: 'soft' }, `The form has no field for ${lost.join(', ')}: there it is a question without.`) : null,
    ),
    tagsForm(run, etag),
    Number.isFinite(run.step_time_s) ? baselineForm(run) : null,
  );
  place.replaceChildren(h('div', { class: 'results' }, head, body));
  await (kind?.show ?? showUnknown)(body, run.request, run.response, { repair: lost.length ? null : repairOf(run.request) });
}
