// Stored runs: the list, one run opened, and two runs side by side.

import { get } from './api.js';
import { changeText } from './detail.js';
import { announce, h, table } from './dom.js';
import { dateTime, gib, seconds, words } from './format.js';
import { verdict } from './memory_bar.js';
import { stateToQuery } from './permalink.js';
import { stateOfRequest } from './request.js';
import { showAnswer } from './results.js';

const PAGE = 50;

export function failure(error) {
  const wait = error.retryAfter ? ` Try again in ${error.retryAfter} s.` : '';
  return h('section', { class: 'error-summary', role: 'alert' }, h('h2', null, error.message), h('p', null, `${error.detail ?? ''}${wait}`),
    error.errors?.length ? h('ul', null, error.errors.map((item) => h('li', null, item.detail))) : null);
}

function runRow(run, chosen, onChange) {
  const box = h('input', { type: 'checkbox', value: run.id, 'aria-label': `Compare run ${run.label || run.id}` });
  box.addEventListener('change', () => {
    if (box.checked) chosen.add(run.id);
    else chosen.delete(run.id);
    onChange();
  });
  return [h('span', { class: 'nowrap' }, box, ' ', h('a', { href: `#/runs/${encodeURIComponent(run.id)}` }, run.label || run.id)),
    words(run.kind), run.model ?? '–', [run.chip, run.topology].filter(Boolean).join(' '), seconds(run.step_time_s), gib(run.hbm_bytes_per_device), dateTime(run.created_at)];
}

export async function showRuns(place, query) {
  const asked = new URLSearchParams(query);
  const cursor = asked.get('cursor');
  const answer = await get(`/v1/runs?limit=${PAGE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
  const runs = answer.runs ?? [];
  const chosen = new Set();
  const compare = h('a', { role: 'link', 'aria-disabled': 'true' }, 'Compare two');
  const update = () => {
    const ready = chosen.size === 2;
    if (ready) compare.setAttribute('href', `#/compare?runs=${[...chosen].map(encodeURIComponent).join(',')}`);
    else compare.removeAttribute('href');
    compare.setAttribute('aria-disabled', String(!ready));
  };
  place.replaceChildren(h('section', { class: 'panel' },
    h('div', { class: 'panel-head' }, h('h1', null, 'Stored runs'), h('p', { class: 'soft' }, 'Tick two to compare them.'), h('p', { class: 'actions' }, compare)),
    runs.length ? table('Stored runs', [{ title: 'Run' }, { title: 'Kind' }, { title: 'Model' }, { title: 'Cluster' }, { title: 'Step time', number: true }, { title: 'HBM/device', number: true }, { title: 'Stored' }],
      runs.map((run) => runRow(run, chosen, update)))
      : h('p', null, 'No run is stored yet. Tick “Store the answer as a run” in the form, or send "store": true.'),
    answer.next_cursor ? h('p', null, h('a', { href: `#/runs?cursor=${encodeURIComponent(answer.next_cursor)}` }, 'Older runs')) : null));
  announce(`${runs.length} runs`);
}

export async function showRun(place, id) {
  const run = await get(`/v1/runs/${encodeURIComponent(id)}`);
  const body = h('div', { class: 'results' });
  place.replaceChildren(h('div', { class: 'results' },
    h('section', { class: 'panel' },
      h('div', { class: 'panel-head' }, h('h1', null, run.label || `Run ${run.id}`),
        h('p', { class: 'soft' }, `stored ${dateTime(run.created_at)}`),
        h('p', { class: 'actions' }, h('a', { href: `#/?${stateToQuery(stateOfRequest(run.request))}` }, 'Open in the form')))), body));
  showAnswer(body, run.request, run.response);
}

const TERM_COLUMNS = (runs) => [{ title: 'Term' }, ...runs.map((run) => ({ title: run, number: true })), { title: 'Difference', number: true }];

function termsTable(title, terms, runs, show) {
  if (!terms?.length) return null;
  return [h('h2', null, title), table(title, TERM_COLUMNS(runs), terms.map((term) => [words(term.name), show(term.from), show(term.to), show(term.delta)]))];
}

export async function showCompare(place, ids) {
  const answer = await get(`/v1/compare?runs=${ids.map(encodeURIComponent).join(',')}`);
  const runs = answer.runs ?? [];
  const first = runs[0] ?? {};
  place.replaceChildren(h('div', { class: 'results' }, h('section', { class: 'panel' },
    h('h1', null, 'Comparison'),
    table('Runs side by side', [{ title: 'Run' }, { title: 'Step time', number: true }, { title: 'Change', number: true }, { title: 'HBM/device', number: true }, { title: 'Memory' }],
      runs.map((run) => [h('a', { href: `#/runs/${encodeURIComponent(run.run_id)}` }, run.label || run.run_id), seconds(run.step_time_s),
        run === first ? '' : changeText(first.step_time_s, run.step_time_s), gib(run.hbm_bytes_per_device), verdict(run.fit_verdict)])),
    ...(answer.differences ?? []).map((difference) => {
      const names = [difference.from, difference.to];
      return [termsTable('Time, exposed seconds', difference.time_terms, names, seconds), termsTable('Memory', difference.memory_terms, names, gib)];
    }).flat(3))));
}
