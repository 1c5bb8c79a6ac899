// Makes rows of truth of a run's plans where the real compiler and the prediction disagree by more than 5 %.
// usage: truth_add.mjs --run ID [--url http://127.0.0.1:8080] [--out tests/compile/truth/field.json]; TPU_ADVISOR_TOKEN where
// the daemon wants one. Exit status: 0 rows were added or are there, 1 there is none to add, 2 wrong use.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const DISAGREEMENT_FRAC = 0.05;
const BUFFERS_KEPT = 10;

const option = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`);
  return at > 0 ? process.argv[at + 1] : fallback;
};
const runId = option('run');
const url = option('url', process.env.TPU_ADVISOR_URL ?? 'http://127.0.0.1:8080');
const out = option('out', fileURLToPath(new URL('truth/field.json', import.meta.url)));
if (!runId) {
  console.error('usage: make compile-truth-add RUN=id (a run that was verified; TPU_ADVISOR_URL names the daemon)');
  process.exit(2);
}

async function get(path) {
  const token = process.env.TPU_ADVISOR_TOKEN;
  const response = await fetch(url + path, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${path}: ${answer.detail ?? response.status}`);
  return answer;
}

// The estimate request of a plan: the case that tests/compile/compile.py would compile.
function requestOf(run, rank) {
  const { chip, topology, slices } = run.response.cluster;
  const plan = run.response.ranked ? run.response.ranked[rank - 1] : run.request;
  return { model: run.request.model, cluster: { chip, topology, slices: slices ?? 1 }, config: plan.config, xla_flags: plan.xla_flags ?? [] };
}

function rowOf(run, proof, createdAt) {
  const { maxtext, jax, libtpu } = proof.versions;
  const model = run.model || 'model';
  return {
    id: `field-${model}-${run.chip}-${run.run_id.slice(-12)}-r${proof.rank}`,
    request: requestOf(run, proof.rank),
    software: `maxtext ${maxtext}, jax ${jax}, libtpu ${libtpu}`,
    date: createdAt.slice(0, 10),
    compiled: {
      seconds: proof.seconds,
      verdict: proof.verdict === 'does_not_fit' ? 'does_not_fit' : 'fits',
      need_bytes_per_device: proof.compiled_hbm_bytes_per_device,
      host_bytes_per_device: proof.compiled_host_bytes_per_device ?? 0,
      argument_bytes: proof.argument_bytes_per_device,
      heap_bytes: proof.heap_bytes_per_device,
      peak_moment: proof.peak_at,
      moments: proof.moments,
      flags_left_out: proof.unknown_flags,
      flags_refused: proof.refused_flags,
      buffers_at_peak: proof.buffers.slice(0, BUFFERS_KEPT).map(({ bytes, count, shape, operation }) => ({ bytes, count, shape, operation })),
    },
  };
}

const run = await get(`/v1/runs/${runId}`);
const rows = existsSync(out) ? JSON.parse(readFileSync(out, 'utf8')) : [];
let found = 0;
for (const plan of run.verification?.plans ?? []) {
  if (Math.abs(plan.hbm_error_frac ?? 0) <= DISAGREEMENT_FRAC) continue;
  const verification = await get(`/v1/verifications/${plan.verification_id}`);
  const proof = verification.results.find((one) => one.rank === plan.rank);
  if (proof.verdict === 'failed') continue; // no word on the plan
  const row = rowOf(run, proof, verification.created_at);
  const percent = (100 * plan.hbm_error_frac).toFixed(1);
  found++;
  if (rows.some((one) => one.id === row.id)) {
    console.log(`${row.id} is there already`);
    continue;
  }
  rows.push(row);
  console.log(`${row.id}: compiled ${(row.compiled.need_bytes_per_device / 1e9).toFixed(2)} GB, predicted ${percent} % off`);
}
if (!found) {
  console.error(`no plan of run ${runId} was compiled with more than ${100 * DISAGREEMENT_FRAC} % of disagreement`);
  process.exit(1);
}
writeFileSync(out, `[\n${rows.map((row) => JSON.stringify(row)).join(',\n')}\n]\n`);
