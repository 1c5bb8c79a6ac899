// More work than the machine can do. A reader believes: what is taken is answered soon, what is not is said at once.
import test from 'node:test';
import assert from 'node:assert/strict';
import { adviseRequest, startDaemon } from '../api/daemon.mjs';

test('nobody waits for a worker longer than told, and the refusals come at once', async () => {
  const daemon = await startDaemon({ args: ['--cache-mib', '0', '--workers', '1', '--queue', '10000', '--queue-wait', '1'] });
  const costly = { ...adviseRequest(), search: { sensitivities: true, top_k: 10 } };
  const crowd = (ask) => Promise.all(Array.from({ length: 400 }, async () => {
    const since = Date.now();
    const answer = await ask();
    await answer.text();
    return { status: answer.status, ms: Date.now() - since, retry: answer.headers.get('retry-after') };
  }));
  const longest = (answers) => Math.max(...answers.map((one) => one.ms));
  const client = longest(await crowd(() => daemon.post('/v1/lint', { config: {} }))); // what 400 at once cost the client itself
  const begin = Date.now();
  const all = await crowd(() => daemon.post('/v1/advise', costly));
  const good = all.filter((one) => one.status === 200), busy = all.filter((one) => one.status === 503);
  assert.equal(good.length + busy.length, 400);
  assert.ok(good.length > 0 && busy.length > 0, `${good.length} answered, ${busy.length} refused`);
  assert.ok(busy.every((one) => one.retry === '2'));
  const work = (Date.now() - begin) / good.length;
  assert.ok(longest(all) < 1000 + 40 * work + 3 * client + 1000, `the longest took ${longest(all)} ms, a search ${work} ms, 400 at once ${client} ms`);
  await daemon.stop();
});
