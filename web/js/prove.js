// The real compiler's word on a stored plan: asked for by a button, followed while a verifier works, and set beside the prediction.

import { get, isAway, post, remove } from './api.js';
import { stackedBars } from './bar.js';
import { announce, h, table } from './dom.js';
import { failure } from './failure.js';
import { gib, percent, plural, seconds, signedPercent, words } from './format.js';
import { storeFirst } from './store_first.js';

const EVERY_MS = 1500;
const VERDICTS = {
  compiles: ['It compiles, and fits.', 'fits'],
  does_not_fit: ['XLA refuses it: it does not fit.', 'does_not_fit'],
  refused: ['MaxText or libtpu refuses a key, a flag or a value.', 'does_not_fit'],
  failed: ['The compile failed without a word on the plan.', 'tight'],
};
const MOST_BUFFERS = 12;

function bytesTable(proof) {
  const beside = (bytes) =>
    bytes > 0 ? [gib(bytes), h('span', { class: 'second' }, signedPercent(bytes / proof.compiled_hbm_bytes_per_device - 1))] : '–';
  return table(
    'HBM of one device: compiled, predicted, measured',
    [{ title: 'HBM per device' }, { title: 'Compiled', number: true }, { title: 'Predicted', number: true }, { title: 'Measured', number: true }],
    [
      ['Whole step', gib(proof.compiled_hbm_bytes_per_device), beside(proof.predicted_hbm_bytes_per_device), beside(proof.measured_hbm_bytes_per_device)],
      ...(proof.parts ?? []).map((part) => [
        words(part.name),
        part.compiled_bytes_per_device === null ? '–' : gib(part.compiled_bytes_per_device),
        part.predicted_bytes_per_device === null ? '–' : gib(part.predicted_bytes_per_device),
        '–',
      ]),
    ],
  );
}

// The buffers alive at the peak, largest first, as one bar and its table.
function buffersPicture(proof) {
  const all = [...(proof.buffers ?? [])].sort((a, b) => b.bytes * (b.count ?? 1) - a.bytes * (a.count ?? 1));
  if (!all.length) return null;
  const size = (buffer) => buffer.bytes * (buffer.count ?? 1);
  const shown = all.slice(0, MOST_BUFFERS);
  const rest = all.slice(MOST_BUFFERS).reduce((sum, buffer) => sum + size(buffer), 0);
  const parts = shown.map((buffer, index) => ({ index, value: size(buffer), title: `${buffer.shape}: ${gib(size(buffer))}` }));
  const scale = Math.max(all.reduce((sum, buffer) => sum + size(buffer), 0), proof.hbm_limit_bytes_per_device ?? 0);
  const limit = proof.hbm_limit_bytes_per_device
    ? { value: proof.hbm_limit_bytes_per_device, label: `limit ${gib(proof.hbm_limit_bytes_per_device)}` }
    : null;
  return h(
    'div',
    null,
    h('h4', null, `Buffers at the compiler’s peak${proof.peak_at ? `, ${words(proof.peak_at)}` : ''}`),
    stackedBars({
      label: `The ${shown.length} largest buffers at the peak; the values are in the table.`,
      scale: scale * 1.02 || 1,
      limit,
      rows: [{ label: `largest first${rest > 0 ? `; ${gib(rest)} more in small ones` : ''}`, parts }],
    }),
    table(
      'Buffers at the peak',
      [{ title: 'Shape' }, { title: 'Bytes', number: true }, { title: 'Count', number: true }, { title: 'Part of the prediction' }, { title: 'Operation' }],
      shown.map((buffer) => [h('code', null, buffer.shape), gib(size(buffer)), String(buffer.count ?? 1), buffer.part ? words(buffer.part) : '–', buffer.operation ?? '–']),
    ),
  );
}

// Keys and flags that the releases refuse, and a button that takes them out and estimates again.
function refusals(proof, onRepair) {
  const keys = proof.refused_keys ?? [];
  const flags = [...(proof.refused_flags ?? []), ...(proof.unknown_flags ?? [])];
  if (!keys.length && !flags.length) return null;
  const button = onRepair ? h('button', { type: 'button' }, 'Take them out and estimate') : null;
  button?.addEventListener('click', () => onRepair({}, { keys, flags }));
  return h(
    'div',
    { class: 'banner banner-bad', role: 'group', 'aria-label': 'Refused' },
    keys.length ? h('p', null, 'Refused keys: ', h('code', null, keys.join(', '))) : null,
    flags.length ? h('p', null, 'Refused or unknown flags: ', h('code', null, flags.join(' '))) : null,
    button,
  );
}

function proofDone(proof, onRepair) {
  const [sentence, kind] = VERDICTS[proof.verdict] ?? [words(proof.verdict), 'tight'];
  const versions = Object.entries(proof.versions ?? {}).map(([name, version]) => `${name} ${version}`);
  return [
    h(
      'p',
      { class: 'proof-verdict' },
      h('span', { class: `verdict verdict-${kind}` }, words(proof.verdict)),
      ' ',
      h('strong', null, sentence),
      Number.isFinite(proof.seconds) ? h('span', { class: 'soft' }, ` in ${seconds(proof.seconds)}`) : null,
    ),
    proof.reason ? h('p', null, proof.reason) : null,
    proof.note ? h('p', null, `Note: ${proof.note}.`) : null,
    refusals(proof, onRepair),
    Number.isFinite(proof.hbm_error_frac)
      ? h('p', null, `The prediction is ${percent(Math.abs(proof.hbm_error_frac))} ${proof.hbm_error_frac > 0 ? 'above' : 'below'} the compiler.`)
      : null,
    proof.compiled_hbm_bytes_per_device ? bytesTable(proof) : null,
    buffersPicture(proof),
    versions.length ? h('p', { class: 'soft' }, versions.join(', ')) : null,
  ].filter(Boolean);
}

function progress(proof, cancel) {
  const stage = proof.state === 'queued' ? 'Waiting for a verifier' : `${words(proof.stage || 'starting')} …`;
  const button = h('button', { type: 'button', class: 'small' }, 'Cancel');
  button.addEventListener('click', cancel);
  const hint =
    proof.state === 'queued'
      ? h('p', { class: 'soft' }, 'It waits in the database until a verifier takes it. One is started with: ', h('code', null, 'tpu-advisor verifier'))
      : null;
  return [h('p', { role: 'status' }, h('progress', { 'aria-label': 'Compiling' }), ' ', stage, ' ', button), hint].filter(Boolean);
}

async function measuredBytes(run) {
  const { measurements } = await get(`/v1/runs/${encodeURIComponent(run.id)}/measurements?rank=${run.rank}&limit=200`);
  return measurements.find((row) => row.rank === run.rank && row.measured_hbm_bytes_per_device)?.measured_hbm_bytes_per_device;
}

// plan.run {id, rank}: where the plan is stored; plan.onStore(tab)? stores it. onRepair(change, {keys, flags}) estimates without what is refused.
export function provePanel({ run, onStore }, { onRepair }) {
  if (!run) return storeFirst('Of a plan that is stored as a run the real compiler can be asked here.', 'prove', onStore);
  const shown = h('div', { class: 'results' });
  const start = h('button', { type: 'button', class: 'primary' }, 'Prove with the real compiler');
  const fail = (error) => {
    start.hidden = false;
    shown.replaceChildren(failure(error));
  };
  const draw = async (answer) => {
    const proof = answer.results.find((row) => row.rank === run.rank) ?? answer.result;
    const path = `/v1/verifications/${encodeURIComponent(answer.verification_id)}`;
    const isOver = proof.state === 'done' || proof.state === 'cancelled';
    start.hidden = !isOver;
    if (proof.state === 'cancelled') shown.replaceChildren(h('p', { class: 'soft' }, 'The last verification was cancelled.'));
    else if (isOver) {
      const measured = await measuredBytes(run).catch(() => null);
      shown.replaceChildren(...proofDone({ ...proof, measured_hbm_bytes_per_device: measured }, onRepair));
      announce(words(proof.verdict));
    } else {
      shown.replaceChildren(...progress(proof, () => remove(path).then(() => follow(path), fail)));
      again(path);
    }
  };
  const again = (path) => setTimeout(() => shown.isConnected && follow(path), EVERY_MS);
  const follow = (path) =>
    get(path).then(draw, (error) => {
      if (!isAway(error)) fail(error);
      else {
        if (!shown.querySelector('[role="alert"]')) shown.replaceChildren(failure(error));
        again(path); // verifiers work on, and the daemon comes back
      }
    });
  start.addEventListener('click', async () => {
    start.hidden = true;
    await post(`/v1/runs/${encodeURIComponent(run.id)}/verifications`, { rank: run.rank }).then(draw, fail);
  });
  get(`/v1/runs/${encodeURIComponent(run.id)}/verifications?rank=${run.rank}&limit=1`).then(({ verifications: [last] }) => {
    if (last) follow(`/v1/verifications/${encodeURIComponent(last.verification_id)}`);
  }, fail);
  return h(
    'section',
    { class: 'panel' },
    h('div', { class: 'panel-head' }, h('h3', null, 'The compiler’s word'), h('p', { class: 'actions' }, start)),
    h('p', { class: 'soft' }, 'MaxText’s own checks and an ahead-of-time compile with libtpu, which needs no TPU: whether it compiles, and XLA’s bytes beside the predicted ones.'),
    shown,
  );
}
