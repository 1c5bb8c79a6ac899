// A table of which one row is chosen: by the mouse anywhere on the row, by arrow keys on its radio button.

import { h } from './dom.js';

function kindOf(column) {
  return [column.number && 'number', column.wide && 'wide', column.lead && 'lead'].filter(Boolean).join(' ') || null;
}

function rowOf(row, columns, name, onChoose) {
  const radio = h('input', { type: 'radio', name, value: row.value, id: `${name}-${row.value}` });
  radio.addEventListener('change', () => onChoose(row.item));
  const line = h(
    'tr',
    { class: row.class },
    h(
      'th',
      { scope: 'row' },
      h('label', null, radio, row.head),
      row.note ? h('span', { class: 'second' }, row.note) : null,
    ),
    row.cells.map((cell, index) => h('td', { class: kindOf(columns[index + 1]), 'data-title': columns[index + 1].title }, cell)),
  );
  line.addEventListener('click', (event) => {
    if (event.target.closest('label, a, button, summary') || String(window.getSelection())) return;
    if (!radio.checked) onChoose(row.item);
    radio.checked = true;
    radio.focus({ preventScroll: true });
  });
  return line;
}

// columns: [{title, label?, number?, wide?, lead?, sorted?}] (wide: left out in a narrow place; lead: says itself what it is), the first one heads the rows; rows: [{value, head, note?, cells, class?, item}]; tables
// with the same name share one choice. onChoose(item) is called for what the reader chooses, not for the first choice.
export function choiceTable({ caption, columns, rows, name, id, onChoose }) {
  return h(
    'div',
    { class: 'scroll', role: 'group', 'aria-label': `${caption}; choose one to see it in full` },
    h(
      'table',
      { class: 'choice cards', id },
      h('caption', { class: 'visually-hidden' }, caption),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          columns.map((column) => h('th', { scope: 'col', class: kindOf(column), 'aria-sort': column.sorted ? 'ascending' : null }, column.label ?? column.title)),
        ),
      ),
      h(
        'tbody',
        null,
        rows.map((row) => rowOf(row, columns, name, onChoose)),
      ),
    ),
  );
}

export function checkChoice(place, name, value) {
  const radio = place.querySelector(`[id="${CSS.escape(`${name}-${value}`)}"]`);
  if (radio) radio.checked = true;
}
