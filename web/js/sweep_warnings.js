// What the answers of a sweep's items warn of: each warning once, with the items that have it.

import { finding } from './detail.js';
import { h } from './dom.js';
import { count, plural } from './format.js';

const MOST = 8; // item numbers that are named

// [{warning, items[], differs}]: one for each code and place, in the order in which they are met; differs: not all say the same words. Pure.
export function warningsOf(items) {
  const groups = new Map();
  for (const { item, warnings } of items)
    for (const warning of warnings ?? []) {
      const key = `${warning.code} ${warning.pointer}`;
      if (!groups.has(key)) groups.set(key, { warning, items: [], differs: false });
      const group = groups.get(key);
      if (group.items.at(-1) !== item) group.items.push(item);
      group.differs ||= warning.detail !== group.warning.detail;
    }
  return [...groups.values()];
}

// "unknown-key, refused-flag"; '' without any. Pure.
export const codesOf = ({ warnings }) => [...new Set((warnings ?? []).map(({ code }) => code))].join(', ');

// Which of the items that have an answer; pure.
export function whoseText({ items, differs }, answered) {
  const named = `${items.slice(0, MOST).join(', ')}${items.length > MOST ? ' …' : ''}`;
  const whose = items.length === answered ? `In ${answered === 1 ? 'the one item' : `all ${count(answered)} items`} with an answer` : `In ${count(items.length)} of ${plural(answered, 'item', 'items')} with an answer: ${named}`;
  return `${whose}.${differs ? ` These are the words of item ${items[0]}; others have their own.` : ''}`;
}

// Null where nothing warns.
export function warningsPanel(items) {
  const groups = warningsOf(items);
  if (!groups.length) return null;
  const answered = items.filter(({ state }) => state === 'done').length;
  const lines = groups.map((group) => {
    const line = finding(group.warning, 'warning');
    line.append(h('span', { class: 'second' }, whoseText(group, answered)));
    return line;
  });
  return h('section', { 'aria-label': 'Warnings' }, h('h2', null, `Warnings (${count(groups.length)})`), h('ul', { class: 'findings' }, lines));
}
