// Where a new sweep around a plan is begun: the address of its form, filled.

import { configToLines } from './config_text.js';

// plan: {config, xla_flags, cluster?}; request: what was asked. Null for a model that it does not name: the form has no place for it.
export function sweepAddress(plan, request) {
  if (typeof request.model !== 'string') return null;
  const { chip, topology, slices } = plan.cluster ?? request.cluster ?? {};
  const query = new URLSearchParams({
    model: request.model,
    chip: chip ?? '',
    topology: topology ?? '',
    slices: slices ?? 1,
    project: request.project ?? '',
    config: configToLines(plan.config),
    xla_flags: (plan.xla_flags ?? []).join('\n'),
    y: 'remat_policy=full, minimal, custom',
    x: 'per_device_batch_size=1, 2, 4',
  });
  return `#/sweeps?${query}`;
}
