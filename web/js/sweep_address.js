// Where a new sweep around a plan is begun: the address of its form, filled.

import { configToLines } from './config_text.js';

// plan: {config, xla_flags, cluster?}; request: what was asked, which names the model.
export function sweepAddress(plan, request) {
  const { chip, topology } = plan.cluster ?? request.cluster ?? {};
  const query = new URLSearchParams({
    model: typeof request.model === 'string' ? request.model : '',
    chip: chip ?? '',
    topology: topology ?? '',
    config: configToLines(plan.config),
    xla_flags: (plan.xla_flags ?? []).join('\n'),
    y: 'remat_policy=full, minimal, custom',
    x: 'per_device_batch_size=1, 2, 4',
  });
  return `#/sweeps?${query}`;
}
