// The kernel view's form: fields made from the catalog's entry of the kernel, state to fields and back.

import { get } from './api.js';
import { connectAsk } from './ask.js';
import { copyFrom } from './copy.js';
import { announce, byId, h } from './dom.js';
import { clearErrors } from './errors.js';
import {
  KERNEL_DEFAULTS,
  buildKernelRequest,
  fieldOfKernelPointer,
  isKernelName,
  kernelField,
} from './kernel_request.js';
import { showKernelAnswer } from './kernel_results.js';
import { queryToState, stateToQuery } from './permalink.js';

const SUBMIT_TEXT = { tune: 'Find tiles', simulate: 'Simulate' };

let kernels = [];
const kept = new Map(); // what was typed into fields that the chosen kernel does not have
let ask = null;
let answered = null; // the form's state that the answer on screen is of

const form = () => byId('k-form');
const entryOf = (name) => kernels.find((entry) => entry.name === name);

function readState() {
  const state = Object.fromEntries([...new FormData(form())].map(([name, value]) => [name, String(value)]));
  return { ...state, store: state.store ?? '', wide: state.wide ?? '' };
}

const hash = (state) => {
  const query = stateToQuery(state, KERNEL_DEFAULTS);
  return `#/kernels${query ? `?${query}` : ''}`;
};

function control(name, field) {
  const id = kernelField(name);
  const common = { id, name, 'aria-describedby': `${id}-hint` };
  if (field.type !== 'bool')
    return h('input', {
      type: 'text',
      ...common,
      inputmode: /int|number/.test(field.type) && !field.type.endsWith('[]') ? 'decimal' : null,
      autocomplete: 'off',
      autocapitalize: 'none',
      spellcheck: 'false',
    });
  const choices = [
    ['', 'as usual'],
    ['true', 'yes'],
    ['false', 'no'],
  ];
  return h(
    'select',
    common,
    choices.map(([value, text]) => h('option', { value }, text)),
  );
}

function fieldOf(kind, field) {
  const name = `${kind}.${field.name}`;
  const made = control(name, field);
  made.value = kept.get(name) ?? KERNEL_DEFAULTS[name] ?? '';
  return h(
    'div',
    { class: 'field' },
    h('label', { for: made.id }, field.name),
    made,
    h('p', { class: 'hint', id: `${made.id}-hint` }, field.what),
  );
}

// Members that the kernel needs stand in the open, the rest behind "More of the shape".
function isNeeded(field) {
  return field.required || field.name === 'batch';
}

function fillFields() {
  const entry = entryOf(byId('k-kernel').value);
  const shape = entry?.shape ?? [];
  const rest = shape.filter((field) => !isNeeded(field));
  const fill = (place, kind, fields) => byId(place).replaceChildren(...fields.map((field) => fieldOf(kind, field)));
  fill('k-shape', 'shape', shape.filter(isNeeded));
  fill('k-shape-more', 'shape', rest);
  fill('k-tile', 'tile', entry?.tile ?? []);
  byId('k-more').hidden = rest.length === 0;
  byId('k-more').open ||= rest.some((field) => kept.get(`shape.${field.name}`));
  byId('k-no-tile').hidden = Boolean(entry?.tile?.length) || !entry;
  byId('k-kernel-hint').textContent = entry?.what ?? '';
}

function showTask() {
  const { task } = readState();
  for (const part of form().querySelectorAll('[data-task]')) part.hidden = part.dataset.task !== task;
  ask?.relabel();
}

function setChosen(select, value) {
  if (![...select.options].some((option) => option.value === value))
    select.prepend(h('option', { value }, kernels.length ? `${value} (not in the catalog)` : value));
  select.value = value;
}

export function writeKernelState(state) {
  for (const [name, value] of Object.entries(state)) {
    const made = form().elements[name];
    if (/^(shape|tile)\./.test(name)) kept.set(name, value);
    else if (name === 'chip' || name === 'kernel') setChosen(made, value);
    else if (name === 'wide' || name === 'store') made.checked = Boolean(value);
    else made.value = value;
  }
  byId('k-options').open ||= Boolean(state.flags || state.label);
  fillFields();
  showTask();
}

export function openKernelLink(query) {
  kept.clear();
  writeKernelState(queryToState(query, KERNEL_DEFAULTS, isKernelName));
}

function keepAddress() {
  history.replaceState(null, '', hash(readState()));
}

// A tile of the answer into the form, to change and simulate.
function editTile(tile) {
  const members = Object.entries(tile).map(([name, value]) => [`tile.${name}`, String(value)]);
  writeKernelState({ ...answered, task: 'simulate', ...Object.fromEntries(members) });
  keepAddress();
  byId('k-tile').querySelector('input')?.focus();
  announce('The tile is in the form; change it and simulate');
}

function useLimit(kib) {
  writeKernelState({ ...answered, limit_kib: String(kib) });
  ask.submit();
}

async function fillLists() {
  const [answer, { chips }] = await Promise.all([get('/v1/catalog/kernels'), get('/v1/catalog/chips')]);
  kernels = answer.kernels;
  const { chip, kernel } = readState();
  const option = ({ name, title }) => h('option', { value: name }, title ?? name);
  byId('k-chip').replaceChildren(...chips.filter((row) => row.is_tpu !== false).map(option));
  byId('k-kernel').replaceChildren(...kernels.map(({ name }) => h('option', { value: name }, name)));
  writeKernelState({ chip, kernel });
}

// Called whenever the view is opened; the lists are read once, again after a failure.
export async function openKernels(query) {
  if (query) openKernelLink(query);
  else if (kernels.length) keepAddress(); // the form holds what was entered before
  if (kernels.length) return;
  try {
    await fillLists();
    clearErrors(form());
  } catch (error) {
    ask.fail(fieldOfKernelPointer, error);
  }
}

export function connectKernels() {
  ask = connectAsk({
    form: form(),
    results: byId('k-results'),
    build: () => {
      const state = readState();
      const built = buildKernelRequest(state, entryOf(state.kernel));
      return { ...built, address: hash(state), state, locate: fieldOfKernelPointer };
    },
    label: () => SUBMIT_TEXT[readState().task],
    show: (body, answer, state) => {
      answered = state;
      return showKernelAnswer(byId('k-results'), body, answer, { editTile, useLimit });
    },
  });
  openKernelLink('');
  form().addEventListener('input', (event) => {
    const { name, value } = event.target;
    if (/^(shape|tile)\./.test(name)) kept.set(name, value);
    if (name === 'kernel') fillFields();
    showTask();
    keepAddress();
  });
  byId('k-copy-link').addEventListener('click', (event) => {
    keepAddress();
    copyFrom(event.currentTarget, location.href);
  });
}
