// Tabs: one panel at a time on screen, all of them on paper. A panel is filled when it is first shown or printed.

import { h } from './dom.js';

const KEYS = { ArrowRight: 1, ArrowLeft: -1 };

// Before printing every page of tabs fills all its panels; the style sheet then shows them one below the other.
const waiting = new Set();
function fillAll() {
  for (const fill of waiting) fill();
}
if (typeof window !== 'undefined') {
  window.addEventListener('beforeprint', fillAll);
  window.matchMedia('print').addEventListener('change', (event) => event.matches && fillAll());
}

// items: [{id, title, build()}], build gives the nodes of a panel or a promise of them; chosen: the id to begin with.
// onChoose(id) is called for what the reader chooses. Gives {list, panels}, to be placed by the caller.
export function tabs({ name, label, items, chosen, onChoose }) {
  const first = items.find((item) => item.id === chosen) ?? items[0];
  const filled = new Set();
  const panels = items.map((item) =>
    h('div', {
      class: 'tab-panel results',
      role: 'tabpanel',
      id: `${name}-panel-${item.id}`,
      'aria-label': item.title,
      'data-title': item.title,
      tabindex: '-1',
    }),
  );
  const buttons = items.map((item) =>
    h(
      'button',
      { type: 'button', role: 'tab', id: `${name}-tab-${item.id}`, 'aria-controls': `${name}-panel-${item.id}` },
      item.title,
    ),
  );
  const fill = (index) => {
    if (filled.has(index)) return;
    filled.add(index);
    panels[index].replaceChildren(...items[index].build());
  };
  const show = (index) => {
    fill(index);
    // What could not be loaded is asked for again.
    for (const failed of panels[index].querySelectorAll('[data-failed]')) failed.dispatchEvent(new Event('retry'));
    items.forEach((item, other) => {
      buttons[other].setAttribute('aria-selected', String(other === index));
      buttons[other].tabIndex = other === index ? 0 : -1;
      panels[other].classList.toggle('current', other === index);
    });
  };
  const choose = (index) => {
    show(index);
    buttons[index].focus({ preventScroll: true });
    buttons[index].scrollIntoView({ block: 'nearest', inline: 'nearest' });
    onChoose?.(items[index].id);
  };
  buttons.forEach((button, index) => {
    button.addEventListener('click', () => choose(index));
    button.addEventListener('keydown', (event) => {
      const ends = { Home: 0, End: items.length - 1 };
      const next = ends[event.key] ?? (KEYS[event.key] && (index + KEYS[event.key] + items.length) % items.length);
      if (next === undefined) return;
      event.preventDefault();
      choose(next);
    });
  });
  show(items.indexOf(first));
  const everything = () => {
    if (panels[0].isConnected) items.forEach((item, index) => fill(index));
    else waiting.delete(everything); // replaced by another plan
  };
  waiting.add(everything);
  return { list: h('div', { class: 'tabs', role: 'tablist', 'aria-label': label }, buttons), panels };
}
