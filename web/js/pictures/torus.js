// The mesh on the torus: chips of one slice, which axis owns which links, and how busy each kind of link is.

import { scaleLinear } from 'd3';
import { h, table } from '../dom.js';
import { bandwidth, count, gib, ordinal, percent, words } from '../format.js';
import { bottomAxis, fitting } from './axes.js';
import { frame, resourceLegend, valuesTable } from './frame.js';
import { planData } from './plan_data.js';

const AXES = ['x', 'y', 'z'];
const NAMES = { x: 'x links', y: 'y links', z: 'z links', core: 'core pair (die to die)', dcn: 'DCN, between slices', pcie: 'PCIe, to the host' };
const resourceOf = ({ link }) => (link === 'dcn' || link === 'pcie' ? link : 'ici');
const MOST = 8; // chips drawn along an axis
const WIDEST = 720;

// Chips and links of the slice, as far as they are drawn. A link that closes a ring is `back`.
export function chipsOf(dims, wraps) {
  const shown = dims.map((size) => Math.min(size, MOST));
  const chips = [];
  const links = [];
  for (let z = 0; z < shown[2]; z++)
    for (let y = 0; y < shown[1]; y++)
      for (let x = 0; x < shown[0]; x++) {
        const chip = [x, y, z];
        chips.push(chip);
        AXES.forEach((axis, index) => {
          const next = [...chip];
          next[index]++;
          if (next[index] < shown[index]) links.push({ axis, from: chip, to: next });
          else if (wraps[index] && dims[index] > 2) links.push({ axis, from: chip, to: null, back: true });
        });
      }
  return { shown, chips, links };
}

// Which of the mesh's axes a link belongs to: the one whose factor spans it. Split axes have an inner part of neighbours.
export function ownerOf(axes, link, at) {
  const parts = axes.flatMap((axis) => axis.factors.filter((factor) => factor.link === link).map((factor) => ({ axis: axis.axis, ...factor })));
  if (parts.length <= 1) return parts[0]?.axis;
  const inner = [...parts].sort((a, b) => a.stride - b.stride);
  return (inner.find((part) => (at + 1) % (part.size * part.stride) !== 0) ?? inner[inner.length - 1]).axis;
}

const classOf = (axes, name) => `axis-${axes.findIndex((axis) => axis.axis === name) % 6}`;

// Which dimension is drawn across, down and into the page: the longest across, the shortest into the page.
export function orientation(dims) {
  const [across, down, deep] = [0, 1, 2].sort((a, b) => Math.min(dims[b], MOST) - Math.min(dims[a], MOST) || a - b);
  return { across, down, deep };
}

// Each column of chips into the page lies inside its cell of the other two, so that no chip hides another.
function project(dims, width) {
  const to = orientation(dims);
  const [wide, tall, deep] = [to.across, to.down, to.deep].map((index) => Math.min(dims[index], MOST));
  const unit = Math.max(26, Math.min(130, (width - 60) / (wide + 0.35), 460 / tall));
  const step = deep > 1 ? (unit * 0.72) / deep : 0;
  return {
    ...to,
    unit,
    step: step || unit,
    height: tall * unit + unit * 0.35 + 34,
    at: (chip) => [14 + chip[to.across] * unit + chip[to.deep] * step + unit * 0.08, 14 + chip[to.down] * unit + (deep - 1 - chip[to.deep]) * step + unit * 0.08],
  };
}

// The name and the size of each dimension, where its first row of chips ends.
function drawNames(svg, view, dims) {
  const last = dims.map((size) => Math.min(size, MOST) - 1);
  const place = (index, by) => {
    if (dims[index] < 2) return;
    const chip = [0, 0, 0];
    if (index !== view.deep) chip[view.deep] = 0;
    if (index === view.across) chip[view.down] = last[view.down];
    chip[index] = last[index];
    const [x, y] = view.at(chip);
    svg.append('text').attr('class', 'torus-axis').attr('x', x + by[0]).attr('y', y + by[1]).text(`${AXES[index]} ${dims[index]}`);
  };
  place(view.across, [view.unit * 0.36, 12]);
  place(view.down, [-10, view.unit * 0.36 + 8]);
  place(view.deep, [-4, -12]);
}

function drawTorus({ svg, width, links, axes, shownAxis }) {
  const wraps = AXES.map((axis) => links.links.find((link) => link.link === axis)?.wraps ?? false);
  const { chips, links: lines } = chipsOf(links.dims, wraps);
  const view = project(links.dims, Math.min(width, WIDEST));
  const cores = links.axes.find((axis) => axis.factors.some((factor) => factor.link === 'core'))?.axis;
  const faded = (name) => (shownAxis && name !== shownAxis ? ' faded' : '');
  const back = (from, axis) => {
    const [x, y] = view.at(from);
    const ahead = [...from];
    ahead[AXES.indexOf(axis)] += AXES.indexOf(axis) === view.deep ? 0.7 : 0.3;
    const [x1, y1] = view.at(ahead);
    return [x, y, x1, y1];
  };
  for (const line of lines) {
    const owner = ownerOf(axes, line.axis, line.from[AXES.indexOf(line.axis)]);
    const [x0, y0, x1, y1] = line.to ? [...view.at(line.from), ...view.at(line.to)] : back(line.from, line.axis);
    svg.append('line').attr('class', `link ${owner ? classOf(axes, owner) : 'unused'}${line.back ? ' back' : ''}${faded(owner)}`).attr('x1', x0).attr('y1', y0).attr('x2', x1).attr('y2', y1);
  }
  const radius = Math.max(2.5, Math.min(8, view.step / 3.4));
  svg.style('--link-width', `${Math.max(1, Math.min(3, view.step / 4))}px`);
  drawNames(svg, view, links.dims);
  return chips
    .sort((a, b) => b[view.deep] - a[view.deep])
    .map((chip) => {
      const [x, y] = view.at(chip);
      const pair = links.devices_per_chip > 1;
      const dots = pair ? [-radius * 0.62, radius * 0.62] : [0];
      if (pair) svg.append('line').attr('class', `core-link ${cores ? classOf(axes, cores) : 'unused'}${faded(cores)}`).attr('x1', x - radius).attr('x2', x + radius).attr('y1', y).attr('y2', y);
      for (const dot of dots) svg.append('circle').attr('class', 'chip').attr('cx', x + dot).attr('cy', y).attr('r', pair ? radius * 0.72 : radius);
      return { x, y, text: `Chip at x ${chip[0]}, y ${chip[1]}, z ${chip[2]}${pair ? `: ${links.devices_per_chip} devices${cores ? `, joined by ${cores}` : ''}` : ''}; ${links.links.map((link) => `${link.link} ${percent(link.busy_frac)}`).join(', ')} busy` };
    });
}

function drawUse({ svg, width, links, axes }) {
  const narrow = width < 480;
  const left = narrow ? 0 : 150;
  const row = narrow ? 40 : 28;
  const x = scaleLinear([0, 1], [left, width - 44]);
  const items = links.links.map((link, index) => {
    const y0 = index * row + (narrow ? 16 : 2);
    svg.append('text').attr('class', 'lane-name').attr('x', 0).attr('y', narrow ? y0 - 4 : y0 + 14).text(NAMES[link.link]);
    svg.append('rect').attr('class', 'track').attr('x', left).attr('width', x(1) - left).attr('y', y0).attr('height', 20);
    let at = 0;
    for (const flow of link.flows) {
      const part = ((link.busy_frac ?? 0) * flow.bytes_per_chip) / link.bytes_per_chip;
      const [x0, x1] = [x(at), x(at + part)];
      if (!(part >= 0)) continue;
      at += part;
      const colour = `res-${resourceOf(link)}`;
      svg.append('rect').attr('class', `block ${colour}`).attr('x', x0).attr('width', Math.max(0.5, x1 - x0 - 0.5)).attr('y', y0).attr('height', 20);
      svg.append('text').attr('class', 'block-name').attr('x', x0 + 4).attr('y', y0 + 14).text(fitting(words(flow.term), x1 - x0 - 6));
    }
    svg.append('text').attr('class', 'value').attr('x', width - 2).attr('y', y0 + 14).attr('text-anchor', 'end').text(percent(link.busy_frac));
    const sent = link.flows.map((flow) => `${words(flow.term)} ${gib(flow.bytes_per_chip)}`).join(', ');
    const owners = axes.filter((axis) => axis.factors.some((factor) => factor.link === link.link)).map((axis) => axis.axis);
    return {
      x: (left + x(1)) / 2,
      y: y0 + 10,
      box: [left, y0, x(1), y0 + 20],
      text: `${NAMES[link.link]}${owners.length ? ` (${owners.join(', ')})` : ''}: ${link.flows.length ? sent : 'nothing'} into a chip in a step, ${percent(link.busy_frac)} of ${bandwidth(link.bytes_per_s_per_chip)}`,
    };
  });
  bottomAxis(svg, scaleLinear([0, 100], x.range()), { y: links.links.length * row + 4, ticks: 5, title: 'busy, % of the step', x1: x(1) });
  return items;
}

function factorText(factor) {
  const part = factor.size === factor.whole ? factor.link : `${factor.link}: ${factor.size} of ${factor.whole}${factor.stride > 1 ? `, every ${ordinal(factor.stride)}` : ''}`;
  return factor.link === 'core' ? 'core pair' : `${part} (${factor.wraps ? 'ring' : 'line'})`;
}

export async function show(plan) {
  const { links } = await planData(plan);
  if (!links?.dims?.length || !links.dims.every((size) => size > 0)) return null;
  const { axes, dims } = links;
  let shownAxis = null;
  const torus = frame({
    label: `A slice of ${dims.join(' x ')} chips and its links, by the mesh axis that owns them.`,
    height: (width) => project(dims, Math.min(width, WIDEST)).height,
    hint: 'Point at a chip; stubs beyond the last chip close a ring.',
    draw: ({ svg, width }) => drawTorus({ svg, width, links, axes, shownAxis }),
  });
  const buttons = axes.map((axis, index) => {
    const button = h('button', { type: 'button', class: 'small axis-button', 'aria-pressed': 'false' }, h('span', { class: `swatch axis-${index % 6}` }), ` ${axis.axis} ${axis.size}: ${axis.factors.map(factorText).join(', ')}`);
    button.addEventListener('click', () => {
      shownAxis = shownAxis === axis.axis ? null : axis.axis;
      buttons.forEach((other, at) => other.setAttribute('aria-pressed', String(axes[at].axis === shownAxis)));
      torus.redraw();
    });
    return button;
  });
  const cut = dims.some((size) => size > MOST) ? h('p', { class: 'soft' }, `${dims.join(' × ')} chips; of each axis the first ${MOST} are drawn.`) : null;
  const use = frame({
    label: 'How busy each kind of link is in a step.',
    height: (width) => links.links.length * (width < 480 ? 40 : 28) + 46,
    draw: ({ svg, width }) => drawUse({ svg, width, links, axes }),
  });
  const rows = links.links.flatMap((link) =>
    (link.flows.length ? link.flows : [{ term: 'nothing', bytes_per_chip: 0 }]).map((flow) => [NAMES[link.link], count(link.size), link.wraps ? 'ring' : 'line', words(flow.term), gib(flow.bytes_per_chip), bandwidth(link.bytes_per_s_per_chip), percent(link.busy_frac)]),
  );
  return [
    h('p', { class: 'actions axis-buttons' }, buttons),
    torus.place,
    cut,
    h('h4', null, 'Use of the links'),
    use.place,
    resourceLegend(links.links.map((link) => resourceOf(link))),
    valuesTable(table('Bytes and use of each link', [{ title: 'Link' }, { title: 'Size', number: true }, { title: 'Shape' }, { title: 'Sent' }, { title: 'Into a chip, per step', number: true }, { title: 'Rate', number: true }, { title: 'Link busy', number: true }], rows)),
  ];
}
