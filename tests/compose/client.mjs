// client.mjs URL LOG: clients that store estimates through a proxy, each under a key of its own, until SIGTERM; and one that
// asks without storing. An answer that says anything but 200 or honestly 409, 502, 503 or 504 ends it with status 1. LOG gets
// a line for each answer: milliseconds since 1970, status, key, run id.  client.mjs --check URL LOG: every run that was
// acknowledged can be read under its id and is the one of its key; prints their number and what else was answered.
import { appendFileSync, readFileSync } from 'node:fs';

const request = JSON.parse(readFileSync(new URL('../golden/requests/estimate-v6e-llama8b-8c.json', import.meta.url)));
const honest = new Set([409, 502, 503, 504]);
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const fail = (what) => { console.error(`client: ${what}`); process.exit(1); };

async function ask(url, key) {
  const headers = { 'Content-Type': 'application/json', ...(key && { 'Idempotency-Key': key }) };
  const answer = await fetch(`${url}/v1/estimate`, { method: 'POST', headers, signal: AbortSignal.timeout(20000),
    body: JSON.stringify(key ? { ...request, label: key, store: true } : request) });
  const text = await answer.text();
  if (answer.status === 409 || answer.status >= 502) return { status: answer.status };
  if (answer.status !== 200) fail(`answered ${answer.status}: ${text.slice(0, 400)}`);
  return { status: 200, body: JSON.parse(text) };
}

async function load(url, log) {
  let going = true;
  let number = 0;
  let step;
  process.on('SIGTERM', () => { going = false; });
  const note = (status, key, id) => appendFileSync(log, `${Date.now()} ${status} ${key} ${id ?? '-'}\n`);
  const right = (body, what) => {
    step ??= body.step_time_s;
    if (body.step_time_s !== step) fail(`${what} is answered ${body.step_time_s} s, not ${step} s`);
  };
  const storing = async () => {
    while (going) {
      const key = `key-${process.pid}-${number++}`;
      for (let id; going && !id;) {
        const { status, body } = await ask(url, key).catch((error) => fail(`${key}: ${error.cause ?? error}`));
        id = body?.run_id;
        note(status, key, id);
        if (status === 200 && !(body.stored && id)) fail(`${key} is answered 200 and not stored`);
        if (body) right(body, key);
        else if (!honest.has(status)) fail(`${key} is answered ${status}`);
        await sleep(body ? 20 : 100);
      }
    }
  };
  const asking = async () => {
    while (going) {
      const { status, body } = await ask(url).catch((error) => fail(`without a key: ${error.cause ?? error}`));
      note(status, 'unstored');
      if (body) right(body, 'what is not stored');
      await sleep(50);
    }
  };
  await Promise.all([storing(), storing(), storing(), asking()]);
}

async function check(url, log) {
  const lines = readFileSync(log, 'utf8').trim().split('\n').map((line) => line.split(' '));
  const counts = {};
  for (const [, status] of lines) counts[status] = (counts[status] ?? 0) + 1;
  const acknowledged = lines.filter(([, status, , id]) => status === '200' && id !== '-');
  const keys = new Map();
  for (const [, , key, id] of acknowledged) if ((keys.get(key) ?? id) === id) keys.set(key, id); else fail(`${key} has two runs`);
  const left = [...keys];
  const reading = async () => {
    for (let next = left.pop(); next; next = left.pop()) {
      const [key, id] = next;
      let answer;
      for (let attempt = 0; attempt < 5 && !(answer && !honest.has(answer.status)); attempt++) {
        if (answer) await sleep(200);
        answer = await fetch(`${url}/v1/runs/${id}`);
      }
      const run = answer.status === 200 && await answer.json();
      if (!run || run.label !== key) fail(`${key} was acknowledged as ${id}, which is answered ${answer.status}`);
      await sleep(25); // together fewer than the proxy allows an address
    }
  };
  await Promise.all([reading(), reading(), reading(), reading()]);
  console.log(`${keys.size} runs, answers ${Object.entries(counts).map(([status, count]) => `${status}: ${count}`).join(', ')}`);
}

if (process.argv[2] === '--check') await check(...process.argv.slice(3));
else await load(...process.argv.slice(2));
