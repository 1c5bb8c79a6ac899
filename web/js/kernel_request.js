// The kernel form's state to an API request, and an error's JSON pointer back to its control. Pure: no page, no network.
// Shape and tile fields are named "shape.NAME" and "tile.NAME"; which there are, the catalog's entry of the kernel says.

import { parseConfig } from './config_text.js';
import { typedNumber } from './typed_number.js';

export const KERNEL_DEFAULTS = Object.freeze({
  task: 'tune',
  chip: 'tpu7x',
  kernel: 'splash_fwd',
  limit_kib: '',
  top_k: '10',
  wide: '',
  flags: '',
  label: '',
  store: '',
  'shape.q_heads': '64',
  'shape.kv_heads': '8',
  'shape.q_len': '8192',
  'shape.head_dim_qk': '128',
  'shape.m': '32768',
  'shape.k': '2048',
  'shape.n': '1408',
  'shape.num_groups': '64',
  'shape.tokens': '8192',
  'shape.emb_dim': '4096',
  'shape.vocab': '128256',
});

export function isKernelName(name) {
  return name in KERNEL_DEFAULTS || /^(shape|tile)\.[a-z0-9_]+$/.test(name);
}

const FIELD_OF_POINTER = {
  '/scoped_vmem_limit_kib': 'limit_kib',
  '/flags/xla_tpu_scoped_vmem_limit_kib': 'limit_kib',
};

// The control's id; every id of this form begins with "k-".
export function kernelField(name) {
  return `k-${name.replace('.', '-')}`;
}

export function fieldOfKernelPointer(pointer) {
  const [, first = '', second = '', ...rest] = pointer.split('/');
  if (FIELD_OF_POINTER[pointer]) return { field: kernelField(FIELD_OF_POINTER[pointer]), below: '' };
  if ((first === 'shape' || first === 'tile') && second)
    return { field: kernelField(`${first}.${second}`), below: rest.join('/') };
  if (first === 'shape' || first === 'tile') return { field: 'k-kernel', below: '' };
  if (isKernelName(first)) return { field: kernelField(first), below: [second, ...rest].filter(Boolean).join('/') };
  return { field: null, below: pointer };
}

function numberOf(text, pointer, what, errors) {
  const value = typedNumber(text);
  if (!Number.isFinite(value)) errors.push({ pointer, detail: `${what}: “${text}” is not a number.` });
  return value;
}

function listOf(text, pointer, what, errors) {
  const items = text
    .replaceAll(/[[\]]/g, ' ')
    .split(/[\s,]+/)
    .filter(Boolean);
  return items.map((item) => numberOf(item, pointer, what, errors));
}

function valueOf(field, text, pointer, errors) {
  if (field.type === 'bool') return text === 'true';
  if (field.type === 'string') return text;
  if (field.type.endsWith('[]')) return listOf(text, pointer, field.name, errors);
  return numberOf(text, pointer, field.name, errors);
}

// Empty fields are left out: the daemon has defaults for most and names those it needs.
function membersOf(kind, fields, state, errors) {
  const members = {};
  for (const field of fields ?? []) {
    const text = (state[`${kind}.${field.name}`] ?? '').trim();
    if (text) members[field.name] = valueOf(field, text, `/${kind}/${field.name}`, errors);
  }
  return members;
}

function flagsOf(text, errors) {
  const parsed = parseConfig(text);
  parsed.errors.forEach((error) => errors.push({ pointer: '/flags', ...error }));
  return parsed.value;
}

// A simulation of `tile` for the same chip, kernel and shape as `body` asks about.
export function simulationOf(body, tile, extra = {}) {
  const { chip, kernel, shape, flags, scoped_vmem_limit_kib: limit } = body;
  const request = { chip, kernel, shape, tile, ...extra };
  if (flags) request.flags = flags;
  if (limit) request.scoped_vmem_limit_kib = limit;
  return request;
}

// entry: the kernel in the catalog. {path, body, errors}; with errors the body must not be sent.
export function buildKernelRequest(state, entry) {
  const errors = [];
  const body = { chip: state.chip, kernel: state.kernel, shape: membersOf('shape', entry?.shape, state, errors) };
  if (state.flags.trim()) body.flags = flagsOf(state.flags, errors);
  if (state.limit_kib.trim())
    body.scoped_vmem_limit_kib = numberOf(state.limit_kib, '/scoped_vmem_limit_kib', 'VMEM limit', errors);
  if (state.task === 'tune') {
    body.top_k = numberOf(state.top_k, '/top_k', 'Number of tiles', errors);
    if (state.wide) body.wide = true;
    body.tile_map = true;
  } else {
    body.tile = membersOf('tile', entry?.tile, state, errors);
    body.timeline = true;
  }
  if (state.label.trim()) body.label = state.label.trim();
  if (state.store) body.store = 'try';
  return { path: state.task === 'tune' ? '/v1/kernels/tune' : '/v1/kernels/simulate', body, errors };
}

function fill(state, kind, members) {
  for (const [name, value] of Object.entries(members ?? {}))
    state[`${kind}.${name}`] = Array.isArray(value) ? value.join(', ') : String(value);
}

// A stored request, or a tile of an answer, back into the form.
export function stateOfKernelRequest(request) {
  const state = { chip: request.chip, kernel: request.kernel, task: request.tile ? 'simulate' : 'tune' };
  fill(state, 'shape', request.shape);
  fill(state, 'tile', request.tile);
  state.limit_kib = String(request.scoped_vmem_limit_kib ?? '');
  state.top_k = String(request.top_k ?? KERNEL_DEFAULTS.top_k);
  state.wide = request.wide ? 'true' : '';
  state.flags = Object.entries(request.flags ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');
  state.label = request.label ?? '';
  return state;
}
