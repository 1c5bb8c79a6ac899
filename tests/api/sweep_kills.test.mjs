// Sweeps whose daemons die. What a client believes after 202: each of its requests ends exactly once, whoever is killed.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { freshDatabase, sleep, sql, startDaemon, until } from './daemon.mjs';
import { base, batches, grid, sweepsOf } from './sweeps.mjs';

const name = 'api_sweep_kills';
let daemon;
let url;
before(async () => {
  url = freshDatabase(name);
  daemon = await startDaemon({ database: url });
});
after(() => daemon.stop());

const { get, create, ended } = sweepsOf(() => daemon);

test('an item that ends every daemon fails after five attempts, and takes no other along', async () => {
  const { path, sweep } = await create(grid(4));
  await ended(path);
  // As five daemons that died with item 2 in hand have left it.
  sql(name, `BEGIN; UPDATE sweep_items SET state = 'running', attempts = 5, lease_until = now() - interval '1 s', ended_at = NULL, event = NULL, response = NULL
    WHERE sweep_id = '${sweep.sweep_id}' AND item = 2; UPDATE sweeps SET state = 'running', done_count = 3, ended_at = NULL WHERE id = '${sweep.sweep_id}'; COMMIT`);
  const done = await ended(path);
  assert.deepEqual([done.state, done.done_count, done.failed_count], ['done', 3, 1]);
  assert.match(done.items[2].problem.detail, /5 attempts/);
});

test('an item that was given back has ended no daemon, however often', async () => {
  const { path, sweep } = await create(grid(3));
  await ended(path);
  // As five daemons that were told to leave, one after another, have left item 1, and a sixth that died.
  const at = `sweep_id = '${sweep.sweep_id}' AND item = 1`;
  sql(name, `UPDATE sweep_items SET state = 'running', lease_until = now() + interval '1 h', ended_at = NULL, event = NULL, response = NULL WHERE ${at}`);
  for (let i = 2; i <= 6; i++) sql(name, `UPDATE sweep_items SET state = 'queued', lease_until = NULL WHERE ${at}; UPDATE sweep_items SET state = 'running', attempts = ${i}, lease_until = now() + interval '1 h' WHERE ${at}`);
  sql(name, `BEGIN; UPDATE sweep_items SET lease_until = now() - interval '1 s' WHERE ${at};
    UPDATE sweeps SET state = 'running', done_count = 2, ended_at = NULL WHERE id = '${sweep.sweep_id}'; COMMIT`);
  const done = await ended(path);
  assert.deepEqual([done.state, done.done_count, done.failed_count], ['done', 3, 0], JSON.stringify(done.items[1].problem));
});

// `make sweep-kills` makes this the long run.
const wanted = Number(process.env.SWEEP_KILLS ?? 12);
test(`daemons that are killed lose no item and end none twice: ${wanted} kills`, { timeout: 240000 + wanted * 2500 }, async () => {
  const count = 4000;
  const start = () => startDaemon({ database: url });
  const workers = [await start(), await start()];
  let kills = 0;
  let sweeps = 0;
  do {
    const project = `kills-${++sweeps}`;
    const { path, sweep } = await create({ kind: 'estimate', project, grid: { base: { ...base, store: true }, axes: { '/config/gradient_accumulation_steps': batches(count / 4), '/config/remat_policy': ['full', 'minimal', 'save_qkv_proj', 'minimal_flash'] } } });
    while (kills < wanted && (await get(path)).state === 'running') {
      await sleep(Math.random() * 120);
      const victim = workers.shift();
      victim.child.kill('SIGKILL');
      await victim.exit;
      kills++;
      workers.push(await start());
      // As if time had passed, for the dead and for some of the living; rows that a daemon holds are left to it.
      sql(name, `UPDATE sweep_items SET lease_until = now() - interval '1 s' WHERE (sweep_id, item) IN (SELECT sweep_id, item FROM sweep_items
        WHERE state = 'running' AND sweep_id = '${sweep.sweep_id}' AND random() < 0.5 FOR UPDATE SKIP LOCKED)`);
    }
    let done = await get(path);
    while (done.state === 'running') { // as long as it takes, while something is done
      const before = done.done_count;
      await until(`more than ${before} are done`, async () => { done = await get(path); return done.state !== 'running' || done.done_count > before; }, 50000);
      await sleep(100);
    }
    assert.deepEqual([done.done_count, done.failed_count], [count, 0], JSON.stringify(done.items[0]));
    assert.equal(sql(name, `SELECT count(*), count(DISTINCT event) FROM sweep_items WHERE state = 'done' AND sweep_id = '${sweep.sweep_id}'`), `${count}|${count}`);
    assert.equal(sql(name, `SELECT count(*) FROM runs WHERE project = '${project}'`), String(count), 'every run is stored once');
  } while (kills < wanted && wanted > 12);
  for (const worker of workers) worker.child.kill('SIGKILL');
  assert.ok(kills > 3, `${kills} kills`);
  console.log(`# ${kills} kills, ${sweeps * count} items in ${sweeps} sweeps, each ended and stored once`);
});
