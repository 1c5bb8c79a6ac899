// Questions that people asked in public, put to the program as their authors would. One case a file: the thread, what was
// asked and how it ended in our words, the requests, and what must be in the answers.
//
// A request is {"post": path, "json" | "text": body, "status": 200 unless said}. `text` may be a list of lines. A check is
// [where, what, value]: `where` is the path of a member, a * any element of a list; `what` is a row of `checks`; a value
// {"answer": n, "at": path} is taken from the n-th answer of the case.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { startDaemon } from '../api/daemon.mjs';

const folder = new URL('cases/', import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith('.json')).sort();
let daemon;
before(async () => { daemon = await startDaemon({ args: ['--quick-workers', '1', '--workers', '1'] }); });
after(() => daemon.stop());

const lines = (text) => (Array.isArray(text) ? `${text.join('\n')}\n` : text);

// All values at the path, of which * opens lists.
function values(document, path) {
  let found = [document];
  for (const part of path.split('.').filter(Boolean))
    found = found.flatMap((value) => (part === '*' ? value ?? [] : [value?.[part]])).filter((value) => value !== undefined);
  return found;
}
const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const some = (holds) => (found, value) => found.some((one) => holds(one, value));
const checks = {
  is: some((one, value) => { try { assert.deepEqual(one, value); return true; } catch { return false; } }),
  says: some((one, value) => new RegExp(value, 'i').test(textOf(one))),
  above: some((one, value) => one > value),
  below: some((one, value) => one < value),
  'does not say': (found, value) => !found.some((one) => new RegExp(value, 'i').test(textOf(one))),
  'is left out': (found) => found.length === 0 || found.every((one) => one === null),
};
const wanted = (value, answers) => (typeof value?.answer === 'number' ? values(answers[value.answer], value.at)[0] : value);

async function answer(request) {
  const type = request.json ? 'application/json' : request.type ?? 'text/plain';
  const body = request.json ? JSON.stringify(request.json) : lines(request.text);
  const response = await daemon.fetch(request.post, { method: 'POST', headers: { 'Content-Type': type }, body });
  const text = await response.text();
  assert.equal(response.status, request.status ?? 200, `${request.post}: ${text.slice(0, 1500)}`);
  return JSON.parse(text);
}

for (const name of names) {
  const question = JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
  test(`${question.thread}: ${question.asked}`, async () => {
    assert.ok(question.ended && question.requests.length > 0, `${name} has no end or asks nothing`);
    const answers = [];
    let checked = 0;
    for (const [i, request] of question.requests.entries()) {
      answers.push(await answer(request));
      for (const [where, what, value] of request.checks ?? []) {
        assert.ok(checks[what], `${name}: there is no check "${what}"`);
        const found = values(answers[i], where);
        const value_now = wanted(value, answers);
        assert.ok(checks[what](found, value_now),
          `${name}, answer ${i}: ${where} ${what} ${textOf(value_now ?? '')}, but is ${JSON.stringify(found).slice(0, 1500)}`);
        checked++;
      }
    }
    assert.ok(checked > 0, `${name} checks nothing`);
  });
}

test('every thread has one case', () => {
  const threads = names.map((name) => JSON.parse(readFileSync(new URL(name, folder), 'utf8')).thread);
  assert.equal(new Set(threads).size, threads.length);
  assert.ok(threads.length >= 16, `${threads.length} cases`);
});
