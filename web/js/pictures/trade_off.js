// Step time against memory: all plans that the search priced as a cloud, the front as a line, the ranked plans as marks to choose.

import { brush, line, max, min, scaleLinear, scaleLog, scaleSqrt } from 'd3';
import { h, table } from '../dom.js';
import { count, gib, seconds, signedPercent } from '../format.js';
import { meshOfPlan } from '../plan_text.js';
import { apart } from './apart.js';
import { bottomAxis, leftAxis } from './axes.js';
import { frame, freshId, legend, valuesTable } from './frame.js';

const GIB = 1024 ** 3;
const MARK = 9; // radius of a plan's mark, px
const MARGIN = { top: 20, right: 14, bottom: 42, left: 52 };

const estimateOf = (plan) => plan.estimate ?? plan;
const timeOf = (plan) => estimateOf(plan).step_time_s;
const bytesOf = (plan) => estimateOf(plan).hbm_bytes_per_device;

function cellsOf(cloud) {
  if (!cloud?.cells) return [];
  const { step_time_first_s: first, step_time_ratio: ratio, hbm_bytes_per_bin: bin } = cloud;
  return cloud.cells.map(([t, b, plans]) => ({
    low: first * ratio ** t,
    high: first * ratio ** (t + 1),
    from: bin * b,
    to: bin * (b + 1),
    plans,
  }));
}

// The part shown at first: around the plans that are ranked or on the front, and up to the limit and a little beyond.
function startView(points, limit) {
  const times = points.map(timeOf);
  const bytes = points.map(bytesOf);
  const most = Math.max(max(times) * 1.12, min(times) * 1.6);
  return { x: [Math.max(0, min(bytes) * 0.8), Math.max(limit * 1.12, max(bytes) * 1.05)], y: [min(times) * 0.94, most] };
}

function wholeView(points, cells, limit) {
  const seen = cells.length ? cells : [{ low: min(points, timeOf), high: max(points, timeOf), to: limit }];
  return {
    x: [0, Math.max(limit * 1.12, max(seen, (cell) => cell.to))],
    y: [Math.min(min(seen, (cell) => cell.low), min(points, timeOf) * 0.94), max(seen, (cell) => cell.high)],
  };
}

// "13.4 s (+2.1 %), 61.2 GiB (-8.0 GiB)": what a plan has more or less than the chosen one.
function against(plan, chosen) {
  if (!(timeOf(chosen ?? {}) > 0) || plan === chosen) return `${seconds(timeOf(plan))}, ${gib(bytesOf(plan))}`;
  const more = bytesOf(plan) - bytesOf(chosen);
  return `${seconds(timeOf(plan))} (${signedPercent(timeOf(plan) / timeOf(chosen) - 1)}), ${gib(bytesOf(plan))} (${more > 0 ? '+' : '−'}${gib(Math.abs(more))})`;
}

function nameOf(plan) {
  if (plan.rank === 'mine') return plan.isScaled ? 'My configuration, for as many tokens' : 'My configuration';
  return plan.rank ? `Plan ${plan.rank}` : 'On the front';
}

// The reader's configuration at the plans' batch: its step for as many tokens as theirs, so that a smaller batch does not look
// faster. As it is where the plans' own batches differ. Pure.
export function forTokensOf(ranked, baseline) {
  const [tokens, ...others] = new Set(ranked.map((plan) => plan.estimate?.tokens_per_step));
  const own = baseline?.estimate?.tokens_per_step;
  if (others.length || !(tokens > 0) || !(own > 0) || own === tokens) return baseline;
  const estimate = { ...baseline.estimate, step_time_s: baseline.estimate.step_time_s * (tokens / own) };
  return { ...baseline, estimate, isScaled: true };
}

// Numbered marks beside each other; where one had to move, a line leads to its place. marks: [{plan, x, y, to: {x, y, isFixed}}].
function drawMarks(inside, marks, current) {
  const moved = marks.filter(({ to }) => !to.isFixed);
  const className = ({ rank }) => `plan-mark${rank === current?.rank ? ' chosen' : ''}${rank === 'mine' ? ' mine' : ''}`;
  inside
    .selectAll('.plan-leader')
    .data(moved)
    .join('line')
    .attr('class', 'plan-leader')
    .attr('x1', ({ x }) => x)
    .attr('y1', ({ y }) => y)
    .attr('x2', ({ to }) => to.x)
    .attr('y2', ({ to }) => to.y);
  inside.selectAll('.plan-dot').data(moved).join('circle').attr('class', 'plan-dot').attr('r', 3).attr('cx', ({ x }) => x).attr('cy', ({ y }) => y);
  const group = inside
    .selectAll('.plan-mark')
    .data([...marks].reverse())
    .join('g')
    .attr('class', ({ plan }) => className(plan))
    .attr('transform', ({ to }) => `translate(${to.x},${to.y})`);
  group.append('circle').attr('r', MARK);
  group.append('text').attr('dy', '0.35em').attr('text-anchor', 'middle').text(({ plan }) => (plan.rank === 'mine' ? '★' : plan.rank));
}

// input: {ranked, pareto, baseline?, cloud?, memoryFrac?, chosen(): the chosen plan, choose(rank)}
export function show({ ranked, pareto, baseline, cloud, memoryFrac = 1, chosen, choose }) {
  const known = (plan) => [timeOf(plan), bytesOf(plan)].every((value) => value > 0);
  const isRanked = (plan) => ranked.some((other) => timeOf(other) === timeOf(plan) && bytesOf(other) === bytesOf(plan));
  const front = (pareto ?? []).filter(known);
  const mine = forTokensOf(ranked, baseline);
  const marks = [...ranked, ...(mine ? [mine] : [])].filter(known);
  const points = [...marks, ...front];
  const cells = cellsOf(cloud);
  const limit = points.map((plan) => estimateOf(plan).hbm_limit_bytes_per_device).find((bytes) => bytes > 0);
  if (points.length < 2 || !limit) return null;
  const start = startView(points, limit);
  let view = start;
  const clip = freshId('clip');

  const draw = ({ svg, width, height }) => {
    const inner = { x0: MARGIN.left, x1: width - MARGIN.right, y0: MARGIN.top, y1: height - MARGIN.bottom };
    const x = scaleLinear(view.x.map((bytes) => bytes / GIB), [inner.x0, inner.x1]);
    const y = scaleLog(view.y, [inner.y1, inner.y0]);
    const px = (bytes) => x(bytes / GIB);
    const yTicks = scaleLinear(view.y, [0, 1]).ticks(6);
    svg.append('clipPath').attr('id', clip).append('rect').attr('x', inner.x0).attr('y', inner.y0).attr('width', inner.x1 - inner.x0).attr('height', inner.y1 - inner.y0);
    leftAxis(svg, y, { x: inner.x0, ticks: yTicks, format: (value) => String(+value.toPrecision(4)), title: 'step time, s', grid: inner.x1 - inner.x0 });
    bottomAxis(svg, x, { y: inner.y1, ticks: width < 500 ? 4 : 8, title: 'HBM per device, GiB', x1: inner.x1 });
    const inside = svg.append('g').attr('clip-path', `url(#${clip})`);

    const zone = (from, to, name) =>
      inside.append('rect').attr('class', name).attr('x', px(from)).attr('width', Math.max(0, px(to) - px(from))).attr('y', inner.y0).attr('height', inner.y1 - inner.y0);
    zone(memoryFrac * limit, limit, 'zone-tight');
    zone(limit, Math.max(view.x[1], limit), 'zone-over');
    const visible = cells.filter((cell) => cell.high > view.y[0] && cell.low < view.y[1] && cell.to > view.x[0] && cell.from < view.x[1]);
    const strength = scaleSqrt([0, max(visible, (cell) => cell.plans) ?? 1], [0.12, 0.85]);
    inside
      .selectAll('.cell')
      .data(visible)
      .join('rect')
      .attr('class', 'cell')
      .attr('x', (cell) => px(cell.from))
      .attr('width', (cell) => Math.max(1, px(cell.to) - px(cell.from)))
      .attr('y', (cell) => y(cell.high))
      .attr('height', (cell) => Math.max(1, y(cell.low) - y(cell.high)))
      .attr('fill-opacity', (cell) => strength(cell.plans));
    inside.append('line').attr('class', 'limit').attr('x1', px(limit)).attr('x2', px(limit)).attr('y1', inner.y0).attr('y2', inner.y1);
    if (px(limit) < inner.x1) svg.append('text').attr('class', 'limit-name').attr('x', px(limit)).attr('y', inner.y0 - 6).attr('text-anchor', 'end').text(`limit ${gib(limit)}`);
    inside.append('path').attr('class', 'front').attr('d', line((plan) => px(bytesOf(plan)), (plan) => y(timeOf(plan)))([...front].sort((a, b) => timeOf(a) - timeOf(b))));
    inside.selectAll('.front-dot').data(front.filter((plan) => !isRanked(plan))).join('circle').attr('class', 'front-dot').attr('r', 3.5).attr('cx', (plan) => px(bytesOf(plan))).attr('cy', (plan) => y(timeOf(plan)));

    const within = (item) => item.x >= inner.x0 && item.x <= inner.x1 && item.y >= inner.y0 && item.y <= inner.y1;
    const current = marks.find((plan) => plan.rank === chosen()?.rank);
    const seen = marks.map((plan) => ({ plan, x: px(bytesOf(plan)), y: y(timeOf(plan)) })).filter(within);
    const places = apart(seen, { radius: MARK + 1, box: inner });
    drawMarks(inside, seen.map((mark, index) => ({ ...mark, to: places[index] })), current);

    const zoom = brush().touchable(false).extent([[inner.x0, inner.y0], [inner.x1, inner.y1]]).on('end', ({ selection }) => {
      if (!selection) return;
      const [[left, top], [right, bottom]] = selection;
      if (right - left < 8 || bottom - top < 8) return;
      view = { x: [x.invert(left) * GIB, x.invert(right) * GIB], y: [y.invert(bottom), y.invert(top)] };
      picture.redraw();
    });
    svg.insert('g', 'g').attr('class', 'brush').call(zoom);

    const itemOf = (plan, { x: left, y: top }) => ({
      x: left,
      y: top,
      text: `${nameOf(plan)}: ${meshOfPlan(plan)}, ${against(plan, current)}${plan.rank && plan.rank !== current?.rank ? '. Click or Enter chooses it.' : ''}`,
      select: plan.rank ? () => { choose(plan.rank); picture.redraw(); } : undefined,
    });
    const dots = front.filter((plan) => !isRanked(plan)).map((plan) => itemOf(plan, { x: px(bytesOf(plan)), y: y(timeOf(plan)) }));
    const items = [...seen.map(({ plan }, index) => itemOf(plan, places[index])), ...dots.filter(within)];
    const others = visible.map((cell) => ({
      x: px((cell.from + cell.to) / 2),
      y: y(Math.sqrt(cell.low * cell.high)),
      box: [px(cell.from), y(cell.high), px(cell.to), y(cell.low)],
      text: `${count(cell.plans)} ${cell.plans === 1 ? 'plan' : 'plans'} priced at ${seconds(cell.low)} to ${seconds(cell.high)}, ${gib(cell.from)} to ${gib(cell.to)}`,
    }));
    return Object.assign(items, { others: others.filter(within) });
  };

  const look = (text, next) => {
    const button = h('button', { type: 'button', class: 'small' }, text);
    button.addEventListener('click', () => {
      view = next();
      picture.redraw();
    });
    return button;
  };
  const rows = points
    .filter((plan, index) => index < marks.length || !isRanked(plan))
    .sort((a, b) => timeOf(a) - timeOf(b))
    .map((plan) => [h('span', { class: 'nowrap' }, nameOf(plan)), meshOfPlan(plan), seconds(timeOf(plan)), gib(bytesOf(plan))]);
  const picture = frame({
    label: `Step time against memory of ${points.length} plans${cloud ? `, and of ${count(cloud.evaluated)} that were priced` : ''}.`,
    height: (width) => Math.min(380, Math.max(280, width * 0.5)),
    hint: 'Point at a plan to compare it with the chosen one, click it to choose it, drag to zoom.',
    draw,
    more: [
      h('p', { class: 'actions' }, look('Ranked plans', () => start), look('All priced plans', () => wholeView(points, cells, limit))),
      legend({ 'swatch-plan': 'ranked plan', ...(mine ? { 'swatch-mine': `★ my configuration${mine.isScaled ? ', its time for as many tokens as a step of the plans' : ''}` } : {}), 'swatch-front': 'front: no plan is faster and smaller', ...(cells.length ? { 'swatch-cell': `${count(cloud.evaluated)} plans priced, darker: more of them` } : {}), 'swatch-tight': 'tight', 'swatch-over': 'over the limit' }),
      valuesTable(table('Step time and memory of the plans', [{ title: 'Plan' }, { title: 'Mesh' }, { title: 'Step time', number: true }, { title: 'HBM per device', number: true }], rows)),
    ],
  });
  return picture.place;
}
