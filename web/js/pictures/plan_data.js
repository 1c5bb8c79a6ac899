// The data of a plan's pictures: the plan estimated once more, with members that answers have on request only.

import { post } from '../api.js';
import { h } from '../dom.js';
import { gib, seconds } from '../format.js';

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

const SAME = 1e-3; // of a number: the rest is rounding

// Pictures are of an estimate of today. Where that is not the answer beside them, as of a run that another engine or calibration
// priced, this says so; null where both agree.
export async function otherToday(plan) {
  if (!plan?.job || !plan.estimate) return null;
  const now = await planData(plan);
  const isOther = (name) => Math.abs(now[name] / plan.estimate[name] - 1) > SAME;
  if (!['step_time_s', 'hbm_bytes_per_device'].some(isOther)) return null;
  const said = (estimate) => `${seconds(estimate.step_time_s)} and ${gib(estimate.hbm_bytes_per_device)}`;
  return h('p', null, `Drawn as the plan is estimated today: ${said(now)}, where the answer says ${said(plan.estimate)}. Engine or calibration are others by now.`);
}
