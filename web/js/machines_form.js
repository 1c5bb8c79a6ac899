// The list of machines to compare: a few entries for each, which ones depends on its chip and shape. The rows are kept as text
// in a hidden control, so the form reads, writes and links them like any other entry.

import { slicesOf, sliceNote } from './catalog.js';
import { announce, byId, h } from './dom.js';
import { entriesOf, parseMachines, writeMachines } from './machines_text.js';

const LABELS = { chips: 'Chips', slices: 'Slices', price: '$/chip hour', mfu: 'MFU (0 to 1)' };
const HINTS = { slices: '1 to 8', price: 'catalog', mfu: 'peak' };
const MOST = 64;

let catalog = { chips: [], gpus: [], slices: [] };

const rowsOf = () => [...byId('machine-list').children];
const controlOf = (row, name) => row.querySelector(`[data-member="${name}"]`);

function readRow(row) {
  const read = (name) => controlOf(row, name).value;
  return Object.fromEntries(
    ['chip', 'topology', 'chips', 'slices', 'price', 'mfu'].map((name) => [name, read(name)]),
  );
}

function keep() {
  byId('machines').value = writeMachines(rowsOf().map(readRow));
}

function options(select, rows, chosen) {
  const all = rows.some(({ value }) => value === chosen) ? rows : [{ value: chosen, text: chosen }, ...rows];
  select.replaceChildren(...all.map(({ value, text }) => h('option', { value }, text)));
  select.value = chosen;
}

function fillShapes(row, chosen) {
  const slices = slicesOf(catalog, controlOf(row, 'chip').value);
  const shapes = slices.map((slice) => ({ value: slice.topology, text: `${slice.topology} · ${sliceNote(slice)}` }));
  const isGpu = catalog.gpus.some((gpu) => gpu.name === controlOf(row, 'chip').value);
  const all = isGpu ? [{ value: '', text: 'no slices' }] : [{ value: 'any', text: 'any shape' }, ...shapes];
  options(controlOf(row, 'topology'), all, isGpu || chosen || !shapes.length ? chosen : 'any');
}

// Hides what this machine does not need; what was typed there stays.
function adapt(row) {
  const needed = entriesOf(readRow(row));
  for (const [name, shown] of Object.entries(needed)) controlOf(row, name).closest('.field').hidden = !shown;
  controlOf(row, 'topology').closest('.field').hidden = controlOf(row, 'topology').value === '';
  const any = controlOf(row, 'topology').value === 'any';
  controlOf(row, 'slices').placeholder = any ? HINTS.slices : '1';
}

function field(index, name, label, control) {
  control.id = `machine-${index}-${name}`;
  control.dataset.member = name;
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control);
}

function entry(index, name, value) {
  const control = h('input', {
    type: 'text',
    inputmode: 'decimal',
    autocomplete: 'off',
    placeholder: HINTS[name],
    value,
  });
  return field(index, name, LABELS[name], control);
}

function draw(machine, index) {
  const remove = h('button', { type: 'button', class: 'small' }, 'Remove');
  const row = h(
    'div',
    { class: 'machine', role: 'group', 'aria-label': `Machine ${index + 1}` },
    h(
      'div',
      { class: 'panel-head' },
      h('span', { class: 'soft' }, `Machine ${index + 1}`),
      h('p', { class: 'actions' }, remove),
    ),
    h(
      'div',
      { class: 'pair' },
      field(index, 'chip', 'Chip', h('select')),
      field(index, 'topology', 'Slice topology', h('select')),
    ),
    h(
      'div',
      { class: 'thirds' },
      ['chips', 'slices', 'price', 'mfu'].map((name) => entry(index, name, machine[name])),
    ),
  );
  const chips = [...catalog.chips, ...catalog.gpus];
  options(
    controlOf(row, 'chip'),
    chips.map((chip) => ({ value: chip.name, text: chip.name })),
    machine.chip,
  );
  fillShapes(row, machine.topology);
  adapt(row);
  remove.addEventListener('click', () => {
    row.remove();
    keep();
    drawMachines();
    byId('add-machine').focus();
    byId('machines').dispatchEvent(new Event('input', { bubbles: true }));
    announce('Removed');
  });
  return row;
}

// Draws the rows anew from the hidden control, as after a link or a change of the catalog.
export function drawMachines(loaded = catalog) {
  catalog = loaded;
  byId('machine-list').replaceChildren(...parseMachines(byId('machines').value).map(draw));
}

export function connectMachines() {
  byId('machine-list').addEventListener('input', (event) => {
    const row = event.target.closest('.machine');
    if (event.target.dataset.member === 'chip') {
      const isGpu = catalog.gpus.some((gpu) => gpu.name === event.target.value);
      fillShapes(row, isGpu ? '' : 'any');
    }
    adapt(row);
    keep();
  });
  byId('add-machine').addEventListener('click', () => {
    const rows = rowsOf().map(readRow);
    if (rows.length >= MOST) return;
    rows.push(rows.at(-1) ?? { chip: catalog.chips[0]?.name ?? '', topology: 'any' });
    byId('machines').value = writeMachines(rows);
    drawMachines();
    byId('machines').dispatchEvent(new Event('input', { bubbles: true }));
    byId(`machine-${rows.length - 1}-chip`).focus();
  });
}
