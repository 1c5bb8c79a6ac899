// Where an answer was stored, or that it was not.

import { h } from './dom.js';

export function runNote(request, answer) {
  if (answer.run_id)
    return h(
      'p',
      { class: 'soft' },
      'Stored as run ',
      h('a', { href: `#/runs/${encodeURIComponent(answer.run_id)}` }, answer.run_id),
      '.',
    );
  if (request.store && !answer.stored)
    return h('p', { class: 'soft' }, 'Not stored: the daemon has no database at the moment.');
  return null;
}
