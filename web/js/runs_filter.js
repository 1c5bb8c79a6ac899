// A form of filters that the daemon applies; what is asked for stays in the address.

import { h } from './dom.js';

// asked: URLSearchParams; filters: [[name, title]]; view: the part of the address after "#/".
export function filterForm(asked, filters, view, label) {
  const fields = filters.map(([name, title]) =>
    h(
      'div',
      { class: 'field' },
      h('label', { for: `filter-${name}` }, title),
      h('input', { type: 'text', id: `filter-${name}`, name, value: asked.get(name) ?? '', autocomplete: 'off', list: name === 'model' ? 'models' : null }),
    ),
  );
  const filter = h('form', { class: 'filters', 'aria-label': label }, fields, h('button', { type: 'submit' }, 'Filter'));
  filter.addEventListener('submit', (event) => {
    event.preventDefault();
    const wanted = [...new FormData(filter)].filter(([, value]) => value.trim());
    location.hash = `#/${view}?${new URLSearchParams(wanted.map(([name, value]) => [name, value.trim()]))}`;
  });
  return filter;
}
