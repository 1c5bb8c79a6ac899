// Building elements. Attributes and text only: nothing here (or anywhere in the page) parses HTML from data.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

// One figure of a <dl class="facts">: a name, a value and what is said small below it.
export function fact(name, value, second) {
  return h(
    'div',
    null,
    h('dt', null, name),
    h('dd', null, value, second ? h('span', { class: 'second' }, second) : null),
  );
}

const CARDS_FROM = 4; // columns

function lineOf(columns, cells) {
  const kind = (index) => (columns[index].number ? 'number' : columns[index].prose ? 'prose' : null);
  return h(
    'tr',
    null,
    cells.map((cell, index) =>
      index === 0
        ? h('th', { scope: 'row', class: kind(index), 'data-title': columns[0].bare ? columns[0].title : null }, cell)
        : h('td', { class: kind(index), 'data-title': columns[index].title }, cell),
    ),
  );
}

// A table with a caption; columns: [{title, number?, prose?, label?, bare?}] (label: what is shown for the title; bare: cells
// that need the title to be understood), rows: arrays of cells
// (text or elements), options.footer one more such array; the first cell heads its row. A wide table becomes cards on a phone.
export function table(caption, columns, rows, options = {}) {
  const head = columns.map((column) =>
    h('th', { scope: 'col', class: column.number ? 'number' : null }, column.label ?? column.title),
  );
  return h(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    h(
      'table',
      { class: [options.class, columns.length >= CARDS_FROM && 'cards'].filter(Boolean).join(' ') || null },
      h('caption', { class: 'visually-hidden' }, caption),
      h('thead', null, h('tr', null, head)),
      h(
        'tbody',
        null,
        rows.map((cells) => lineOf(columns, cells)),
      ),
      options.footer ? h('tfoot', null, lineOf(columns, options.footer)) : null,
    ),
  );
}

// Stands where an answer will be; shown only where it is long in coming.
export const loading = () => h('p', { class: 'soft loading', role: 'status' }, 'Loading …');

// Says something to those who listen instead of look.
export function announce(text) {
  const live = byId('announcer');
  live.textContent = '';
  live.textContent = text;
}
