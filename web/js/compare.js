// Stored runs side by side, and which time and memory terms moved between the first and each other.

import { get } from './api.js';
import { changeText } from './changes.js';
import { h, table } from './dom.js';
import { gib, percent, rounded, seconds, secondsLike, words } from './format.js';
import { verdict } from './memory_bar.js';

// Terms that moved, the largest move first, and one row for all that stayed; the differences add up to the whole.
export function movedTerms(terms) {
  const moved = terms.filter((term) => term.delta !== 0).sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta));
  const still = terms.filter((term) => term.delta === 0).reduce((all, term) => all + term.from, 0);
  return still > 0 ? [...moved, { name: 'unchanged', from: still, to: still, delta: 0 }] : moved;
}

function signed(show, value) {
  return value > 0 ? `+${show(value)}` : show(value);
}

function termsTable(title, terms, names, show) {
  if (!terms?.length) return null;
  const columns = [
    { title: 'Term' },
    { title: names[0], number: true },
    { title: names[1], number: true },
    { title: 'Difference', number: true },
  ];
  const total = (member) => terms.reduce((all, term) => all + term[member], 0);
  const list = table(
    title,
    columns,
    movedTerms(terms).map((term) => [words(term.name), show(term.from), show(term.to), signed(show, term.delta)]),
    { footer: ['Sum', show(total('from')), show(total('to')), signed(show, total('delta'))] },
  );
  return h('section', { class: 'panel' }, h('h2', null, title), list);
}

function sidesTable(runs, nameOf) {
  const first = runs[0];
  const change = (run, member) => (run === first ? '' : changeText(first[member], run[member]));
  return table(
    'Runs side by side',
    [
      { title: 'Run' },
      { title: 'Step time', number: true },
      { title: 'Tokens/s per chip', number: true },
      { title: 'MFU', number: true },
      { title: 'HBM per device', number: true },
    ],
    runs.map((run) => [
      h('a', { href: `#/runs/${encodeURIComponent(run.run_id)}` }, nameOf(run.run_id)),
      [seconds(run.step_time_s), h('span', { class: 'second' }, change(run, 'step_time_s'))],
      rounded(run.tokens_per_s_per_chip),
      percent(run.mfu_frac),
      [
        gib(run.hbm_bytes_per_device),
        ' ',
        verdict(run.fit_verdict),
        h('span', { class: 'second' }, change(run, 'hbm_bytes_per_device')),
      ],
    ]),
  );
}

export async function showCompare(place, ids) {
  const [answer, ...stored] = await Promise.all([
    get(`/v1/compare?runs=${ids.map(encodeURIComponent).join(',')}`),
    ...ids.map((id) => get(`/v1/runs/${encodeURIComponent(id)}`)), // for their labels
  ]);
  const nameOf = (id) => stored.find((run) => run.run_id === id)?.label || id.slice(0, 13);
  const step = Math.max(...answer.runs.map((run) => run.step_time_s));
  place.replaceChildren(
    h(
      'div',
      { class: 'results' },
      h('section', { class: 'panel' }, h('h1', null, 'Comparison'), sidesTable(answer.runs, nameOf)),
      answer.differences.map((difference) => {
        const names = [nameOf(difference.from), nameOf(difference.to)];
        return [
          termsTable('Where the time went (exposed)', difference.time_terms, names, (value) =>
            secondsLike(value, step),
          ),
          termsTable('Where the memory went', difference.memory_terms, names, gib),
        ];
      }),
    ),
  );
}
