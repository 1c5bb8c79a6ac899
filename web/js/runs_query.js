// The form over the stored runs: words, filters and order, which the daemon applies; what is asked for stays in the address.

import { h } from './dom.js';
import { tagsIn } from './run_tags.js';

const TYPED_MS = 200; // after the last key

const FILTERS = [
  ['project', 'Project'],
  ['label', 'Label'],
  ['model', 'Model'],
  ['chip', 'Chip'],
  ['git_ref', 'Git reference'],
  ['tags', 'Tags, with commas'],
];
const SORTS = [
  ['', 'newest first'],
  ['created_at', 'oldest first'],
  ['step_time_s', 'shortest step first'],
  ['-step_time_s', 'longest step first'],
  ['hbm_bytes_per_device', 'least HBM first'],
  ['-hbm_bytes_per_device', 'most HBM first'],
];
const NAMES = ['q', ...FILTERS.map(([name]) => name), 'sort', 'deleted'];

// The query of the address, without empty or unknown members; deleted runs have an order of their own. Pure.
export function wishOf(query) {
  const asked = new URLSearchParams(query);
  const wish = new URLSearchParams();
  for (const name of NAMES) {
    const text = (asked.get(name) ?? '').trim();
    const value = name === 'tags' ? tagsIn(text).join(',') : text;
    if (value && !(name === 'sort' && asked.get('deleted') === 'true')) wish.set(name, value);
  }
  return wish;
}

// Which rows of such a list are missing although they are stored, and why; null where none are. Pure.
export function leftOut(wish) {
  if (wish.get('deleted')) return 'Deleted runs, last deleted first. They can be restored until the daemon purges them.';
  return wish.get('sort') && !wish.get('sort').endsWith('created_at') ? 'Kernels have no such number: they are left out of this order.' : null;
}

function field(name, title, input) {
  return h('div', { class: name === 'q' ? 'field words' : 'field' }, h('label', { for: `filter-${name}` }, title), input);
}

function textField(name, title, wish, type = 'text') {
  return field(name, title, h('input', { type, id: `filter-${name}`, name, value: wish.get(name) ?? '', autocomplete: 'off', maxlength: name === 'q' ? 200 : null, list: name === 'model' ? 'models' : null }));
}

function choice(name, title, options, wish) {
  const rows = options.map(([value, text]) => h('option', { value, selected: value === (wish.get(name) ?? '') }, text));
  return field(name, title, h('select', { id: `filter-${name}`, name }, rows));
}

// onWish(wish, isTyped) is called when something else is asked for; isTyped: while the words are typed.
export function runsForm(wish, onWish) {
  const form = h(
    'form',
    { class: 'filters', 'aria-label': 'Filter the runs' },
    textField('q', 'Words', wish, 'search'),
    FILTERS.map(([name, title]) => textField(name, title, wish)),
    choice('sort', 'Order', SORTS, wish),
    choice('deleted', 'Runs', [['', 'stored'], ['true', 'deleted']], wish),
    h('button', { type: 'submit' }, 'Filter'),
  );
  let typed = null;
  const ask = (isTyped) => {
    clearTimeout(typed);
    onWish(wishOf(new URLSearchParams([...new FormData(form)])), isTyped);
  };
  const keepOrder = () => {
    form.elements.sort.disabled = form.elements.deleted.value === 'true';
  };
  form.elements.q.addEventListener('input', () => {
    clearTimeout(typed);
    typed = setTimeout(() => form.isConnected && ask(true), TYPED_MS);
  });
  form.addEventListener('change', (event) => {
    if (event.target.tagName !== 'SELECT') return;
    keepOrder();
    ask(false);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    ask(false);
  });
  keepOrder();
  return form;
}
