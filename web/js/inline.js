// Text of the daemon in which names stand between backticks: they become code, the marks go.

import { h } from './dom.js';

export function inline(text) {
  return String(text ?? '')
    .split('`')
    .map((part, index, all) => (index % 2 === 1 && index < all.length - 1 ? h('code', null, part) : part))
    .filter((part) => part !== '');
}

// The same where only text can stand, such as a title.
export function plain(text) {
  return String(text ?? '').replaceAll('`', '');
}
