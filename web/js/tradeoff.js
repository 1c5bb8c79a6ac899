// Step time against memory: a dot for each ranked plan and each plan of the front, so that one sees what memory buys.

import { h, table } from './dom.js';
import { gib, seconds, secondsLike } from './format.js';
import { meshOfPlan } from './plan_text.js';
import { scatter } from './scatter.js';

function estimateOf(plan) {
  return plan.estimate ?? plan;
}

// [{name, plan, time, bytes}] without doubles: a plan of the front that is ranked too appears as ranked.
export function pointsOf(ranked, pareto) {
  const point = (plan, name) => ({
    name,
    plan,
    time: estimateOf(plan).step_time_s,
    bytes: estimateOf(plan).hbm_bytes_per_device,
  });
  const points = ranked.map((plan) => point(plan, String(plan.rank)));
  for (const plan of pareto ?? []) {
    const candidate = point(plan, null);
    if (!points.some((known) => known.time === candidate.time && known.bytes === candidate.bytes))
      points.push(candidate);
  }
  return points.filter((candidate) => Number.isFinite(candidate.time) && Number.isFinite(candidate.bytes));
}

function chart(points) {
  return scatter({
    label: `Step time against memory of ${points.length} plans; the values are in the table.`,
    points: points.map((point) => ({
      x: point.bytes,
      y: point.time,
      name: point.name,
      class: point.name ? 'ranked-dot' : null,
      title: `${point.name ? `Plan ${point.name}: ` : ''}${seconds(point.time)}, ${gib(point.bytes)}`,
    })),
    xTitle: 'HBM per device',
    yTitle: 'step time',
    show: { x: gib, y: secondsLike },
  });
}

export function tradeoff(ranked, pareto) {
  const points = pointsOf(ranked, pareto);
  if (points.length < 2) return null;
  const rows = [...points]
    .sort((a, b) => a.time - b.time)
    .map((point) => [
      h('span', { class: 'nowrap' }, point.name ? `Plan ${point.name}` : 'front'),
      meshOfPlan(point.plan),
      seconds(point.time),
      gib(point.bytes),
    ]);
  return h(
    'details',
    { class: 'tradeoff' },
    h('summary', null, 'Step time against memory'),
    h(
      'div',
      { class: 'beside' },
      chart(points),
      table(
        'Step time and memory of the plans',
        [
          { title: 'Plan' },
          { title: 'Mesh' },
          { title: 'Step time', number: true },
          { title: 'HBM per device', number: true },
        ],
        rows,
      ),
    ),
  );
}
