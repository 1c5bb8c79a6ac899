// The changes that a plan makes to the reader's own configuration, and the time that each saves.

import { h, table } from './dom.js';
import { percent, signedPercent, words } from './format.js';

// "-5.6 %" from one value to another; nothing where either is unknown.
export function changeText(from, to) {
  return Number.isFinite(from) && Number.isFinite(to) && from > 0 && to > 0 ? signedPercent(to / from - 1) : '';
}

function shown(value) {
  if (value === null || value === undefined) return 'unset';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

// The time that each row saves, in the order of the waterfall: keys that are set in one step save together, in the first row of them. Pure.
export function savedByRow(changes) {
  const steps = new Set();
  return changes.map(({ order, gain_frac: gain }) => {
    const isNew = order > 0 && !steps.has(order);
    steps.add(order);
    return isNew ? gain : null;
  });
}

// plan: changes_from_baseline [{key, from, to, group, order, gain_frac}], gain_from_baseline_frac?
export function changesPanel({ changes_from_baseline: changes, gain_from_baseline_frac: gain }) {
  if (!changes?.length) return null;
  const saved = savedByRow(changes);
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h3', null, 'Changes from my configuration'),
      Number.isFinite(gain)
        ? h('p', null, `Together ${percent(Math.abs(gain))} ${gain >= 0 ? 'less' : 'more'} time per token.`)
        : null,
    ),
    table(
      'Changes from my configuration',
      [
        { title: 'Key' },
        { title: 'Mine' },
        { title: 'This plan' },
        { title: 'Group' },
        { title: 'Time saved', number: true },
      ],
      changes.map((change, index) => [
        h('code', null, change.key),
        shown(change.from),
        shown(change.to),
        words(change.group),
        saved[index] === null ? '' : percent(saved[index]),
      ]),
    ),
  );
}
