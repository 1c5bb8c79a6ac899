// The compiler is asked about the model of the plan, and about no other: a word on MaxText's default model is no word on
// one that MaxText lacks, and what is verified is what the script of the answer would train.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { estimateRequest, freshDatabase, join, problem, root, run, sql, startDaemon } from './daemon.mjs';

const name = 'api_verified_models';
const fake = join(root, 'tests/api/fake_compiler.mjs');
const migration = readFileSync(join(root, 'sql/migrations/0113_words_on_the_model_asked.sql'), 'utf8');
// Phi-3 is predicted from its dimensions; MaxText has no file for it.
const phi3 = {
  hf_config: {
    model_type: 'phi3', architectures: ['Phi3ForCausalLM'], hidden_size: 3072, num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: 32,
    intermediate_size: 8192, vocab_size: 32064, hidden_act: 'silu', max_position_embeddings: 4096, rms_norm_eps: 1e-5, rope_theta: 10000,
    tie_word_embeddings: false,
  },
};
let daemon;
let url;
before(async () => {
  url = freshDatabase(name);
  daemon = await startDaemon({ database: url });
});
after(async () => { await daemon.stop(); });

const store = async (request) => {
  const response = await daemon.post('/v1/estimate', { ...request, store: true });
  assert.equal(response.status, 200);
  return (await response.json()).run_id;
};
const planOf = (runId) => JSON.parse(sql(name, `SELECT plan FROM verification_plans p JOIN verifications v ON v.id = p.verification_id WHERE v.run_id = '${runId}'`));
const verify = (runId) => daemon.post(`/v1/runs/${runId}/verifications`, { rank: 1 });
const change = (statement) => sql(name, `SET session_replication_role = replica; ${statement}`); // runs are immutable

test('a model that MaxText lacks is not verified as another', async () => {
  const runId = await store(estimateRequest({ model: phi3 }));
  const { detail } = await problem(assert, await verify(runId), 422, 'unsupported');
  assert.match(detail, /another model: MaxText has no model file for phi3/);
  assert.equal(sql(name, 'SELECT count(*) FROM verification_plans'), '0', 'nothing was queued');
  const check = { baseline: { run_id: runId }, candidate: { run_id: runId }, limits: { must_compile: true } };
  const verdict = await (await daemon.post('/v1/checks', check)).json();
  assert.equal(verdict.verdict, 'fail');
  assert.deepEqual(verdict.reasons.map(({ code }) => code), ['does_not_compile']);
  assert.match(verdict.reasons[0].detail, /cannot be asked about the candidate: MaxText has no file/);
  const cli = await run(['verify', '-'], { env: { TPU_ADVISOR_COMPILER: fake }, input: JSON.stringify(estimateRequest({ model: phi3 })) });
  assert.equal(cli.status, 2, cli.out);
  assert.match(cli.err, /no model file for phi3/);
});

test('an advise that asks for the compiler says why it is not asked', async () => {
  const ask = async (extra) => (await daemon.post('/v1/advise', { model: phi3, cluster: { chip: 'v5p', topology: '2x2x2' },
    workload: { seq_len: 4096, global_batch_sequences: 64 }, search: { top_k: 1 }, verify: { top: 1 }, ...extra })).json();
  const lacking = await ask({});
  assert.ok(lacking.run_id, JSON.stringify(lacking));
  assert.equal(lacking.verification_id, null);
  assert.match(lacking.verification_refused, /MaxText has no model file for phi3/);
  const large = await ask({ model: 'llama3.1-70b', cluster: { chip: 'v5e', topology: '1x1' }, workload: { seq_len: 4096, global_batch_sequences: 1 } });
  assert.match(large.verification_refused, /has 0 plans/);
  const good = await ask({ model: 'llama3.1-8b' });
  assert.ok(good.verification_id);
  assert.ok(!('verification_refused' in good));
});

test('an answer without its model is not verified', async () => {
  const runId = await store(estimateRequest());
  change(`UPDATE runs SET response = (response::jsonb #- '{model,config}')::json WHERE id = '${runId}'`);
  const { errors } = await problem(assert, await verify(runId), 422, 'invalid-request');
  assert.match(errors[0].hint, /estimate it again/);
});

test('what is verified has the keys of the script', async () => {
  const config = { ...estimateRequest().config, base_num_decoder_layers: 16 };
  const runId = await store(estimateRequest({ config }));
  assert.equal((await verify(runId)).status, 202);
  const plan = planOf(runId);
  const script = await (await daemon.fetch(`/v1/runs/${runId}/artifacts/maxtext.sh`)).text();
  assert.match(script, /override_model_config=true/);
  assert.equal(plan.config.model_name, 'llama3.1-8b');
  assert.equal(plan.config.base_num_decoder_layers, 16);
  assert.equal(plan.config.override_model_config, true, 'without it MaxText refuses the layers');
});

test('earlier words on another model are taken back, and no others', async () => {
  const [good, lacking, waiting] = [await store(estimateRequest()), await store(estimateRequest({ model: phi3 })), await store(estimateRequest({ model: phi3 }))];
  const word = { verdict: 'compiles', compiled_hbm_bytes_per_device: 21e9 };
  const rows = [[good, 'a', 'done'], [lacking, 'b', 'done'], [waiting, 'c', 'queued']].map(([runId, letter, state]) => {
    const done = state === 'done';
    return `INSERT INTO verifications (id, run_id, mode, created_by) VALUES ('${runId}', '${runId}', 'assign', '');
      INSERT INTO verification_plans (verification_id, rank, plan_sha256, plan, predicted, predicted_hbm_bytes_per_device, state, ended_at, verdict,
        compiled_hbm_bytes_per_device, result) VALUES ('${runId}', 1, '${letter.repeat(64)}', '{}', '{}', 1, '${state}', ${done ? 'now()' : 'NULL'},
        ${done ? `'compiles', 21e9, '${JSON.stringify(word)}'` : 'NULL, NULL, NULL'});
      ${done ? `INSERT INTO proofs (plan_sha256, mode, versions, verdict, compiled_hbm_bytes_per_device, result) VALUES ('${letter.repeat(64)}', 'assign', 'v', 'compiles', 21e9, '${JSON.stringify(word)}');` : ''}`;
  });
  sql(name, rows.join('\n'));
  sql(name, migration);
  const state = (runId) => sql(name, `SELECT state, verdict, result ->> 'reason' FROM verification_plans WHERE verification_id = '${runId}'`);
  assert.equal(state(good), 'done|compiles|');
  assert.match(state(lacking), /^done\|failed\|.*another model/);
  assert.equal(state(waiting), 'cancelled||');
  assert.equal(sql(name, "SELECT string_agg(left(plan_sha256, 1), ',') FROM proofs"), 'a');
});
