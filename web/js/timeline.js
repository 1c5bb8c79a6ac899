// The picture of a simulated kernel: what each grid step moves and computes, a lane for each unit, a window of steps at a time.

import { announce, h, svg, table } from './dom.js';
import { count, percent, plural, secondsLike } from './format.js';

const LANE = 20;
const FIRST_WINDOW = 12;
const WIDEST = 128; // steps drawn at once; more are thinner than a pixel
export const LANES = [
  ['dma_in', 'DMA in'],
  ['mxu', 'MXU'],
  ['vector', 'Vector'],
  ['dma_out', 'DMA out'],
];

// Share of the kernel in which each unit is busy, the steps left out of the list included; null where that is unknown.
export function busyShares({ steps, omitted, end_us: end }) {
  const of = (lane) => {
    const listed = steps.reduce((all, step) => all + (step[lane] ? step[lane][1] - step[lane][0] : 0), 0);
    const rest = omitted?.count > 0 ? omitted[`${lane}_us`] : 0;
    return end > 0 && Number.isFinite(rest) ? Math.min(1, (listed + rest) / end) : null;
  };
  return Object.fromEntries(LANES.map(([lane]) => [lane, of(lane)]));
}

// The window after a move, kept inside the list: {first, size}.
export function moved({ first, size }, move, total) {
  const moves = {
    start: [0, size],
    earlier: [first - size, size],
    later: [first + size, size],
    fewer: [first, Math.ceil(size / 2)],
    more: [first, size * 2],
  };
  const [wanted, wide] = moves[move];
  const width = Math.max(1, Math.min(wide, WIDEST, total));
  return { first: Math.max(0, Math.min(wanted, total - width)), size: width };
}

function where(step) {
  return Object.entries(step.at ?? {})
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
    .join(', ');
}

const range = (span, end) => (span ? `${us(span[0], end)} to ${us(span[1], end)}` : 'nothing');
const us = (value, reference) => secondsLike(value * 1e-6, reference * 1e-6);

function lane(title, share, spans) {
  return h(
    'div',
    { class: 'lane' },
    h('span', null, title, ' ', share === null ? null : h('span', { class: 'second' }, `${percent(share, 0)}`)),
    svg(
      'svg',
      { height: LANE, 'aria-hidden': 'true', focusable: 'false' },
      svg('rect', { class: 'track', x: 0, y: 0, width: '100%', height: LANE }),
      ...spans,
    ),
  );
}

// The whole kernel as a thin bar, and which part of it the window shows.
function overview(end, from, to) {
  const percentOf = (value) => `${Math.max(0.3, (100 * value) / (end || 1)).toFixed(2)}%`;
  const x = `${((100 * from) / (end || 1)).toFixed(2)}%`;
  const part = svg('rect', { class: 'window', x, width: percentOf(to - from), y: LANE / 2 - 3, height: 6 });
  return h(
    'div',
    { class: 'lane' },
    h('span', null, 'Whole kernel'),
    svg(
      'svg',
      { height: LANE, 'aria-hidden': 'true', focusable: 'false' },
      svg('rect', { class: 'track', x: 0, y: LANE / 2 - 3, width: '100%', height: 6 }),
      part,
    ),
  );
}

function lanesOf(timeline, shares, shown, from, to) {
  const x = (value) => `${((100 * (value - from)) / (to - from || 1)).toFixed(3)}%`;
  const wide = (start, end) => `${Math.max(0.05, (100 * (end - start)) / (to - from || 1)).toFixed(3)}%`;
  const bar = (kind, start, end, title) =>
    svg(
      'rect',
      { class: kind, x: x(start), width: wide(start, end), y: 2, height: LANE - 4 },
      svg('title', null, title),
    );
  const steps = shown.map(({ step, index }) => {
    const title = `step ${index + 1}: ${where(step)}, ${us(step.start_us, to)} to ${us(step.end_us, to)}`;
    const named = (step.end_us - step.start_us) / (to - from || 1) > 0.04;
    const middle = x((step.start_us + step.end_us) / 2);
    return [
      bar(`gap ${index % 2 ? 'step-odd' : 'step-even'}`, step.start_us, step.end_us, title),
      named ? svg('text', { class: 'step-name', x: middle, y: LANE / 2 + 4 }, index + 1) : null,
    ];
  });
  return [
    overview(timeline.end_us, from, to),
    lane('Grid step', null, steps.flat()),
    ...LANES.map(([name, title]) =>
      lane(
        title,
        shares[name],
        shown
          .filter(({ step }) => step[name])
          .map(({ step, index }) =>
            bar(`lane-${name}`, ...step[name], `step ${index + 1}, ${title}: ${range(step[name], to)}`),
          ),
      ),
    ),
  ];
}

function axis(from, to) {
  const ends = [
    [from, 'start', '0%'],
    [(from + to) / 2, 'middle', '50%'],
    [to, 'end', '100%'],
  ];
  const texts = ends.map(([value, anchor, x]) =>
    svg('text', { class: 'axis', x, y: 12, 'text-anchor': anchor }, us(value, to)),
  );
  return h('div', { class: 'lane' }, h('span'), svg('svg', { height: 16, 'aria-hidden': 'true' }, ...texts));
}

function stepsTable(shown, to) {
  const long = (span) => (span ? us(span[1] - span[0], to) : '–');
  return table(
    'Steps in the picture',
    [
      { title: 'Step', number: true },
      { title: 'At' },
      { title: 'Starts', number: true },
      { title: 'Takes', number: true },
      ...LANES.map(([, title]) => ({ title, number: true })),
    ],
    shown.map(({ step, index }) => [
      count(index + 1),
      where(step) || '–',
      us(step.start_us, to),
      us(step.end_us - step.start_us, to),
      ...LANES.map(([name]) => long(step[name])),
    ]),
  );
}

function note(timeline) {
  const said = ['Beside each unit: the share of the kernel in which it is busy.'];
  const { omitted, outside_kernel: outside } = timeline;
  if (!timeline.walked)
    said.push(
      timeline.why_not_walked
        ? `Not every step is here: ${timeline.why_not_walked}.`
        : 'The grid of this kernel is not walked step by step; the picture is one step as long as the kernel.',
    );
  if (timeline.representative_groups) said.push('Group sizes were made up from their distribution.');
  if (omitted?.count > 0) said.push(`${plural(omitted.count, 'later step is', 'later steps are')} not listed.`);
  for (const part of outside ?? [])
    said.push(`Outside the kernel: ${part.name.replaceAll('_', ' ')}, ${us(part.us, part.us)}.`);
  return said.length ? h('p', { class: 'soft' }, said.join(' ')) : null;
}

// actions: buttons beside the title.
export function timelinePanel(timeline, actions = []) {
  const { steps } = timeline;
  const total = steps.length;
  if (!total) return null;
  const shares = busyShares(timeline);
  const picture = h('div', { class: 'chart lanes', role: 'img' });
  const list = h('div');
  const position = h('span', { class: 'soft nowrap' });
  let view = moved({ first: 0, size: FIRST_WINDOW }, 'start', total);

  const draw = () => {
    const shown = steps.slice(view.first, view.first + view.size).map((step, i) => ({ step, index: view.first + i }));
    const from = shown[0].step.start_us;
    const to = Math.max(...shown.map(({ step }) => step.end_us));
    const said = `Steps ${count(view.first + 1)} to ${count(view.first + view.size)} of ${count(total + (timeline.omitted?.count ?? 0))}`;
    picture.replaceChildren(...lanesOf(timeline, shares, shown, from, to), axis(from, to));
    picture.setAttribute(
      'aria-label',
      `${said}, ${us(from, to)} to ${us(to, to)}; the values are in the table of steps.`,
    );
    list.replaceChildren(stepsTable(shown, to));
    position.textContent = total > 1 ? said : '';
    return said;
  };
  const mover = (move, text) => {
    const button = h('button', { type: 'button', class: 'small' }, text);
    button.addEventListener('click', () => {
      view = moved(view, move, total);
      announce(draw());
    });
    return button;
  };
  const movers = [
    mover('start', 'First'),
    mover('earlier', 'Earlier'),
    mover('later', 'Later'),
    mover('fewer', 'Fewer steps'),
    mover('more', 'More steps'),
  ];
  draw();
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h3', null, 'Timeline'),
      position,
      h('p', { class: 'actions' }, total > 1 ? movers : null, actions),
    ),
    picture,
    note(timeline),
    h('details', null, h('summary', null, 'These steps as a table'), list),
  );
}
