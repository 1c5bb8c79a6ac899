// The part of the eco test that needs no network: the emitted files against what the real MaxText and XPK said
// when `tests/eco/run.sh --update` was last run.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const PROGRAM = process.env.PROGRAM ?? 'build/tpu-advisor';
const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const recorded = read('tests/eco/recorded.json');
const topologies = read('engine/catalog/data/topologies.json').rows;
const models = read('engine/catalog/data/models.json').models.filter((row) => row.source.startsWith('maxtext'));
const keys = new Set(recorded.maxtext_keys);

function program(args, input) {
  const done = spawnSync(PROGRAM, args, { input, encoding: 'utf8', maxBuffer: 64 << 20 });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
}
const artifact = (name, answer) => program(['artifact', name, '-'], JSON.stringify(answer));

function answerFor([accelerator, chip, topology, devices, chips, hosts], config = {}) {
  const cluster = { chip, topology, accelerator, slices: 1, devices, chips, hosts };
  return { model: { name: 'llama3.1-8b' }, cluster, config: { model_name: 'llama3.1-8b', ...config }, xla_flags: ['--xla_a=1'], step_time_s: 1, engine: { version: '1' } };
}

// The argv of a command of the given name that the script runs, and its exit status.
function started(name, script, env) {
  const folder = mkdtempSync(join(tmpdir(), 'eco-'));
  try {
    writeFileSync(join(folder, name), '#!/bin/sh\nfor a in "$@"; do printf "%s\\0" "$a"; done\n');
    chmodSync(join(folder, name), 0o755);
    const done = spawnSync('bash', ['-c', script], { cwd: folder, encoding: 'utf8', env: { PATH: `${folder}:${process.env.PATH}`, ...env } });
    return { argv: done.stdout.split('\0').slice(0, -1), status: done.status, stderr: done.stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
const READER = { CLUSTER: 'c', CLUSTER_NAME: 'c', WORKLOAD: 'job', WORKLOAD_NAME: 'job', DOCKER_IMAGE: 'i', WORKLOAD_IMAGE: 'i', PROJECT_ID: 'p', ZONE: 'z', BASE_OUTPUT_DIRECTORY: 'gs://b', STEPS: '7', DATASET_TYPE: 'hf', EXTRA_ARGS: 'profiler=xplane' };

test('every cluster goes by a name that XPK has, or the script says that there is none', () => {
  for (const row of topologies) {
    const script = artifact('xpk.sh', answerFor(row));
    const names = recorded.xpk_types[`${row[1]}-${row[2]}`];
    const type = /--tpu-type='([^']*)'/.exec(script)?.[1];
    if (type) assert.ok(names.includes(type), `${type}: XPK knows ${names}`);
    else assert.deepEqual([names, /exit 2\n$/.test(script)], [[], true], row[0]);
  }
});

test("the reader's steps and data reach the one line that is submitted", () => {
  for (const [name, script] of [['xpk', 'xpk.sh'], ['gcluster', 'gcluster.sh']]) {
    const { argv, status, stderr } = started(name, artifact(script, answerFor(topologies[4])), READER);
    assert.equal(status, 0, stderr);
    const command = argv[argv.indexOf('--command') + 1];
    assert.ok(!command.includes('\n'));
    const run = started('python3', command, {}).argv;
    for (const word of ['steps=7', 'dataset_type=hf', 'run_name=job', 'profiler=xplane', 'enable_checkpointing=false', 'base_output_directory=gs://b'])
      assert.ok(run.includes(word), `${script}: ${word} is not in ${run}`);
  }
});

test('a key that the reader gives counts more than the plan, which MaxText reads before it', () => {
  const answer = answerFor(topologies[4], { per_device_batch_size: 2 });
  const env = { ...READER, RUN_NAME: 'job', EXTRA_ARGS: 'per_device_batch_size=3 enable_checkpointing=true' };
  const fromManifest = (text) => /args:\n\s+- \|\n([^]*?)\n\s+resources:/.exec(text)[1];
  for (const script of ['maxtext.sh', 'xpk.sh', 'gcluster.sh', 'jobset.yaml']) {
    const text = artifact(script, answer);
    const name = script === 'xpk.sh' ? 'xpk' : script === 'gcluster.sh' ? 'gcluster' : 'python3';
    let { argv } = started(name, script === 'jobset.yaml' ? fromManifest(text) : text, env);
    if (name !== 'python3') argv = started('python3', argv[argv.indexOf('--command') + 1], {}).argv;
    const last = (key) => argv.findLast((word) => word.startsWith(`${key}=`));
    assert.deepEqual([last('per_device_batch_size'), last('enable_checkpointing')], ['per_device_batch_size=3', 'enable_checkpointing=true'], `${script}: ${argv}`);
  }
});

test('the head of maxtext.yml runs as it stands, and libtpu.env when it is sourced', () => {
  const line = /^# (python3 -m .*)$/m.exec(artifact('maxtext.yml', answerFor(topologies[0])))[1];
  assert.deepEqual(started('python3', line, {}).argv.slice(0, 3), ['-m', 'maxtext.trainers.pre_train.train', 'maxtext.yml']);
  const sourced = spawnSync('bash', ['-c', `${artifact('libtpu.env', answerFor(topologies[0]))}\nenv`], { encoding: 'utf8' });
  assert.match(sourced.stdout, /^LIBTPU_INIT_ARGS=--xla_a=1$/m);
});

test("the catalog has every key of MaxText's", () => {
  const known = new Set(read('engine/catalog/data/keys.json').rows.map((row) => row.name));
  assert.deepEqual(recorded.maxtext_keys.filter((name) => !known.has(name)), []);
});

test("plans of every model of MaxText's use its keys only, its own mesh, and scan where it can", () => {
  const cluster = { chip: 'tpu7x', topology: '4x8x8' };
  const workload = { seq_len: 4096, per_device_batch_size: 1 };
  for (const { name, pins } of models) {
    const request = { model: name, cluster, workload, search: { top_k: 2, max_evaluations: 2000 } };
    for (const { config } of JSON.parse(program(['advise', '-'], JSON.stringify(request))).ranked) {
      for (const key of Object.keys(config)) assert.ok(keys.has(key), `${name}: ${key} is no key of MaxText`);
      if (pins.deepstack_visual_indexes_for_vit) {
        const scannable = config.use_multimodal === false && config.deepstack_visual_indexes_for_vit.length === 0;
        assert.equal(config.scan_layers ?? true, scannable, `${name}: MaxText scans no layers that a vision encoder feeds`);
      }
      const degrees = Object.entries(config).filter(([key, value]) => /^ici_.*_parallelism$/.test(key) && value > 1);
      for (const [key] of degrees) {
        const axis = key.slice(4, -12).replace('pipeline', 'stage');
        if (pins.mesh_axes) assert.ok(pins.mesh_axes.includes(axis), `${name}: ${key} is not in its mesh`);
      }
    }
  }
});

test('the page counts the configurations that there are', () => {
  const page = readFileSync('tests/eco/report.md', 'utf8');
  const judged = read('tests/data/lint_rules.json').length;
  assert.match(page, new RegExp(`^\\| ${judged} \\| configurations that break a rule of lint \\|$`, 'm'));
});
