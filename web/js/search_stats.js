// How the plans were searched: what became of every combination looked at, and how long it took.

import { h } from './dom.js';
import { count, plural, rounded, seconds } from './format.js';
import { letteredParts } from './parts_chart.js';

const FATES = [
  ['illegal', 'against a rule, or not placeable'],
  ['pruned', 'cannot be among the best, by a lower bound'],
  ['out_of_memory', 'every plan inside needs too much memory'],
  ['left_out', 'not tried: the space is too large for one request'],
];

// {name, value} for each fate; what is left was searched to its best plan. Without all numbers: nothing to draw. Only
// what is left out is not said where it is nothing.
export function fates(search) {
  const known = FATES.filter(([name]) => Number.isFinite(search[name]));
  const told = FATES.filter(([name]) => name !== 'left_out' || Number.isFinite(search.left_out));
  const rest = search.considered - known.reduce((all, [name]) => all + search[name], 0);
  if (known.length < told.length || !(rest >= 0) || !(search.considered > 0)) return [];
  const parts = known.map(([name, title]) => ({ name: title, value: search[name] }));
  return [...parts, { name: 'best plan found inside', value: rest }];
}

// Whether there can be a better plan than the answer, and why.
export function endOfSearch(search) {
  if (search.exhaustive) return 'the whole space was covered';
  if (search.left_out > 0)
    return `${plural(search.left_out, 'combination', 'combinations')} not tried, as the space is too large for one request; a narrower search may find better`;
  return 'the budget ended the search early; more evaluations may find better';
}

// Why an answer has no plan, in a headline; search.empty_why tells the rest, and says nothing where memory is short.
export function emptyTitle(search) {
  const { considered, illegal, exhaustive, empty_why: why } = search ?? {};
  if (considered === (illegal ?? 0)) return 'No legal plan.';
  if (/search\.max_changes/.test(why)) return 'No plan has as few changes as are allowed.';
  if (exhaustive === false) return 'The search ended before it found a plan that fits.';
  return why ? 'No legal plan can be priced.' : 'No legal plan fits in memory.';
}

// hasMine: the reader's own configuration is one of the plans evaluated.
export function searchStats(search, hasMine) {
  if (!search) return null;
  const parts = fates(search);
  const time = Number.isFinite(search.elapsed_ms) ? ` in ${seconds(search.elapsed_ms / 1000)}` : '';
  const summary = `${plural(search.considered, 'combination', 'combinations')} considered, ${plural(search.evaluated, 'plan', 'plans')} evaluated inside them${hasMine ? ', mine included' : ''}${time}; ${endOfSearch(search)}`;
  if (!parts.length) return h('p', { class: 'soft' }, `${summary}.`);
  return h(
    'details',
    null,
    h('summary', null, summary),
    letteredParts({
      title: 'Combinations of mesh, batch and format',
      unit: 'Count',
      parts,
      total: search.considered,
      show: count,
    }),
    h(
      'p',
      { class: 'soft' },
      `Inside each, what is saved, recomputed or offloaded is chosen too, so more plans are evaluated than combinations considered. ${rounded(search.evaluations_per_s)} evaluations a second.`,
    ),
  );
}
