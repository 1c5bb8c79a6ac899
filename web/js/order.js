// The order of the plans by one rule that the reader sees and can change, what each is best at, and why it stands there. Pure.

import { gib, percent, seconds, secondsLike, signedPercent, words } from './format.js';

const perToken = ({ estimate }) => estimate.step_time_s / (estimate.tokens_per_step || 1);
const slowEnd = ({ estimate }) => (estimate.step_time_high_s ?? estimate.step_time_s) / (estimate.tokens_per_step || 1);

// value(plan): the smaller the better.
export const ORDERS = [
  { id: 'time', title: 'predicted time per token', value: perToken },
  { id: 'slow', title: 'slow end of the 90 % interval', value: slowEnd },
  { id: 'hbm', title: 'HBM per device', value: ({ estimate }) => estimate.hbm_bytes_per_device },
  { id: 'certain', title: 'certainty to fit', value: ({ estimate }) => -(estimate.fit_probability ?? 0) },
  { id: 'advised', title: 'advised order (plan number)', value: ({ rank }) => rank },
];

// The rule to begin with: what was asked for.
export function firstOrder(objective) {
  return { hbm: 'hbm', usd_per_token: 'time' }[objective] ?? 'time';
}

export function ordered(plans, id) {
  const { value } = ORDERS.find((order) => order.id === id) ?? ORDERS[0];
  return [...plans].sort((a, b) => value(a) - value(b) || a.rank - b.rank);
}

// Mesh axes in use, tensor parallelism counted twice, and one more each where gradients are accumulated and where tensors
// live on the host.
export function complexity({ estimate, config }) {
  const axes = (estimate.mesh ?? []).filter((axis) => axis.size > 1);
  return (
    axes.length +
    axes.filter((axis) => /^tensor/.test(axis.axis)).length +
    (Number(config?.gradient_accumulation_steps ?? 1) > 1 ? 1 : 0) +
    (estimate.host_bytes_per_host > 0 ? 1 : 0)
  );
}

function least(plans, ...values) {
  return [...plans].sort((a, b) => values.reduce((all, value) => all || value(a) - value(b), 0))[0];
}

// Map of plan -> ["advised", "fastest", …].
export function marksOf(plans) {
  const marks = new Map(plans.map((plan) => [plan, []]));
  if (!plans.length) return marks;
  marks.get(plans.find((plan) => plan.rank === 1) ?? plans[0]).push('advised');
  if (plans.length < 2) return marks;
  marks.get(least(plans, perToken)).push('fastest');
  marks.get(least(plans, complexity, perToken)).push('simplest');
  marks.get(least(plans, (plan) => -(plan.estimate.fit_probability ?? 0), (plan) => plan.estimate.hbm_bytes_per_device)).push('safest');
  return marks;
}

// The one or two exposed parts that make most of the difference to the advised plan, at its number of tokens.
function reasons(plan, advised) {
  const scale = (advised.estimate.tokens_per_step || 1) / (plan.estimate.tokens_per_step || 1);
  const moved = new Map();
  for (const part of plan.estimate.time_parts ?? [])
    moved.set(part.name, (moved.get(part.name) ?? 0) + part.exposed_seconds * scale);
  for (const part of advised.estimate.time_parts ?? [])
    moved.set(part.name, (moved.get(part.name) ?? 0) - part.exposed_seconds);
  const change = perToken(plan) - perToken(advised);
  const step = advised.estimate.step_time_s;
  return [...moved]
    .filter(([, delta]) => Math.sign(delta) === Math.sign(change) && Math.abs(delta) > 0.0005 * step)
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
    .slice(0, 2)
    .map(([name, delta]) => `${words(name)} ${delta > 0 ? '+' : '−'}${secondsLike(Math.abs(delta), step).replace(' ', '\u00a0')}`);
}

function whyAdvised(advised, plans, tieFrac) {
  const others = plans.filter((plan) => plan !== advised);
  if (!others.length) return '';
  const best = least(plans, slowEnd);
  const end = seconds(advised.estimate.step_time_high_s);
  if (best === advised) return `its slow end, ${end}, is the earliest of all`;
  return `its slow end is within ${percent(tieFrac, 0)} of plan ${best.rank}’s, and it is simpler`;
}

// One clause about a plan: why it is advised, or what it takes more or less than the advised one and where.
export function clauseOf(plan, plans, tieFrac) {
  const advised = plans.find((other) => other.rank === 1) ?? plans[0];
  if (!advised || !Number.isFinite(perToken(plan))) return '';
  if (plan === advised) return whyAdvised(advised, plans, tieFrac);
  const change = perToken(plan) / perToken(advised) - 1;
  const parts = reasons(plan, advised);
  const where = parts.length ? `: ${parts.join(', ')}` : '';
  const end = slowEnd(plan) / slowEnd(advised) - 1;
  const isTied = plan.tie_group && plan.tie_group === advised.tie_group;
  const tail = isTied
    ? `; slow end ${signedPercent(end)}, a tie`
    : change < 0
      ? `; but its slow end is ${signedPercent(end)}`
      : '';
  const saved = advised.estimate.hbm_bytes_per_device - plan.estimate.hbm_bytes_per_device;
  const room = saved > 0.02 * advised.estimate.hbm_bytes_per_device ? `; ${gib(saved)} less memory` : '';
  return `${signedPercent(change).replace('-', '−')} a token against plan ${advised.rank}${where}${tail}${room}`;
}
