// The order of the plans by one rule that the reader sees and can change, what each is best at, and why it stands there. Pure.

import { gib, percent, probability, seconds, secondsLike, signedPercent, words } from './format.js';
import { axesAcross } from './plan_text.js';

const perToken = ({ estimate }) => estimate.step_time_s / (estimate.tokens_per_step || 1);
const slowEnd = ({ estimate }) => (estimate.step_time_high_s ?? estimate.step_time_s) / (estimate.tokens_per_step || 1);

const doubt = ({ estimate }) => (estimate.step_time_high_s ?? estimate.step_time_s) / estimate.step_time_s - 1;

const certainty = ({ estimate }) => estimate.fit_probability ?? 0;
const memory = ({ estimate }) => estimate.hbm_bytes_per_device;

// What plan numbers go by, and in which plans can be tied; text: how the value of a plan is told.
const BY_TIME = { value: perToken, name: 'predicted time', text: ({ estimate }) => seconds(estimate.step_time_s) };
const BY_MEMORY = { value: memory, name: 'memory', text: ({ estimate }) => gib(estimate.hbm_bytes_per_device) };
const BY_SLOW_END = { value: slowEnd, name: 'slow end', text: ({ estimate }) => seconds(estimate.step_time_high_s) };
const ruleOf = (search) => ({ hbm: BY_MEMORY, step_time_high: BY_SLOW_END })[search?.objective] ?? BY_TIME;
const ADVISED_BY = new Map([
  [BY_TIME, 'the predicted time of a token'],
  [BY_SLOW_END, 'the slow end of the 90 % interval, as was asked for'],
  [BY_MEMORY, 'the memory of a device, which was asked to be least'],
]);

// The same in a sentence.
export const advisedBy = (search) => ADVISED_BY.get(ruleOf(search)) + (search?.objective === 'usd_per_token' ? ', in which its cost on one machine lies' : '');

// value(plan): the smaller the better; end: which come first, in words.
export const ORDERS = [
  { id: 'time', title: 'predicted time per token', end: 'least first', value: perToken },
  { id: 'slow', title: 'slow end of the 90 % interval', end: 'least first', value: slowEnd },
  { id: 'hbm', title: 'HBM per device', end: 'least first', value: memory },
  { id: 'certain', title: 'certainty to fit', end: 'most first', value: (plan) => -certainty(plan) },
  { id: 'advised', title: 'advised order (plan number)', end: 'least first', value: ({ rank }) => rank },
];

// The rule to begin with: what was asked for.
export function firstOrder(objective) {
  return { hbm: 'hbm', step_time_high: 'slow' }[objective] ?? 'time';
}

export function ordered(plans, id) {
  const { value } = ORDERS.find((order) => order.id === id) ?? ORDERS[0];
  return [...plans].sort((a, b) => value(a) - value(b) || a.rank - b.rank);
}

// Mesh axes in use, within slices and across, tensor parallelism counted twice, and one more each where gradients are accumulated
// and where tensors live on the host.
export function complexity({ estimate, config, cluster }) {
  const axes = [...(estimate.mesh ?? []).filter((axis) => axis.size > 1), ...axesAcross(config, cluster?.slices)];
  return (
    axes.length +
    axes.filter((axis) => /^(dcn )?tensor/.test(axis.axis)).length +
    (Number(config?.gradient_accumulation_steps ?? 1) > 1 ? 1 : 0) +
    (estimate.host_bytes_per_host > 0 ? 1 : 0)
  );
}

function least(plans, ...values) {
  return [...plans].sort((a, b) => values.reduce((all, value) => all || value(a) - value(b), 0))[0];
}

// Map of plan -> ["advised", "fastest", …]. Of plans alike in complexity the engine, which also counts settings, put the simpler first.
export function marksOf(plans) {
  const marks = new Map(plans.map((plan) => [plan, []]));
  if (!plans.length) return marks;
  marks.get(plans.find((plan) => plan.rank === 1) ?? plans[0]).push('advised');
  if (plans.length < 2) return marks;
  marks.get(least(plans, perToken)).push('fastest');
  marks.get(least(plans, complexity, ({ rank }) => rank)).push('simplest');
  marks.get(least(plans, (plan) => -certainty(plan), memory)).push('safest');
  return marks;
}

// The exposed part that gains most on the advised plan and the one that loses most, at its number of tokens; where all move one way
// the two that move most.
function reasons(plan, advised) {
  const scale = (advised.estimate.tokens_per_step || 1) / (plan.estimate.tokens_per_step || 1);
  const moved = new Map();
  for (const part of plan.estimate.time_parts ?? [])
    moved.set(part.name, (moved.get(part.name) ?? 0) + part.exposed_seconds * scale);
  for (const part of advised.estimate.time_parts ?? [])
    moved.set(part.name, (moved.get(part.name) ?? 0) - part.exposed_seconds);
  const step = advised.estimate.step_time_s;
  const parts = [...moved].filter(([, delta]) => Math.abs(delta) > 0.0005 * step).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const [most, next] = parts;
  const other = parts.find(([, delta]) => Math.sign(delta) !== Math.sign(most[1])) ?? next;
  return [most, other]
    .filter(Boolean)
    .map(([name, delta]) => `${delta > 0 ? '+' : '−'}${secondsLike(Math.abs(delta), step).replace(' ', '\u00a0')} ${words(name)}`);
}

function whyAdvised(advised, plans, search) {
  if (plans.length < 2) return '';
  const { value, name, text } = ruleOf(search);
  const best = least(plans, value);
  if (!(value(best) < value(advised))) return `its ${name}, ${text(advised)}, is the least of all`;
  const tie = `its ${name} is within ${percent(search?.tie_frac, 0)} of plan ${best.rank}’s, and it`;
  if (best.config?.quantization && !advised.config?.quantization) return `${tie} is not quantised`;
  const sure = search?.tie_fit_probability;
  if (certainty(best) < sure && certainty(advised) >= sure)
    return `${tie} fits more surely (with ${probability(certainty(advised))} against ${probability(certainty(best))})`;
  return `${tie} is ${doubt(best) - doubt(advised) > 5e-4 ? 'surer' : 'simpler'}`;
}

// How it stands to the advised plan by the rule of the numbers, and whether it is the one that one can count on.
function tailOf(plan, advised, search) {
  const isTied = plan.tie_group && plan.tie_group === advised.tie_group;
  const { value, name } = ruleOf(search);
  if (value !== perToken) {
    const more = signedPercent(value(plan) / value(advised) - 1);
    if (isTied) return `; ${name} ${more}, a tie`;
    return perToken(plan) < perToken(advised) ? `; but its ${name} is ${more}` : '';
  }
  if (isTied) return '; a tie';
  return slowEnd(plan) < slowEnd(advised)
    ? `; but surer: at most ${seconds(plan.estimate.step_time_high_s)} against ${seconds(advised.estimate.step_time_high_s)}`
    : '';
}

// One clause about a plan: why it is advised, or what it takes more or less than the advised one and where.
export function clauseOf(plan, plans, search) {
  const advised = plans.find((other) => other.rank === 1) ?? plans[0];
  if (!advised || !Number.isFinite(perToken(plan))) return '';
  if (plan === advised) return whyAdvised(advised, plans, search);
  const change = perToken(plan) / perToken(advised) - 1;
  const parts = reasons(plan, advised);
  const where = parts.length ? `: ${parts.join(', ')}` : '';
  const tail = tailOf(plan, advised, search);
  const saved = advised.estimate.hbm_bytes_per_device - plan.estimate.hbm_bytes_per_device;
  const room = saved > 0.02 * advised.estimate.hbm_bytes_per_device ? `; ${gib(saved)} less memory` : '';
  return `${signedPercent(change).replace('-', '−')} a token against plan ${advised.rank}${where}${tail}${room}`;
}
