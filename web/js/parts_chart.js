// Parts that add up to a whole, as a bar with letters and the same as a table.

import { linkRows, stackedBars, swatch } from './bar.js';
import { table } from './dom.js';
import { percent } from './format.js';

// parts: [{name, value}]; unit heads the column of values, show(value) gives one its unit; limit {value, label} is drawn as a
// line. The chart and the table, as a pair.
export function letteredParts({ title, unit = 'Time', parts, total, show, limit }) {
  const sorted = [...parts].sort((a, b) => b.value - a.value).map((part, index) => ({ ...part, index }));
  const chart = stackedBars({
    label: `${title}: ${sorted.map((part) => `${part.name} ${show(part.value)}`).join(', ')}.`,
    scale: limit ? Math.max(limit.value, total) * 1.02 : total || 1,
    limit,
    rows: [
      {
        label: title,
        parts: sorted.map((part) => ({ ...part, title: `${part.name}: ${show(part.value)}` })),
      },
    ],
  });
  const list = table(
    title,
    [{ title: 'Part' }, { title: unit, number: true }, { title: 'Of it all', number: true }],
    sorted.map((part) => [[swatch(part.index), ' ', part.name], show(part.value), percent(part.value / total)]),
    { footer: ['Sum', show(sorted.reduce((all, part) => all + part.value, 0)), ''], class: 'compact' },
  );
  linkRows(chart, list.querySelectorAll('tbody tr'));
  return [chart, list];
}
