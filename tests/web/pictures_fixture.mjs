// The data of a plan's pictures, for the stand-in daemon: one kind of layer, a slice of 64 chips. The numbers are made
// up and add up.

const block = (name, lane, pass, resource, start_s, seconds, exposed = true) => ({
  name,
  lane,
  pass,
  resource,
  start_s,
  seconds,
  exposed,
});

const timeline = {
  step_time_s: 6.8,
  layers: [
    {
      layer: 'full attention, dense',
      times: 80,
      forward_s: 0.024,
      recompute_s: 0.011,
      backward_s: 0.047,
      blocks: [
        block('attention_fwd', 'tensorcore', 'forward', 'mxu', 0, 0.008),
        block('mlp_matmul', 'tensorcore', 'forward', 'mxu', 0.008, 0.016),
        block('fsdp_all_gather', 'ici_fsdp', 'forward', 'ici', 0, 0.015, false),
        block('recompute', 'tensorcore', 'recompute', 'mxu', 0.024, 0.011),
        block('attention_bwd', 'tensorcore', 'backward', 'mxu', 0.035, 0.015),
        block('mlp_matmul', 'tensorcore', 'backward', 'mxu', 0.05, 0.028),
        block('grad_reduce_scatter', 'ici_fsdp', 'backward', 'ici', 0.078, 0.004),
        block('host_offload', 'pcie', 'backward', 'pcie', 0.035, 0.012, false),
      ],
    },
  ],
  outside: [{ name: 'optimizer_update', resource: 'hbm', exposed_seconds: 0.24 }],
};

const operation = (name, pass, bound, seconds, flops_per_device, flops_per_byte) => ({
  name,
  pass,
  bound,
  seconds,
  flops_per_device,
  bytes_per_device: flops_per_byte ? flops_per_device / flops_per_byte : null,
  bytes_are_least: false,
  flops_per_byte,
  flops_per_s_per_device: flops_per_device / seconds,
});

const roofline = {
  peak_flops_per_s_per_device: 1.15e15,
  step_flops_per_s_per_device: 9e14,
  hbm_bytes_per_s_per_device: 3.7e12,
  step_hbm_bytes_per_s_per_device: 3.2e12,
  layers: [
    {
      layer: 'full attention, dense',
      times: 80,
      operations: [
        operation('attention_fwd', 'forward', 'vpu', 0.008, 2e12, 3640),
        operation('mlp_matmul', 'forward', 'mxu', 0.016, 1.4e13, 3277),
        operation('router', 'forward', 'hbm', 0.001, 1e11, 120),
        operation('attention_bwd', 'backward', 'vpu', 0.015, 5e12, null),
        operation('norms', 'forward', 'hbm', 0.002, 0, 0),
      ],
    },
  ],
};

const link = (name, size, wraps, bytes_per_s_per_chip, busy_frac, ...flows) => ({
  link: name,
  size,
  wraps,
  bytes_per_s_per_chip,
  bytes_per_chip: flows.reduce((all, flow) => all + flow.bytes_per_chip, 0),
  busy_frac,
  flows,
});
const factor = (name, size, wraps) => ({ link: name, size, whole: size, stride: 1, wraps });

const links = {
  dims: [4, 4, 4],
  devices_per_chip: 2,
  slices: 1,
  axes: [
    { axis: 'fsdp', size: 64, factors: [factor('x', 4, true), factor('y', 4, true), factor('z', 4, true)] },
    { axis: 'context', size: 2, factors: [factor('core', 2, false)] },
  ],
  links: [
    ...['x', 'y', 'z'].map((name) =>
      link(
        name,
        4,
        true,
        1.8e11,
        0.15,
        { term: 'fsdp_all_gather', bytes_per_chip: 1e11 },
        { term: 'grad_reduce_scatter', bytes_per_chip: 8e10 },
      ),
    ),
    link('core', 2, false, 6e11, 0.05, { term: 'context_all_gather', bytes_per_chip: 2e11 }),
    link('pcie', 1, false, 3.2e10, 0),
  ],
};

const point = (value, scale, broken_rule = null) => ({
  value,
  broken_rule,
  fit_verdict: scale > 1.1 ? 'tight' : 'fits',
  bound: scale > 1.2 ? 'dcn' : 'mxu',
  step_time_s: 6.8 * scale,
  mfu_frac: 0.4 / scale,
  tokens_per_s_per_chip: 2048 / scale,
  tokens_per_step: 2097152 * value,
  hbm_bytes_per_device: 7e10,
  usd_per_billion_tokens: null,
});

const scaling = [
  { scale: 'slices', value: 1, points: [point(1, 1), point(2, 1.15), point(4, 1.25)] },
  {
    scale: 'per_device_batch_size',
    value: 2,
    points: [point(1, 1.02), point(2, 1), point(3, 1, 'the batch has to divide')],
  },
];

// The members of an estimate that `include` asks for.
export function pictures(include = []) {
  const members = { timeline, roofline, links, scaling };
  return Object.fromEntries(include.map((name) => [name, members[name]]));
}

const CHIP = {
  hbm_bytes_per_s_per_chip: 7.38e12,
  hbm_usable_bytes_per_device: 94.7 * 1024 ** 3,
  ici_link_bytes_per_s: 9e10,
  ici_link_achieved_bytes_per_s: 8.1e10,
  peak_bf16_flops_per_s_per_chip: 2.307e15,
  pcie_bytes_per_s_per_chip: 3.2e10,
  dcn_bytes_per_s_per_chip: 1.25e10,
};

// A chip's catalog entry, as far as pictures read it; fields bear their source.
export function chipFields(name) {
  const fields = Object.entries(CHIP).map(([key, value]) => [key, { value, source: 'made up' }]);
  return { name, ...Object.fromEntries(fields) };
}
