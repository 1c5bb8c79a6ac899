// A stand-in for the daemon, for page tests of answers that a healthy daemon seldom gives: failures, near misses, odd sizes.
// Shapes are those of the API; the numbers are made up and add up.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KERNELS, simulation, tuning } from './kernel_fixture.mjs';
import { chipFields, pictures } from './pictures_fixture.mjs';

const WEB = fileURLToPath(new URL('../../build/web/', import.meta.url));
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
const GIB = 1024 ** 3;
const ENGINE = { version: 'fixture', catalog_hash: '0', calibration: 'none' };

export const CATALOG = {
  models: [
    { name: 'llama3.1-70b', total_params: 70553706496, active_params: 70553706496 },
    { name: 'deepseek3-671b', total_params: 671026419200, active_params: 37551681024 },
  ],
  chips: [
    { name: 'tpu7x', title: 'TPU7x (Ironwood)' },
    { name: 'v6e', title: 'TPU v6e (Trillium)' },
  ],
  topologies: [
    { name: 'tpu7x-8', chip: 'tpu7x', topology: '2x2x1', chips: 4, devices: 8 },
    { name: 'tpu7x-128', chip: 'tpu7x', topology: '4x4x4', chips: 64, devices: 128 },
    { name: 'v6e-16', chip: 'v6e', topology: '4x4', chips: 16, devices: 16 },
  ],
};

export function estimate(scale = 1) {
  const exposed = [
    ['mlp_matmul', 'mxu', 3.1, 3.1],
    ['attention_bwd', 'mxu', 1.2, 1.2],
    ['attention_fwd', 'mxu', 0.6, 0.6],
    ['recompute', 'mxu', 0.9, 0.9],
    ['fsdp_all_gather', 'ici', 2.4, 0.35],
    ['grad_reduce_scatter', 'ici', 1.9, 0.2],
    ['norms', 'vpu', 0.3, 0.3],
    ['optimizer_update', 'hbm', 0.12, 0.12],
    ['weights_read', 'hbm', 1.1, 0],
    ['launch', 'latency', 0.03, 0.03],
  ];
  const step = exposed.reduce((all, row) => all + row[3], 0) * scale;
  return {
    engine: ENGINE,
    model: {
      name: 'llama3.1-70b',
      decoder_block: 'llama2',
      layers: 80,
      params_total: 70553706496,
      params_active: 70553706496,
    },
    cluster: {
      chip: 'tpu7x',
      topology: '4x4x4',
      slices: 1,
      accelerator: 'tpu7x-128',
      chips: 64,
      devices: 128,
      hosts: 16,
    },
    step_time_s: step,
    step_time_low_s: step * 0.95,
    step_time_high_s: step * 1.06,
    tokens_per_s_per_chip: 2048 / scale,
    tflops_per_s_per_chip: 930.2 / scale,
    mfu_frac: 0.403 / scale,
    hfu_frac: 0.455 / scale,
    global_batch_sequences: 256,
    tokens_per_step: 2097152,
    fits: true,
    fit_verdict: scale > 1.1 ? 'tight' : 'fits',
    hbm_bytes_per_device: (71.5 - (scale - 1) * 40) * GIB,
    hbm_limit_bytes_per_device: 94.7 * GIB,
    hbm_parts: [
      { name: 'weights', bytes: 2.1 * GIB, at: 'always' },
      { name: 'optimizer_state', bytes: 4.1 * GIB, at: 'always' },
      { name: 'saved_activations', bytes: 52 * GIB, at: 'backward' },
      { name: 'working_set', bytes: 9.3 * GIB, at: 'backward' },
      { name: 'gathered_weights', bytes: 4 * GIB, at: 'backward' },
      { name: 'saved_activations', bytes: 52 * GIB, at: 'loss' },
      { name: 'logits', bytes: 8 * GIB, at: 'loss' },
      { name: 'gradients', bytes: 4.2 * GIB, at: 'update' },
    ],
    host_bytes_per_host: 12 * GIB,
    host_limit_bytes_per_host: 900 * GIB,
    time_parts: exposed.map(([name, resource, seconds, shown]) => ({
      name,
      resource,
      seconds: seconds * scale,
      exposed_seconds: shown * scale,
    })),
    bound: 'mxu',
    mesh: [
      { axis: 'fsdp', size: 64, placed_on: ['x', 'y', 'z'], bandwidth_bytes_per_s: 5.4e11, wraps: true },
      { axis: 'context', size: 2, placed_on: ['core'], bandwidth_bytes_per_s: 6e11, wraps: false },
    ],
    kernels: [
      {
        kernel: 'splash_fwd',
        shape: '2x64x8192x128',
        tile: 'block_q 2048 block_kv 2048',
        time_us: 7421.5,
        count: 80,
      },
    ],
    confidence: 'calibrated',
    confidence_why: 'fitted on 14 runs of this chip',
    advice: [
      {
        severity: 'info',
        code: 'save_more',
        message: 'Saving the attention output avoids recomputing it.',
        change: { attention_out: 'device' },
        gain_frac: 0.031,
      },
    ],
    warnings: [{ pointer: '/config/foo', detail: 'foo is an old name of bar.' }],
    usd_per_step: null,
    usd_per_billion_tokens: null,
  };
}

const CONFIG = {
  model_name: 'llama3.1-70b',
  per_device_batch_size: 2,
  max_target_length: 8192,
  ici_fsdp_parallelism: 64,
  ici_context_parallelism: 2,
  remat_policy: 'custom',
  decoder_layer_input: 'offload',
  out_proj: 'device',
  opt_type: 'adamw',
};
const FLAGS = [
  '--xla_tpu_scoped_vmem_limit_kib=65536',
  '--xla_tpu_enable_async_collective_fusion_fuse_all_gather=false',
];

// A point of the front, or a near miss: keys and headline numbers, no ledger.
function point(scale, extra = {}) {
  const { step_time_s, hbm_bytes_per_device, hbm_limit_bytes_per_device, host_bytes_per_host, fit_verdict } =
    estimate(scale);
  const numbers = { step_time_s, hbm_bytes_per_device, hbm_limit_bytes_per_device, host_bytes_per_host, fit_verdict };
  return { ...numbers, config: CONFIG, xla_flags: FLAGS, ...extra };
}

export function advice(plans = 3) {
  const ranked = Array.from({ length: plans }, (_, index) => ({
    rank: index + 1,
    tie_group: Math.max(1, index),
    config: CONFIG,
    xla_flags: FLAGS,
    estimate: estimate(1 + index * 0.07),
    why: ['Least exposed communication of all plans that fit.', 'Attention and matmuls fill 87 % of the step.'],
    changes_from_baseline: [],
  }));
  const { model, cluster } = estimate();
  return {
    model,
    cluster,
    ranked,
    pareto: plans ? [point(1), point(1.5)] : [],
    baseline: null,
    near_misses: [
      point(0.9, {
        hbm_bytes_per_device: 101.2 * GIB,
        fit_verdict: 'does_not_fit',
        reason: 'needs 101.2 GiB of 94.7 GiB; remat_policy=full would fit',
      }),
    ],
    search: {
      considered: 18240,
      illegal: 9120,
      pruned: 6800,
      out_of_memory: 1204,
      evaluated: 1116,
      exhaustive: true,
      elapsed_ms: 412.5,
      evaluations_per_s: 2705,
      objective: 'step_time',
      tie_frac: 0.005,
      memory_frac: 0.97,
    },
    warnings: [],
    engine: ENGINE,
  };
}

const RUN = {
  created_at: '2026-11-21T05:00:00.000000Z',
  project: 'demo',
  git_ref: null,
  model: 'llama3.1-70b',
  chip: 'tpu7x',
  topology: '4x4x4',
  engine_version: 'fixture',
  catalog_hash: '0',
  hbm_bytes_per_device: 71.5 * GIB,
  fits: true,
};

export const RUNS = [
  { ...RUN, run_id: '0193a000-0000-7000-8000-000000000002', kind: 'advise', label: 'after', step_time_s: 6.8 },
  { ...RUN, run_id: '0193a000-0000-7000-8000-000000000001', kind: 'estimate', label: 'before', step_time_s: 7.2 },
];

function problem(response, status, title, errors, headers = {}, detail = errors.length ? '' : `${title}.`) {
  response.writeHead(status, { 'Content-Type': 'application/problem+json', ...headers });
  response.end(
    JSON.stringify({ type: 'about:blank', title, status, detail, errors }),
  );
}

async function serveFile(path, response) {
  const file = normalize(join(WEB, path === '/' ? 'index.html' : path));
  try {
    const data = await readFile(file.startsWith(WEB) ? file : '');
    response.writeHead(200, {
      'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream',
      'Content-Security-Policy': "default-src 'self'",
    });
    response.end(data);
  } catch {
    problem(response, 404, 'No such page', []);
  }
}

// answers: {"POST /v1/advise": (body) => object | {text} | {status, title, errors, headers}}; missing ones get the defaults above.
export async function startFixture(answers = {}) {
  const usual = {
    'GET /v1/catalog/models': () => ({ engine: ENGINE, models: CATALOG.models }),
    'GET /v1/catalog/chips': () => ({ engine: ENGINE, chips: CATALOG.chips }),
    'GET /v1/catalog/topologies': () => ({ engine: ENGINE, topologies: CATALOG.topologies }),
    'GET /v1/catalog/kernels': () => ({ engine: ENGINE, kernels: KERNELS }),
    'POST /v1/advise': () => advice(),
    'GET /v1/catalog/chips/tpu7x': () => chipFields('tpu7x'),
    'POST /v1/estimate': (body) => ({ ...estimate(), ...pictures(body?.include) }),
    'POST /v1/kernels/tune': () => tuning(),
    'POST /v1/kernels/simulate': (body) => simulation(body),
  };
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, 'http://fixture').pathname;
    const answer = answers[`${request.method} ${path}`] ?? usual[`${request.method} ${path}`];
    if (!answer) {
      if (path.startsWith('/v1/')) problem(response, 404, 'No such resource', []);
      else await serveFile(path, response);
      return;
    }
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = await answer(text ? JSON.parse(text) : null, request);
    if (body.status) {
      problem(response, body.status, body.title, body.errors ?? [], body.headers, body.detail);
      return;
    }
    response.writeHead(200, { 'Content-Type': 'text' in body ? 'text/plain' : 'application/json' });
    response.end('text' in body ? body.text : JSON.stringify(body));
  });
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  };
}
