// tpu-advisor check: what a pipeline relies on is the exit status; what people read is the report.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { execFileSync } from 'node:child_process';
import { createServer as createTlsServer } from 'node:https';
import { mkdirSync, readFileSync } from 'node:fs';
import { estimateRequest, freshDatabase, join, run, scratchFolder, sleep, startDaemon, writeFileSync } from './daemon.mjs';

let daemon;
const { folder, remove } = scratchFolder();
const plan = (batch, extra = {}) => ({ model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4' },
  config: { per_device_batch_size: batch, max_target_length: 8192, ici_fsdp_parallelism: 16, remat_policy: 'full' }, ...extra });
const write = (name, text) => { writeFileSync(join(folder, name), typeof text === 'string' ? text : JSON.stringify(text)); return join(folder, name); };
const check = (files, { args = [], env = {} } = {}) => run(['check', '--baseline', 'alpha/feature/x', ...args, ...files], { env: { TPU_ADVISOR_URL: daemon.origin, ...env } });

before(async () => {
  mkdirSync(join(folder, 'train'));
  daemon = await startDaemon({ database: freshDatabase('check_cli') });
  const { run_id: id } = await (await daemon.post('/v1/estimate', plan(2, { store: true }))).json();
  const put = await daemon.fetch('/v1/baselines/alpha/feature/x', { method: 'PUT', body: JSON.stringify({ run_id: id }), headers: { 'Content-Type': 'application/json' } });
  assert.equal(put.status, 201);
});
after(async () => { await daemon.stop(); remove(); });

test('the same plan passes, in every form that a candidate may have', async () => {
  const config = Object.entries(plan(2).config);
  const files = [
    write('request.json', plan(2)),
    write('request.yaml', `model: llama3.1-8b\ncluster: {chip: v6e, topology: 4x4}\nconfig:\n${config.map(([key, value]) => `  ${key}: ${value}\n`).join('')}`),
    write('maxtext.yaml', `model_name: llama3.1-8b\ncompile_topology: v6e-16\n${config.map(([key, value]) => `${key}: ${value}\n`).join('')}`),
    write('script.sh', `#!/bin/bash\npython3 -m MaxText.train MaxText/configs/base.yml run_name=x model_name=llama3.1-8b ${config.map((pair) => pair.join('=')).join(' ')}\n`),
  ];
  for (const file of files) {
    const result = await check([file], { args: file.endsWith('.sh') ? ['--accelerator', 'v6e-16'] : [] });
    assert.equal(result.status, 0, `${file}: ${result.err}${result.out}`);
    assert.match(result.out, /^# TPU Advisor: 1 of 1 candidates pass\n/);
  }
});

test('several candidates, some by a pattern, make one report in three forms', async () => {
  write('train/a.json', plan(2));
  write('train/b <&> "|.json', plan(1));
  const [markdown, junit, json] = ['report.md', 'report.xml', 'report.json'].map((name) => join(folder, name));
  const result = await check([join(folder, 'train/*.json'), write('big.json', plan(64))], { args: ['--markdown', markdown, '--junit', junit, '--json', json] });
  assert.equal(result.status, 1, result.err);
  assert.equal(result.out, '');
  assert.match(readFileSync(markdown, 'utf8'), /1 of 3 candidates pass/);
  assert.match(readFileSync(markdown, 'utf8'), /\| fits \| yes \| no \|/);
  const document = JSON.parse(readFileSync(json, 'utf8'));
  assert.deepEqual([document.verdict, ...document.checks.map((one) => one.status)], ['fail', 'pass', 'fail', 'fail']);
  assert.ok(document.checks.every((one) => one.check.engine && one.check.compare && !('reports' in one.check)));
  execFileSync('python3', ['-c', `
import sys, xml.etree.ElementTree as tree
suites = tree.parse(sys.argv[1]).getroot()
assert suites.tag == 'testsuites' and len(suites) == 3, suites
assert suites[1].get('name').endswith('b <&> "|.json'), suites[1].get('name')
assert [len(suite.findall('.//failure')) > 0 for suite in suites] == [False, True, True]
`, junit]);
});

test('a report is whole whatever the files are called', async () => {
  const odd = join(folder, 'odd');
  mkdirSync(odd);
  const name = Buffer.from('a\u0001\u001b]]>\u007f\u202e\ufffe|`<b>_.json');
  writeFileSync(Buffer.concat([Buffer.from(`${odd}/`), name.subarray(0, 1), Buffer.from([0xff, 0xed, 0xa0, 0x80]), name.subarray(1)]), '{');
  const [markdown, junit, json] = ['odd.md', 'odd.xml', 'odd.json'].map((file) => join(folder, file));
  assert.equal((await check([join(odd, '*.json')], { args: ['--markdown', markdown, '--junit', junit, '--json', json] })).status, 2);
  const shown = 'a\ufffd\ufffd\ufffd\ufffd  ]]>   |`<b>_.json'; // neither control characters nor bytes that are no text
  execFileSync('python3', ['-c', `
import sys, xml.etree.ElementTree as tree
name = tree.parse(sys.argv[1]).getroot()[0].get('name')
assert name.endswith(sys.argv[2]), ascii(name)
`, junit, shown]);
  const heading = readFileSync(markdown, 'utf8').split('\n').find((line) => line.startsWith('### '));
  assert.ok(heading.endsWith(shown.replace(/[\]|`<>_[]/g, '\\$&')), heading);
  assert.equal(JSON.parse(readFileSync(json, 'utf8')).checks.length, 1);
});

test('a candidate is stored under the commit of the pipeline and its tags, unless it names its own', async () => {
  const CI = { GITHUB_SHA: '', CI_COMMIT_SHA: 'c0ffee12' };
  const args = ['--store', '--tag', 'nightly', '--tag', 'ci'];
  const files = [write('named.json', plan(2, { git_ref: 'own', tags: ['ci', 'mine'] })), write('plain.json', plan(2))];
  assert.equal((await check(files, { args, env: CI })).status, 0);
  assert.equal((await check(files, { args: [...args, '--git-ref', 'v1.2'], env: CI })).status, 0);
  assert.equal((await check(files, { args: ['--tag', 'unseen'], env: CI })).status, 0);
  const list = async (query) => (await (await daemon.fetch(`/v1/runs?project=alpha&${query}`)).json()).runs.map((one) => [one.label, one.git_ref, one.tags]);
  assert.deepEqual(await list('git_ref=c0ffee12'), [['feature/x', 'c0ffee12', ['nightly', 'ci']]]);
  assert.deepEqual(await list('git_ref=v1.2'), [['feature/x', 'v1.2', ['nightly', 'ci']]]);
  assert.deepEqual(await list('git_ref=own'), Array(2).fill(['feature/x', 'own', ['ci', 'mine', 'nightly']]));
  assert.deepEqual(await list('tags=unseen'), [], 'what is not stored has no tags');
  assert.equal((await check(files, { args: ['--store', '--tag', 'a,b'] })).status, 2);
});

test('a stored candidate becomes a run of the baseline\'s project and label; of a baseline by its run its own hold', async () => {
  const file = write('elsewhere.json', plan(2, { project: 'other', label: 'zz' }));
  const list = async (query) => (await (await daemon.fetch(`/v1/runs?${query}`)).json()).runs.map((one) => [one.project, one.label]);
  assert.equal((await check([file], { args: ['--store', '--git-ref', 'placed'] })).status, 0);
  assert.deepEqual(await list('git_ref=placed'), [['alpha', 'feature/x']]);
  const { run_id: id } = await (await daemon.fetch('/v1/baselines/alpha/feature/x')).json();
  const byRun = await run(['check', '--baseline-run', id, '--store', '--git-ref', 'own-place', file], { env: { TPU_ADVISOR_URL: daemon.origin } });
  assert.equal(byRun.status, 0, byRun.err);
  assert.deepEqual(await list('git_ref=own-place'), [['other', 'zz']]);
});

test('candidates of one call are held to the same run, also where one stands in for the baseline', async () => {
  const { run_id: first } = await (await daemon.post('/v1/estimate', plan(1, { store: true, project: 'alpha', label: 'unset' }))).json();
  const passed = await (await daemon.post('/v1/checks', { baseline: { run_id: first }, candidate: plan(1, { store: true, project: 'alpha', label: 'unset' }),
    limits: { time_per_token_increase_frac: 0.1 } })).json();
  const json = join(folder, 'same.json');
  const files = [write('faster.json', plan(2)), write('as_before.json', plan(1)), write('bad.json', '{'), write('again.json', plan(1))];
  const told = await run(['check', '--baseline', 'alpha/unset', '--store', '--json', json, '--markdown', '-', ...files], { env: { TPU_ADVISOR_URL: daemon.origin } });
  assert.equal(told.status, 2, told.err);
  assert.match(told.out, new RegExp(`^# TPU Advisor: 3 of 4 candidates pass\n\nNo run is set as the baseline: run ${passed.candidate.run_id} stands in for it in all of them\\.\n`));
  const { checks } = JSON.parse(readFileSync(json, 'utf8'));
  assert.deepEqual(checks.map((one) => one.status), ['pass', 'pass', 'bad_input', 'pass'], 'the faster one is no measure of the others');
  assert.deepEqual(checks.map((one) => one.check?.baseline.run_id), [passed.candidate.run_id, passed.candidate.run_id, undefined, passed.candidate.run_id]);
  assert.equal((await (await daemon.fetch('/v1/runs?project=alpha&label=unset')).json()).runs.length, 5, 'stored under the baseline all the same');
});

test('a service that is busy for a while stores a candidate once', async () => {
  let asked_ = 0;
  const keys = new Set();
  const server = createServer(async (asked, answer) => { // the daemon stores, but its first answer does not come through
    let body = '';
    for await (const part of asked) body += part;
    keys.add(asked.headers['idempotency-key']);
    const text = await (await daemon.post('/v1/checks', body, { 'Idempotency-Key': asked.headers['idempotency-key'] ?? '' })).text();
    if (asked_++ === 0) answer.writeHead(502, { 'Retry-After': '1' });
    else answer.writeHead(200, { 'Content-Type': 'application/json' });
    answer.end(asked_ === 1 ? '' : text);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => { server.on('listening', resolve); });
  const told = await check([write('retried.json', plan(2))], { args: ['--store', '--git-ref', 'retried', '--url', `http://127.0.0.1:${server.address().port}`] });
  server.close();
  assert.equal(told.status, 0, told.err);
  assert.deepEqual([asked_, keys.size], [2, 1]);
  assert.equal((await (await daemon.fetch('/v1/runs?git_ref=retried')).json()).runs.length, 1);
});

test('a daemon that starts anew is waited for: a red candidate stays red, and is stored once', async () => {
  const keys = [];
  const server = createServer(async (asked, answer) => {
    let body = '';
    for await (const part of asked) body += part;
    keys.push(asked.headers['idempotency-key']);
    const text = await (await daemon.post('/v1/checks', body, { 'Idempotency-Key': keys.at(-1) })).text();
    if (keys.length === 1) asked.socket.resetAndDestroy(); // it has stored the candidate, and is gone before it answers
    else answer.end(text);
  });
  const listen = (port) => new Promise((resolve) => { server.listen(port, '127.0.0.1', resolve); });
  await listen(0);
  const { port } = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  const told = check([write('deployed.json', plan(1))], { args: ['--store', '--git-ref', 'deployed', '--url', `http://127.0.0.1:${port}`] });
  await sleep(1200);
  await listen(port);
  const { status, err } = await told;
  server.close();
  assert.equal(status, 1, err);
  assert.match(err, /nobody answers: Connection refused; it is asked again for 60 s at most/);
  assert.deepEqual([keys.length, new Set(keys).size], [2, 1]);
  assert.equal((await (await daemon.fetch('/v1/runs?git_ref=deployed')).json()).runs.length, 1);
});

test('a limit that is no number, or is given twice, is refused: a gate without its limit would pass', async () => {
  const slower = write('slower.json', plan(1));
  for (const value of ['nan', '-nan', 'inf', '1e999', '', '0.1x']) {
    const told = await check([slower], { args: ['--limit', `time_per_token_increase_frac=${value}`] });
    assert.equal(told.status, 2, `${value}: ${told.status} ${told.out}`);
    assert.match(told.err, new RegExp(`--limit time_per_token_increase_frac=${value} `));
  }
  const twice = await check([slower], { args: ['--limit', 'time_per_token_increase_frac=0.001', '--limit', 'time_per_token_increase_frac=5'] });
  assert.equal(twice.status, 2, twice.out);
});

test('a limit may be given, and unlike things may be allowed', async () => {
  const slower = write('slower.json', plan(1));
  assert.equal((await check([slower], { args: ['--limit', 'time_per_token_increase_frac=0.001'] })).status, 1);
  assert.equal((await check([slower], { args: ['--limit', 'time_per_token_increase_frac=5'] })).status, 0);
  const unlike = write('unlike.json', { ...plan(2), model: 'gemma2-2b' });
  assert.equal((await check([unlike])).status, 2);
  assert.ok([0, 1].includes((await check([unlike], { args: ['--allow-unlike', 'model'] })).status));
  assert.equal((await check([write('huge.json', plan(64))], { args: ['--may-not-fit', '--limit', 'hbm_increase_frac=100', '--limit', 'time_per_token_increase_frac=100'] })).status, 0);
});

test('bad input is 2, and says where: in files, arguments, names and tokens', async () => {
  const good = write('good.json', plan(2));
  const cases = [
    [[write('illegal.json', plan(2.3))], {}, /per_device_batch_size/],
    [[write('empty.json', '')], {}, /empty/],
    [[write('no_model.yaml', 'per_device_batch_size: 2\ncompile_topology: v6e-16\n')], {}, /model_name/],
    [[write('no_cluster.yaml', 'model_name: llama3.1-8b\nper_device_batch_size: 2\n')], {}, /--accelerator/],
    [[join(folder, 'missing.json')], {}, /missing/],
    [[join(folder, 'nothing-*.json')], {}, /no file matches/],
    [[], {}, /no candidate/],
    [[good], { args: ['--limit', 'speed=1'] }, /speed/],
    [[good], { args: ['--limit', 'much'] }, /much/],
    [[good], { args: ['--fly', '1'] }, /--fly/],
    [[good], { args: ['--timeout', '0'] }, /--timeout 0/],
    [[good], { args: ['--baseline', 'alpha/none'] }, /no baseline/],
    [[good], { args: ['--markdown', '/nonexistent/report'] }, /cannot write/],
    [[good], { args: ['--url', 'ftp://x'] }, /no URL/],
    [[good], { args: ['--baseline-run', '01a22497-909b-76ea-ae2e-58d289c33367'] }, /not both/],
    [[good], { args: ['--junit', '-', '--json', '-'] }, /only one report/],
    [[good], { args: ['--limit', 'tokens_per_s_per_chip_decrease_frac=1'] }, /allows 100 %, which nothing can exceed/],
    [[good], { env: { TPU_ADVISOR_TOKEN: 'tpa_hidden\n' } }, /the token has a character/],
    [[good], { env: { TPU_ADVISOR_TOKEN: 'tpa_hidden\r\nX-Other: 1' } }, /the token has a character/],
  ];
  for (const [files, options, about] of cases) {
    const result = await check(files, options);
    assert.equal(result.status, 2, `${files} ${JSON.stringify(options)}: ${result.status} ${result.err}`);
    assert.match(result.err, about);
  }
  assert.match((await run(['check', good], { env: {} })).err, /TPU_ADVISOR_URL/);
});

test('one bad file does not hide what the others say', async () => {
  const json = join(folder, 'mixed.json');
  const result = await check([write('bad.json', '{'), write('fine.json', plan(2))], { args: ['--json', json] });
  assert.equal(result.status, 2);
  assert.deepEqual(JSON.parse(readFileSync(json, 'utf8')).checks.map((one) => one.status), ['bad_input', 'pass']);
});

test('a service that is away, cut off, busy or no HTTP is 3', async () => {
  const good = write('good.json', plan(2));
  const away = async (handle) => {
    const server = createServer(handle).listen(0, '127.0.0.1');
    await new Promise((resolve) => { server.on('listening', resolve); });
    const result = await check([good], { args: ['--timeout', '5', '--url', `http://127.0.0.1:${server.address().port}/behind`] });
    server.close();
    return result;
  };
  const refused = await check([good], { args: ['--timeout', '1', '--url', 'http://127.0.0.1:1'] });
  assert.equal(refused.status, 3);
  assert.match(refused.err, /127\.0\.0\.1 port 1: nobody answers: Connection refused/);
  const unknown = await check([good], { args: ['--url', 'http://name.invalid:80'] });
  assert.equal(unknown.status, 3);
  assert.match(unknown.err, /name\.invalid port 80: nobody answers: .*(name|resol)/i);
  assert.equal((await away((asked, answer) => { answer.writeHead(200, { 'Content-Length': 1000 }); answer.write('{'); answer.destroy(); })).status, 3);
  assert.equal((await away((asked) => asked.socket.end('hello\r\n\r\n'))).status, 3);
  let tries = 0;
  const busy = await away((asked, answer) => { tries++; answer.writeHead(503, { 'Retry-After': '1' }); answer.end(); });
  assert.equal(busy.status, 3);
  assert.ok(tries >= 2 && tries <= 4, `${tries} tries in 5 s`);
  tries = 0;
  let path;
  const later = await away(async (asked, answer) => { // busy at first, then the daemon's own answer in chunks
    path = asked.url;
    const body = await new Promise((resolve) => { let text = ''; asked.on('data', (part) => { text += part; }); asked.on('end', () => resolve(text)); });
    if (tries++ === 0) { answer.writeHead(429, { 'Retry-After': '1' }); answer.end(); return; }
    const text = await (await daemon.post('/v1/checks', body)).text();
    answer.writeHead(200, { 'Transfer-Encoding': 'chunked' });
    for (let at = 0; at < text.length; at += 1000) answer.write(text.slice(at, at + 1000));
    answer.end();
  });
  assert.equal(later.status, 0, later.err);
  assert.equal(path, '/behind/v1/checks');
});

test('a daemon without a database is not asked again: none comes soon', async () => {
  const without = await startDaemon();
  const asked = await check([write('good.json', plan(2))], { args: ['--url', without.origin] });
  assert.equal(asked.status, 3);
  assert.match(asked.err, /HTTP status 503: .*no database is configured/);
  assert.doesNotMatch(asked.err, /asked again/);
  await without.stop();
});

test('what is no verdict is 3, and the report says what was answered', async () => {
  const good = write('good.json', plan(2));
  const json = join(folder, 'stranger.json');
  const page = '<!doctype html><title>Sign in</title>';
  const html = { 'Content-Type': 'text/html; charset=utf-8' };
  for (const [status, headers, body, said] of [
    [302, { ...html, Location: 'https://login.example/start?next=/v1/checks' }, page, /HTTP status 302, which leads to https:\/\/login\.example\/start\?next=\/v1\/checks/],
    [307, { Location: `/${'x'.repeat(5000)}` }, '', /HTTP status 307,/],
    [304, {}, '', /HTTP status 304,/],
    [401, html, page, /HTTP status 401 with text\/html,/],
    [404, html, page, /HTTP status 404 with text\/html,/],
    [200, html, page, /HTTP status 200 with text\/html,/],
    [200, {}, '', /HTTP status 200, and no verdict/],
    [204, {}, '', /HTTP status 204/],
    [200, { 'Content-Type': 'application/json' }, '{"verdict":"pass"}', /HTTP status 200 with application\/json/],
    [200, { 'Content-Type': 'application/json' }, '{"verdict":"maybe","reports":{"markdown":"","junit":""}}', /HTTP status 200 with application\/json/],
  ]) {
    const server = createServer((asked, answer) => { asked.resume(); asked.on('end', () => { answer.writeHead(status, headers); answer.end(body); }); }).listen(0, '127.0.0.1');
    await new Promise((resolve) => { server.on('listening', resolve); });
    const result = await check([good, good], { args: ['--json', json, '--url', `http://127.0.0.1:${server.address().port}`] });
    server.close();
    assert.equal(result.status, 3, `${status} ${body}: ${result.err}`);
    assert.match(result.err, said);
    assert.match(result.err, /--url/);
    assert.match(result.err, /other 1 candidates? (are|is) not asked/);
    const report = JSON.parse(readFileSync(json, 'utf8'));
    assert.deepEqual([report.verdict, report.checks[0].status, report.checks[0].check], ['error', 'away', null]);
    assert.match(report.checks[0].message, said);
    assert.deepEqual([report.checks.length, report.checks[1].status, report.checks[1].check], [2, 'away', null], 'nor is the other left out');
    assert.match(report.checks[1].message, /not asked for/);
  }
});

test('every report has every candidate, also when the service is away or another report cannot be written', async () => {
  const files = ['one.json', 'two.json', 'three.json'].map((name) => write(name, plan(2)));
  const [markdown, junit, json] = ['all.md', 'all.xml', 'all.json'].map((name) => join(folder, name));
  const away = await check(files, { args: ['--timeout', '1', '--url', 'http://127.0.0.1:1', '--markdown', markdown, '--junit', junit, '--json', json] });
  assert.equal(away.status, 3);
  assert.match(readFileSync(markdown, 'utf8'), /^# TPU Advisor: 0 of 3 candidates pass\n/);
  const suites = readFileSync(junit, 'utf8').match(/<testsuite name="[^"]*" tests="1" failures="0" errors="1">/g);
  assert.equal(suites.length, 3);
  assert.deepEqual(JSON.parse(readFileSync(json, 'utf8')).checks.map((one) => [one.file, one.status]), files.map((file) => [file, 'away']));
  const unwritten = await check(files, { args: ['--markdown', '/nonexistent/report', '--junit', join(folder, 'other.xml'), '--json', join(folder, 'other.json')] });
  assert.equal(unwritten.status, 2);
  assert.match(readFileSync(join(folder, 'other.xml'), 'utf8'), /three\.json/);
  assert.equal(JSON.parse(readFileSync(join(folder, 'other.json'), 'utf8')).verdict, 'pass');
});

test('a limit beyond 100 % is said to be one: 3 is not 3 %', async () => {
  const good = write('good.json', plan(2));
  const wide = await check([good], { args: ['--limit', 'time_per_token_increase_frac=3'] });
  assert.equal(wide.status, 0);
  assert.match(wide.err, /time_per_token_increase_frac=3 allows 300 %; 3 % is 0\.03/);
  assert.equal((await check([good], { args: ['--limit', 'time_per_token_increase_frac=0.03'] })).err, '');
});

test('a file whose name looks like a pattern is that file', async () => {
  const result = await check([write('[x].json', plan(2))]);
  assert.equal(result.status, 0, result.err);
});

test('HTTPS is spoken, with a certificate that is trusted and for that name only', async () => {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost'], { stdio: 'ignore' });
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(certificate) }, async (asked, answer) => {
    let body = '';
    for await (const part of asked) body += part;
    answer.end(await (await daemon.post('/v1/checks', body)).text());
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => { server.on('listening', resolve); });
  const ask = (host, env) => check([write('good.json', plan(2))], { args: ['--url', `https://${host}:${server.address().port}`], env });
  const trusted = await ask('localhost', { SSL_CERT_FILE: certificate });
  assert.equal(trusted.status, 0, trusted.err);
  const stranger = await ask('localhost', {});
  assert.equal(stranger.status, 3);
  assert.match(stranger.err, /certificate verify failed/);
  assert.equal((await ask('127.0.0.1', { SSL_CERT_FILE: certificate })).status, 3, 'another name');
  server.close();
});

test('the token is taken from the environment and never shown', async () => {
  let seen;
  const server = createServer((asked, answer) => { seen = asked.headers.authorization; answer.writeHead(401); answer.end(); }).listen(0, '127.0.0.1');
  await new Promise((resolve) => { server.on('listening', resolve); });
  const result = await check([write('good.json', estimateRequest())], { args: ['--url', `http://127.0.0.1:${server.address().port}`], env: { TPU_ADVISOR_TOKEN: 'tpa_secret' } });
  server.close();
  assert.equal(seen, 'Bearer tpa_secret');
  assert.equal(result.status, 2);
  assert.ok(!(result.err + result.out).includes('tpa_secret'));
});
