// A failed request as a notice in the page, for views that have no form to put the errors beside.

import { h } from './dom.js';
import { generalText } from './errors.js';
import { inline, plain, sentenceOf } from './inline.js';

// A page that cannot be shown keeps its name.
export const failedPage = (title, error) => h('div', { class: 'results' }, h('h1', null, title), failure(error));

// An address that leads nowhere: what was asked for, and where to go from here.
export const missingPage = (path) =>
  h(
    'div',
    { class: 'results' },
    h('h1', null, 'No such page'),
    h(
      'section',
      { class: 'error-summary', role: 'alert' },
      h('h2', null, 'The address leads to no page here'),
      h('p', null, h('code', null, `#${path}`), ' is not one of them. ', h('a', { href: '#/' }, 'Plan a training job'), ' or take a page from the menu above.'),
    ),
  );

export function failure(error) {
  const findings = (error.errors ?? []).filter((item) => item.pointer);
  const { message, detail, errors = [], retryAfter } = error;
  return h(
    'section',
    { class: 'error-summary', role: 'alert' },
    h('h2', null, plain(message)),
    h('p', null, inline(generalText({ message, detail, errors, retryAfter }))),
    findings.length
      ? h(
          'ul',
          null,
          findings.map((item) => h('li', null, inline(sentenceOf(item.detail)), item.hint ? [' ', inline(sentenceOf(item.hint))] : '')),
        )
      : null,
  );
}
