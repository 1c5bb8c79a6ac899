import assert from 'node:assert/strict';
import test from 'node:test';
import { tileColumns, tileText } from '../../../web/js/kernel_results.js';
import {
  KERNEL_DEFAULTS,
  buildKernelRequest,
  fieldOfKernelPointer,
  isKernelName,
  simulationOf,
  stateOfKernelRequest,
} from '../../../web/js/kernel_request.js';
import { queryToState, stateToQuery } from '../../../web/js/permalink.js';
import { busyShares, moved } from '../../../web/js/timeline.js';
import { intervalScale } from '../../../web/js/interval.js';

const ENTRY = {
  shape: [
    { name: 'm', type: 'int' },
    { name: 'group_sizes', type: 'int[]' },
    { name: 'causal', type: 'bool' },
  ],
  tile: [{ name: 'tile_m', type: 'int' }],
};
const JOB = { ...KERNEL_DEFAULTS, kernel: 'gmm', 'shape.m': '1,024', 'shape.group_sizes': '[512, 512]' };

test('a tuning is sent with the types of the catalog, and what is empty is left out', () => {
  const { path, body, errors } = buildKernelRequest({ ...JOB, wide: 'true', flags: 'kernel_only=true' }, ENTRY);
  assert.deepEqual(errors, []);
  assert.equal(path, '/v1/kernels/tune');
  const shape = { m: 1024, group_sizes: [512, 512] };
  assert.deepEqual(body, {
    chip: 'tpu7x',
    kernel: 'gmm',
    shape,
    flags: { kernel_only: true },
    top_k: 10,
    tile_map: true,
    wide: true,
  });
});

test('a simulation is sent with its tile and asks for the timeline', () => {
  const { path, body } = buildKernelRequest(
    { ...JOB, task: 'simulate', 'tile.tile_m': '128', limit_kib: '8192' },
    ENTRY,
  );
  assert.equal(path, '/v1/kernels/simulate');
  assert.deepEqual(body.tile, { tile_m: 128 });
  assert.equal(body.timeline, true);
  const again = simulationOf(body, { tile_m: 64 }, { trace: true });
  assert.deepEqual(Object.keys(again), ['chip', 'kernel', 'shape', 'tile', 'trace', 'scoped_vmem_limit_kib']);
});

test('entries that are no numbers are reported with their pointers', () => {
  const { errors } = buildKernelRequest({ ...JOB, 'shape.group_sizes': '5, many', top_k: 'ten' }, ENTRY);
  assert.deepEqual(
    errors.map((error) => error.pointer),
    ['/shape/group_sizes', '/top_k'],
  );
});

test('every pointer leads to its control', () => {
  assert.deepEqual(fieldOfKernelPointer('/shape/q_heads'), { field: 'k-shape-q_heads', below: '' });
  assert.deepEqual(fieldOfKernelPointer('/shape/group_sizes/3'), { field: 'k-shape-group_sizes', below: '3' });
  assert.deepEqual(fieldOfKernelPointer('/flags/nosuch'), { field: 'k-flags', below: 'nosuch' });
  assert.equal(fieldOfKernelPointer('/scoped_vmem_limit_kib').field, 'k-limit_kib');
  assert.equal(fieldOfKernelPointer('/shape').field, 'k-kernel');
  assert.equal(fieldOfKernelPointer('').field, null);
  assert.equal(fieldOfKernelPointer('/elsewhere').field, null);
});

test('a link holds the form and nothing else, and a stored request opens unchanged', () => {
  const state = {
    task: 'simulate',
    chip: 'v5p',
    kernel: 'gmm',
    'shape.m': '64',
    'tile.tile_m': '8',
    'shape.batch': '',
  };
  const back = queryToState(stateToQuery(state, KERNEL_DEFAULTS), KERNEL_DEFAULTS, isKernelName);
  assert.deepEqual({ ...KERNEL_DEFAULTS, ...state, 'shape.batch': undefined }, { ...back, 'shape.batch': undefined });
  assert.deepEqual(queryToState('evil=1&shape.%3Cb%3E=1', KERNEL_DEFAULTS, isKernelName), KERNEL_DEFAULTS);
  const { body } = buildKernelRequest({ ...JOB, limit_kib: '4096', flags: 'kernel_only=true' }, ENTRY);
  const stored = { ...KERNEL_DEFAULTS, ...stateOfKernelRequest(body) };
  assert.deepEqual(buildKernelRequest(stored, ENTRY).body, body);
});

test('tiles get a column for each number and for what differs', () => {
  const tiles = [
    { block_q: 1, k_layout: 'A', v_layout: 'A' },
    { block_q: 1, k_layout: 'B', v_layout: 'A' },
  ];
  assert.deepEqual(tileColumns(tiles), { columns: ['block_q', 'k_layout'], common: { v_layout: 'A' } });
  assert.deepEqual(tileColumns([]), { columns: [], common: {} });
  assert.equal(tileText({ block_q: 1, k_layout: 'A' }), 'block_q 1');
  assert.equal(tileText({}), 'chosen by XLA');
});

test('the window of steps stays inside the list', () => {
  const view = { first: 10, size: 8 };
  assert.deepEqual(moved(view, 'later', 20), { first: 12, size: 8 });
  assert.deepEqual(moved(view, 'earlier', 20), { first: 2, size: 8 });
  assert.deepEqual(moved(view, 'more', 20), { first: 4, size: 16 });
  assert.deepEqual(moved(view, 'fewer', 20), { first: 10, size: 4 });
  assert.deepEqual(moved({ first: 0, size: 12 }, 'start', 3), { first: 0, size: 3 });
  assert.deepEqual(moved({ first: 5, size: 1 }, 'fewer', 20), { first: 5, size: 1 });
});

test('busy shares count the steps that are not listed, and stay unknown where those are', () => {
  const steps = [{ dma_in: [0, 1], mxu: [1, 4], vector: null, dma_out: null }];
  const omitted = { count: 1, dma_in_us: 1, mxu_us: 3, vector_us: 0, dma_out_us: null };
  assert.deepEqual(busyShares({ steps, omitted, end_us: 10 }), { dma_in: 0.2, mxu: 0.6, vector: 0, dma_out: null });
});

test('intervals share one scale, with and without values', () => {
  const { low, high } = intervalScale([{ step_time_low_s: 1, step_time_high_s: 2 }, {}, { step_time_low_s: null }]);
  assert.ok(low < 1 && high > 2);
  assert.equal(intervalScale([{}]), null);
});
