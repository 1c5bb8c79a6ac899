// Answers about kernels for the stand-in daemon: a catalog of two, a tuning and a simulation. The numbers are made up and add up.

const SIZES = [
  { name: 'batch', type: 'number', what: 'sequences on the device; 1 when left out' },
  { name: 'q_heads', type: 'int', what: 'query heads on the device', required: true },
  { name: 'kv_heads', type: 'int', what: 'key-value heads on the device', required: true },
  { name: 'q_len', type: 'int', what: 'queries of one sequence', required: true },
  { name: 'head_dim_qk', type: 'int', what: 'size of a query and key head', required: true },
  { name: 'causal', type: 'bool', what: 'true when left out' },
  { name: 'dtype', type: 'string', what: 'bf16 when left out' },
];
const BLOCKS = [
  { name: 'block_q', type: 'int', what: 'queries per grid step', required: true },
  { name: 'block_kv', type: 'int', what: 'keys per grid step', required: true },
  { name: 'k_layout', type: 'string', what: 'HEAD_DIM_MINOR or SEQ_MINOR' },
];

export const KERNELS = [
  { name: 'splash_fwd', what: 'splash attention, forward', shape: SIZES, tile: BLOCKS },
  {
    name: 'gmm',
    what: 'grouped matmul',
    shape: [
      { name: 'm', type: 'int', what: 'rows of all groups', required: true },
      { name: 'k', type: 'int', what: 'contraction', required: true },
      { name: 'group_sizes', type: 'int[]', what: 'rows of each group' },
    ],
    tile: [{ name: 'tile_m', type: 'int', what: 'rows per grid step' }],
  },
];

const tile = (block_q, block_kv, k_layout = 'SEQ_MINOR') => ({ block_q, block_kv, k_layout });
const row = (what, time_us, vmem_bytes, fits_vmem = true) => ({
  tile: what,
  time_us,
  vmem_bytes,
  fits_vmem,
  bound: 'vpu',
});

// Times fall with the blocks; 4096 queries need too much VMEM, 3072 keys break a rule.
function tileMap() {
  const [rows, columns] = [[512, 1024, 2048, 4096], [512, 1024, 2048, 3072]];
  const known = { '512 512': 8000, '1024 1024': 4800, '1024 2048': 4400, '2048 2048': 4000, '4096 2048': 3600 };
  const cell = (q, kv) => {
    if (kv === 3072) return { broken_rule: 'block_kv 3072 does not divide kv_len 8192' };
    const time_us = known[`${q} ${kv}`] ?? 4000 * (1 + 2048 / q / 10 + 2048 / kv / 10);
    return row(tile(q, kv), time_us, q * kv * (q < 4096 ? 6 : 20), q < 4096);
  };
  return {
    rows: { name: 'block_q', values: rows },
    columns: { name: 'block_kv', values: columns },
    vmem_limit_bytes: 32 * 2 ** 20,
    evaluated: 12,
    cells: rows.map((q) => columns.map((kv) => cell(q, kv))),
  };
}

export function tuning(rows = 3) {
  const ranked = [
    row(tile(2048, 2048), 4000, 25 * 2 ** 20),
    row(tile(1024, 2048), 4400, 13 * 2 ** 20),
    row(tile(1024, 1024), 4800, 12 * 2 ** 20),
  ];
  return {
    chip: 'tpu7x',
    kernel: 'splash_fwd',
    ranked: ranked.slice(0, rows),
    default: row(tile(512, 512, 'HEAD_DIM_MINOR'), 8000, 4 * 2 ** 20),
    next_better: { ...row(tile(4096, 2048), 3600, 48 * 2 ** 20), scoped_vmem_limit_kib: 49152 },
    maxtext_keys: { attention: { sa_block_q: 2048, sa_block_kv: 2048 } },
    short_list: [{ ...row(tile(2048, 2048), 4000, 25 * 2 ** 20), near_equal: [row(tile(2048, 1024), 4010, 1)] }],
    sweep: { tiles: [tile(2048, 2048)], tune_jax: 'import tune_jax\n' },
    tile_map: tileMap(),
    search: { evaluated: 27, exhaustive: true },
  };
}

// Steps of 5 µs: 1 µs in, then 3 µs in the matrix unit.
export function simulation(body, steps = 40) {
  const listed = Array.from({ length: steps }, (_, index) => ({
    at: { head: 0, query_block: index },
    start_us: 5 * index,
    end_us: 5 * index + 5,
    dma_in: [5 * index, 5 * index + 1],
    mxu: [5 * index + 1, 5 * index + 4],
    vector: null,
    dma_out: index % 2 ? [5 * index + 4, 5 * index + 5] : null,
  }));
  const end = 5 * (steps + 10);
  return {
    chip: body?.chip ?? 'tpu7x',
    kernel: body?.kernel ?? 'splash_fwd',
    time_us: end + 30,
    fits_vmem: true,
    vmem_bytes: 25 * 2 ** 20,
    vmem_limit_bytes: 32 * 2 ** 20,
    scoped_vmem_limit_needed_kib: 25600,
    vmem_parts: [
      { name: 'query blocks', bytes: 20 * 2 ** 20 },
      { name: 'key blocks', bytes: 5 * 2 ** 20 },
    ],
    grid_steps: steps + 10,
    bound: 'mxu',
    mxu_busy_us: 3 * (steps + 10),
    hbm_bytes: 2 ** 30,
    parts: [
      { name: 'mxu', us: end },
      { name: 'launch', us: 30 },
    ],
    extrapolated: false,
    maxtext_keys: { attention: { sa_block_q: body?.tile?.block_q ?? null } },
    warnings: [],
    timeline: body?.timeline && {
      end_us: end,
      walked: true,
      why_not_walked: null,
      representative_groups: false,
      steps: listed,
      omitted: {
        count: 10,
        start_us: 5 * steps,
        end_us: end,
        dma_in_us: 10,
        mxu_us: 30,
        vector_us: 0,
        dma_out_us: 5,
      },
      outside_kernel: [{ name: 'launch', us: 30 }],
    },
    trace: body?.trace && { traceEvents: [{ name: 'step', ph: 'X' }] },
  };
}
