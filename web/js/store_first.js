// Stands in place of a part that only a stored plan has, with a button that stores the answer.

import { h } from './dom.js';
import { failure } from './failure.js';

// onStore(tab)?: stores the answer and opens it at this plan and tab.
export function storeFirst(text, tab, onStore) {
  const line = h('p', { class: 'soft' }, text);
  if (!onStore) return line;
  const said = h('div');
  const button = h('button', { type: 'button' }, 'Store as a run');
  button.addEventListener('click', async () => {
    button.disabled = true;
    await onStore(tab).catch((error) => said.replaceChildren(failure(error)));
    button.disabled = false;
  });
  return h('div', { class: 'results' }, line, h('p', null, button), said);
}
