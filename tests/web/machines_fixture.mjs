// Answers about several machines and about what would change a plan, for the stand-in daemon. The numbers are made up.

import { advice, estimate } from './fixture.mjs';

const cluster = (chip, topology, chips, price, slices = 1) => ({
  chip,
  topology,
  slices,
  chips,
  devices: chips,
  hosts: chips / 4,
  price_usd_per_chip_hour: price,
});

function best(scale) {
  const [plan] = advice(1).ranked;
  return { config: plan.config, xla_flags: plan.xla_flags, estimate: estimate(scale) };
}

// A whole training with failures, as the answer has it.
export const TRAINING = {
  ends: true,
  total_tokens: 1e12,
  steps: 476838,
  productive_days: 66.6,
  days: 68.4,
  days_low: 62.2,
  days_high: 74.9,
  usd: 525312,
  usd_low: 477696,
  usd_high: 575232,
  goodput_frac: 0.974,
  failures: 2.1,
  tokens_lost: 2.7e8,
  checkpoint_interval_s: 1531.6,
  checkpoint_interval_steps: 127,
  checkpoints: 3754,
  in_time: true,
  assumptions: [
    { name: 'failures_per_chip_day', value: 0.000473587, low: 0.00016, high: 0.0024, source: 'a published count' },
    { name: 'checkpoint_s', value: 0.41, low: 0.41, high: 0.41, source: 'the host link' },
    { name: 'restart_s', value: 60, low: 60, high: 60, source: 'the request' },
  ],
};

// Two predicted machines, one without a plan, one GPU.
export function machines() {
  const answer = advice(2);
  const cost = (days, usd, kwh) => ({ days_for_tokens: days, usd_for_tokens: usd, energy_kwh: kwh });
  answer.platforms = [
    {
      rank: 1,
      tie_group: 1,
      on_front: true,
      cluster: cluster('tpu7x', '4x4x4', 64, 12),
      best: best(1),
      ...cost(30.25, 1117698, 101058),
    },
    {
      rank: 2,
      tie_group: 2,
      on_front: false,
      cluster: cluster('v6e', '4x4', 32, null, 2),
      best: best(1.4),
      ...cost(45.5, null, null),
    },
    {
      rank: null,
      cluster: cluster('v5e', '2x2', 4, 1.2),
      best: null,
      reason: 'weights alone are 65.7 GiB on each device',
    },
    {
      rank: null,
      cluster: { chip: 'H100', chips: 128, price_usd_per_chip_hour: 4 },
      best: null,
      headline: {
        label: 'roofline at peak, not modelled',
        mfu_frac: 1,
        roofline_step_time_s: 3.25,
        ...cost(18, 2e6, 900),
      },
    },
  ];
  return answer;
}

const rate = (name, slower, faster) => ({
  rate: name,
  fields: [`${name}_per_chip`],
  change_frac: 0.1,
  slower_step_time_change_frac: slower,
  faster_step_time_change_frac: faster,
});

export const SENSITIVITIES = {
  step_time_s: 6.8,
  rates: [rate('dcn', 0, 0), rate('peak_flops', 0.09, -0.0665), rate('a_new_rate', 0.01, -0.008)],
  batch: [
    { per_device_batch_size: 0.5, broken_rule: 'batch-by-shards' },
    {
      per_device_batch_size: 3,
      step_time_s: 10.2,
      step_time_change_frac: 0.5,
      tokens_per_s_per_chip: 2060,
      hbm_bytes_per_device: 100 * 1024 ** 3,
      fit_verdict: 'does_not_fit',
    },
  ],
  break_evens: [
    {
      name: 'fsdp_hidden_per_device_batch',
      reached: true,
      value: 4,
      sentence: 'from 4 sequences on, FSDP is hidden',
    },
    { name: 'something_new', reached: false, value: null, sentence: 'not reached in range' },
  ],
};

export const CHIP = {
  name: 'tpu7x',
  title: 'TPU7x (Ironwood)',
  is_tpu: true,
  topologies: ['2x2x1'],
  clock_hz: {
    value: 1750000000,
    unit: 'Hz',
    source: 'computed',
    date: '2026',
    confidence: 'low',
    what: 'TensorCore clock',
    note: 'inferred',
  },
  power_watts_per_chip: { value: null, unit: 'W', source: 'none found', date: '2026', confidence: 'high' },
};
