// The data of a plan's pictures: the plan estimated once more, with members that answers have on request only.

import { post } from '../api.js';

const known = new WeakMap();

export const INCLUDE = ['timeline', 'roofline', 'links', 'scaling'];

// An estimate request for the plan. plan.job: {model, cluster, project?, software?}; a project may have a calibration in force.
export function requestOf(plan, changes = {}) {
  return { ...plan.job, config: plan.config, xla_flags: plan.xla_flags ?? [], ...changes };
}

// One request for all pictures of a plan.
export function planData(plan) {
  if (!known.has(plan)) {
    const asked = post('/v1/estimate', requestOf(plan, { include: INCLUDE }));
    asked.catch(() => known.delete(plan));
    known.set(plan, asked);
  }
  return known.get(plan);
}
