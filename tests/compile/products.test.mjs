// The engine's matrix products against those of compiled steps (tests/compile/products.json, written by flops.py): the same FLOPs
// to the last one, but for the rows that say otherwise.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const PROGRAM = process.env.PROGRAM ?? 'build/tpu-advisor';
const MULTIPLIES = /^(matmul_|logits|router|mtp|embedding)/;
const rows = JSON.parse(readFileSync('tests/compile/products.json', 'utf8'));

function estimatedFlops(request) {
  const done = spawnSync(PROGRAM, ['estimate', '-'], { input: JSON.stringify(request), encoding: 'utf8', maxBuffer: 64 << 20 });
  assert.equal(done.status, 0, done.stderr);
  const answer = JSON.parse(done.stdout);
  const parts = (answer.estimate ?? answer).time_parts;
  return parts.filter((part) => MULTIPLIES.test(part.name)).reduce((sum, part) => sum + (part.flops_per_device ?? 0), 0);
}

test('rows of every kind are there', () => {
  assert.ok(rows.length >= 30, `${rows.length} rows`);
  assert.ok(new Set(rows.map((row) => row.request.model)).size >= 8);
});

for (const row of rows) {
  test(`${row.id}: ${row.why ?? 'as the compiler multiplies'}`, () => {
    const ratio = row.compiled_flops / estimatedFlops(row.request);
    const known = row.ratio ?? 1;
    assert.ok(Math.abs(ratio - known) < 1e-4, `the compiled step multiplies ${ratio.toFixed(4)} of what the engine says, not ${known}`);
  });
}
