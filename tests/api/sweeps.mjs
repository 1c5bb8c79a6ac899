// What the tests of sweeps have in common: `sweepsOf(() => daemon)` makes sweeps and waits for them.
import assert from 'node:assert/strict';
import { estimateRequest, until } from './daemon.mjs';

export const base = estimateRequest();
export const batches = (count, first = 1) => Array.from({ length: count }, (_, i) => first + i);
export const grid = (count, more = {}) => ({ kind: 'estimate', grid: { base, axes: { '/config/gradient_accumulation_steps': batches(count) } }, ...more });

export function sweepsOf(daemon) {
  const get = async (path, from = daemon()) => (await from.fetch(path)).json();
  const create = async (body, headers) => {
    const response = await daemon().post('/v1/sweeps', body, headers);
    const text = await response.text();
    assert.equal(response.status, 202, text);
    const sweep = JSON.parse(text);
    assert.equal(response.headers.get('location'), `/v1/sweeps/${sweep.sweep_id}`);
    return { path: `/v1/sweeps/${sweep.sweep_id}`, sweep };
  };
  const ended = (path, ms = 20000, from = daemon()) => until(`${path} ends`, async () => {
    const sweep = await get(path, from);
    return sweep.state !== 'running' && sweep;
  }, ms);
  return { get, create, ended };
}
