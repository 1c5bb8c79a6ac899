// What a plan changes of the reader's own configuration, and what each group of changes saves.

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

// plan: changes_from_baseline [{key, from, to, group, group_gain_frac}], gain_from_baseline_frac?
export function changesPanel({ changes_from_baseline: changes, gain_from_baseline_frac: gain }) {
  if (!changes?.length) return null;
  const isFirst = (change, index) => changes.findIndex((other) => other.group === change.group) === index;
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
        { title: 'Time saved by the group', label: 'Time saved', number: true },
      ],
      changes.map((change, index) => [
        h('code', null, change.key),
        shown(change.from),
        shown(change.to),
        words(change.group),
        isFirst(change, index) ? percent(change.group_gain_frac) : '',
      ]),
    ),
  );
}
