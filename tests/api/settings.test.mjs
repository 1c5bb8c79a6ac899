import test from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { startDaemon, estimateRequest, freshDatabase, problem, run, scratchFolder, writeFileSync, join } from './daemon.mjs';

const digest = (token) => createHash('sha256').update(token).digest('hex');
const bearer = (token) => ({ Authorization: `Bearer ${token}` });

test('beyond loopback the daemon wants tokens or an explicit word', async () => {
  for (const address of ['0.0.0.0:0', '[::]:0', '192.0.2.1:0']) {
    const refused = await run(['serve', '--listen', address]);
    assert.equal(refused.status, 2, address);
    assert.match(refused.err, /--tokens-file/);
  }
  assert.equal((await run(['serve', '--listen', '0.0.0.0:0', '--print-config', '--insecure'])).status, 0);
});

test('every command says how it is called', async () => {
  const commands = (await run(['--help'])).out.match(/^ {2}\w+/gm).map((line) => line.trim());
  assert.ok(commands.length >= 10, commands.join());
  for (const command of commands) {
    const told = await run([command, '--help']);
    assert.deepEqual([told.status, told.err], [0, ''], command);
    assert.match(told.out, new RegExp(`^usage: tpu-advisor ${command}`), command);
  }
});

test('the usage of a command offers what it takes: seq_len and the batch of a workload are of advise', async () => {
  const offered = /--seq_len 8192 --global_batch_sequences 256/;
  assert.match((await run(['advise', '--help'])).out, offered);
  for (const command of ['estimate', 'lint']) assert.doesNotMatch((await run([command, '--help'])).out, offered);
  const given = (await run(['estimate', '--help'])).out.match(/--max_target_length \d+/)[0].split(' ');
  const told = await run(['estimate', '--model', 'llama3.1-8b', '--chip', 'v6e', '--topology', '4x4', ...given]);
  assert.equal(told.status, 0, told.err);
});

test('settings come from the file, the environment and the flags, the later winning', async () => {
  const { folder, remove } = scratchFolder();
  const file = join(folder, 'settings');
  writeFileSync(file, '# comment\nworkers = 3\nqueue = 5\nlog_level = debug\n');
  const shown = async (args, env) => Object.fromEntries((await run(['serve', '--print-config', ...args], { env })).out.trim().split('\n').map((line) => line.split(' = ')));
  const config = await shown(['--config', file, '--queue', '9'], { TPU_ADVISOR_WORKERS: '4', TPU_ADVISOR_QUEUE: '7' });
  assert.deepEqual([config.workers, config.queue, config.log_level, config.deadline], ['4', '9', 'debug', '30']);
  assert.equal((await shown([], { TPU_ADVISOR_CONFIG: file })).workers, '3');
  remove();
});

test('secrets may come from a file and are never printed', async () => {
  const { folder, remove } = scratchFolder();
  writeFileSync(join(folder, 'url'), 'postgresql://u:hidden@127.0.0.1:1/x\n');
  const shown = await run(['serve', '--print-config', '--database-url-file', join(folder, 'url')]);
  assert.match(shown.out, /^database_url = \*\*\*$/m);
  assert.ok(!shown.out.includes('hidden'));
  const daemon = await startDaemon({ env: { TPU_ADVISOR_DATABASE_URL_FILE: join(folder, 'url') } });
  assert.equal((await (await daemon.fetch('/readyz')).json()).database, 'away');
  await daemon.stop();
  assert.ok(!daemon.raw().includes('hidden'), 'nor logged');
  remove();
});

test('unknown settings and values out of range are errors, all of them named', async () => {
  const wrong = await run(['serve', '--wrokers', '3', '--queue', '0', '--insecure=perhaps', 'stray'], { env: { TPU_ADVISOR_LISSEN: 'x' } });
  assert.equal(wrong.status, 2);
  for (const word of [/'wrokers'; did you mean 'workers'/, /queue is a whole number from 1/, /insecure is true or false/, /'stray'/, /'LISSEN'/]) assert.match(wrong.err, word);
  assert.equal((await run(['serve', '--listen', 'nonsense'])).status, 2);
  assert.equal((await run(['serve', '--config', '/none/such'])).status, 2);
  assert.equal((await run(['serve', '--log-level', 'loud'])).status, 2);
  assert.match((await run(['serve', '--help'])).out, /--database-url/);
  assert.equal((await run(['migrate'])).status, 2);
  assert.match((await run(['srve'])).err, /did you mean 'serve'/);
});

test('what Kubernetes tells of a Service called tpu-advisor is no setting', async () => {
  const env = { TPU_ADVISOR_SERVICE_HOST: '10.0.0.1', TPU_ADVISOR_SERVICE_PORT: '80', TPU_ADVISOR_SERVICE_PORT_HTTP: '80', TPU_ADVISOR_PORT: 'tcp://10.0.0.1:80',
    TPU_ADVISOR_PORT_80_TCP: 'tcp://10.0.0.1:80', TPU_ADVISOR_PORT_80_TCP_PROTO: 'tcp', TPU_ADVISOR_PORT_80_TCP_ADDR: '10.0.0.1',
    TPU_ADVISOR_DATABASE_SERVICE_HOST: '10.0.0.2', TPU_ADVISOR_DATABASE_PORT: 'tcp://10.0.0.2:5432', TPU_ADVISOR_DATABASE_PORT_5432_TCP_PORT: '5432' };
  const shown = await run(['serve', '--print-config'], { env });
  assert.deepEqual([shown.status, shown.err], [0, '']);
  for (const [name, value] of [['TPU_ADVISOR_PORT', '9090'], ['TPU_ADVISOR_REPORT', 'x'], ['TPU_ADVISOR_PORTS', 'tcp://x']])
    assert.equal((await run(['serve', '--print-config'], { env: { [name]: value } })).status, 2, name);
});

test('settings that cannot be read stop the start: a daemon without its secret would store nothing', async () => {
  const { folder, remove } = scratchFolder();
  const write = (name, text) => { writeFileSync(join(folder, name), text); return join(folder, name); };
  for (const [args, env, said] of [
    [['--database-url-file', folder], {}, /cannot read .*: Is a directory/],
    [[], { TPU_ADVISOR_DATABASE_URL_FILE: write('empty', '') }, /first line of .*empty is empty/],
    [[], { TPU_ADVISOR_DATABASE_URL_FILE: write('blank', '\npostgresql://x/y\n') }, /first line of .*blank is empty/],
    [[], { TPU_ADVISOR_DATABASE_URL_FILE: write('long', `postgresql://x/${'y'.repeat(5000)}`) }, /first line of .*long is longer than/],
    [['--config', folder], {}, /cannot read the settings in .*: Is a directory/],
    [['--config', write('comment', `# ${'x'.repeat(8190)}insecure = true\n`)], {}, /comment, line 1: the line is longer than \d+ bytes/],
    [['--config'], {}, /--config needs a file/],
    [['--config='], {}, /--config needs a file/],
  ]) {
    const refused = await run(['serve', '--print-config', ...args], { env });
    assert.equal(refused.status, 2, `${args} ${JSON.stringify(env)}: ${refused.out}`);
    assert.match(refused.err, said);
  }
  remove();
});

test('a flag takes no other flag for its value, and a switch takes the word behind it', async () => {
  for (const flags of [['--log-file', '--insecure'], ['--hosts', '--listen', '127.0.0.1:0'], ['--config', '--insecure']]) {
    const { status, err } = await run(['serve', '--print-config', ...flags]);
    assert.equal(status, 2, String(flags));
    assert.match(err, new RegExp(`${flags[0]} needs a (value|file)`));
  }
  const shown = await run(['serve', '--print-config', '--auto-migrate', 'false', '--insecure', '--log-file=--odd']);
  for (const line of [/^auto_migrate = false$/m, /^insecure = true$/m, /^log_file = --odd$/m]) assert.match(shown.out, line);
  assert.match((await run(['serve', '--insecure', 'perhaps'])).err, /'perhaps' is not a setting/);
});

test('what --print-config takes, the start takes', async () => {
  const { status, err } = await run(['serve', '--print-config', '--log-level', 'loud']);
  assert.equal(status, 2);
  assert.match(err, /log_level is debug, info, warning or error, not 'loud'/);
});

test('a secret that is given twice is refused, whichever comes first; an empty one beside its file is not meant', async () => {
  const { folder, remove } = scratchFolder();
  writeFileSync(join(folder, 'url'), 'postgresql://u@127.0.0.1:1/x\n');
  const file = ['TPU_ADVISOR_DATABASE_URL_FILE', join(folder, 'url')];
  for (const reversed of [false, true]) {
    const both = (url) => Object.fromEntries([['TPU_ADVISOR_DATABASE_URL', url], file].sort(([a], [b]) => (a < b) === reversed ? 1 : -1));
    const refused = await run(['serve', '--print-config'], { env: both('postgresql://u@127.0.0.1:2/y') });
    assert.equal(refused.status, 2, refused.out);
    assert.match(refused.err, /TPU_ADVISOR_DATABASE_URL and TPU_ADVISOR_DATABASE_URL_FILE are both set/);
    const taken = await run(['serve', '--print-config'], { env: both('') });
    assert.match(taken.out, /^database_url = \*\*\*$/m, taken.err);
  }
  remove();
});

test('a database URL that can be none stops the start, and nothing of its password is said', async () => {
  for (const [url, said] of [
    ['postgres:/user:secret@host/db', /it cannot be read/],
    ['jdbc:postgresql://user:secret@host/db', /it cannot be read/],
    ['postgresql://user:top@secret@host/db', /an @ too many before its host; write .*%40 for @/],
    ['postgresql://user:%secret@host/db', /it cannot be read/],
    ['host=x password=top secret', /it cannot be read/],
    ['postgresql://user:secret@host/db?sslmod=require', /invalid URI query parameter: "sslmod"/],
    ['postgresql://user:secret@host/db\n', /it has a line break/],
    ['host=x pasword=secret', /invalid connection option "pasword"/],
  ]) {
    for (const command of ['serve', 'migrate', 'verifier']) {
      const { status, out, err } = await run([command], { env: { TPU_ADVISOR_DATABASE_URL: url } });
      assert.equal(status, 2, `${url}: ${err}`);
      assert.match(err, said);
      assert.ok(!`${out}${err}`.includes('secret'), err);
    }
  }
  for (const url of ['tpu_advisor', 'postgresql:///x?host=@abstract', "host=/tmp dbname='x' password='a b'", 'postgresql://u:a%40b@[::1]:5432,other/x'])
    assert.equal((await run(['serve', '--print-config', '--database-url', url])).status, 0, url);
});

test('an address in use is said, not shared', async () => {
  const first = await startDaemon();
  const second = await run(['serve', '--listen', `127.0.0.1:${first.port}`]);
  assert.equal(second.status, 1);
  assert.match(second.err, /Address already in use/);
  assert.ok(!/Sanitizer/.test(second.err), second.err);
  await first.stop();
});

test('tokens open what their scopes say, and nothing else', async () => {
  const { folder, remove } = scratchFolder();
  const file = join(folder, 'tokens');
  writeFileSync(file, `# who scopes digest\nreader read ${digest('r-secret')}\nci write ${digest('w-secret')}\nboss admin ${digest('a-secret')}\n`);
  const daemon = await startDaemon({ database: freshDatabase('api_tokens'), args: ['--tokens-file', file] });
  const as = (token, path, options = {}) => daemon.fetch(path, { ...options, headers: { ...(token ? bearer(token) : {}), ...options.headers } });
  const estimate = (token, extra, headers = {}) => daemon.post('/v1/estimate', estimateRequest(extra), { ...(token ? bearer(token) : {}), ...headers });

  for (const open of ['/livez', '/readyz', '/metrics', '/version', '/v1/openapi.json', '/']) assert.equal((await as(null, open)).status, 200, open);
  const challenge = await as(null, '/v1/runs');
  assert.match(challenge.headers.get('www-authenticate'), /^Bearer/);
  await problem(assert, challenge, 401, 'unauthorized');
  await problem(assert, await as('wrong', '/v1/runs'), 401, 'unauthorized');
  await problem(assert, await daemon.fetch('/v1/runs', { headers: { Authorization: 'Basic cjpy' } }), 401, 'unauthorized');
  await problem(assert, await estimate(null, {}), 401, 'unauthorized');
  assert.equal((await as('r-secret', '/v1/runs')).status, 200);
  assert.equal((await estimate('r-secret', {})).status, 200);
  await problem(assert, await estimate('r-secret', { store: true }), 403, 'forbidden');
  const stored = await (await estimate('w-secret', { store: true }, { 'Idempotency-Key': 'k' })).json();
  assert.equal(stored.stored, true);
  const other = await (await estimate('a-secret', { store: true }, { 'Idempotency-Key': 'k' })).json();
  assert.notEqual(other.run_id, stored.run_id, 'keys of different tokens do not meet');
  await problem(assert, await as('w-secret', `/v1/runs/${stored.run_id}`, { method: 'DELETE' }), 403, 'forbidden');
  assert.equal((await as('a-secret', `/v1/runs/${stored.run_id}`, { method: 'DELETE' })).status, 204);
  await daemon.stop();
  for (const secret of ['r-secret', 'w-secret', 'a-secret']) assert.ok(!daemon.raw().includes(secret), 'tokens are not logged');
  assert.ok(daemon.log.some((line) => line.token === 'ci'));
  remove();
});

test('a token goes on a line of its own, also where the last one has no end', async () => {
  const { folder, remove } = scratchFolder();
  const file = join(folder, 'tokens');
  writeFileSync(file, `first read ${digest('first')}`);
  const made = await run(['token', 'create', 'second', '--scope', 'write', '--tokens-file', file]);
  assert.equal(made.status, 0, made.err);
  const daemon = await startDaemon({ args: ['--tokens-file', file] });
  for (const token of ['first', made.out.trim()]) assert.notEqual((await daemon.fetch('/v1/catalog/chips', { headers: bearer(token) })).status, 401);
  await daemon.stop();
  remove();
});

test('a broken token file stops the start, with its lines', async () => {
  const { folder, remove } = scratchFolder();
  const file = join(folder, 'tokens');
  writeFileSync(file, `a fly ${digest('x')}\nb read abc\nc read\n`);
  const refused = await run(['serve', '--tokens-file', file]);
  assert.equal(refused.status, 1);
  for (const line of [1, 2, 3]) assert.match(refused.err, new RegExp(`line ${line}:`));
  for (const [text, said] of [
    [`a read ${digest('x')}\nb write ${digest('x')}\n`, /line 2: the token is in a line before/],
    [`# ${'x'.repeat(509)}b admin ${digest('y')}\na read ${digest('x')}\n`, /line 1: the line is longer than 511 bytes/],
    [`# ${'x'.repeat(5090)}\nc read\n`, /line 2: expected/],
  ]) {
    writeFileSync(file, text);
    const { status, err } = await run(['serve', '--tokens-file', file]);
    assert.equal(status, 1, err);
    assert.match(err, said);
  }
  assert.match((await run(['serve', '--tokens-file', folder])).err, /cannot read the tokens in .*: Is a directory/);
  remove();
});
