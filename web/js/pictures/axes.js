// Axes in the page's units: ticks at even places, a title with the unit.

import { axisBottom, axisLeft } from 'd3';

export function bottomAxis(svg, scale, { y, ticks, format, title, x1 }) {
  const group = svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${y})`);
  const axis = axisBottom(scale).tickSizeOuter(0);
  if (Array.isArray(ticks)) axis.tickValues(ticks);
  else axis.ticks(ticks ?? 6);
  if (format) axis.tickFormat(format);
  group.call(axis);
  group.append('text').attr('class', 'axis-title').attr('x', x1).attr('y', 34).attr('text-anchor', 'end').text(title);
}

export function leftAxis(svg, scale, { x, ticks, format, title, grid = 0 }) {
  const group = svg.append('g').attr('class', 'axis').attr('transform', `translate(${x},0)`);
  const axis = axisLeft(scale).tickSizeOuter(0);
  if (Array.isArray(ticks)) axis.tickValues(ticks);
  else axis.ticks(ticks ?? 6);
  if (format) axis.tickFormat(format);
  group.call(axis);
  if (grid)
    group
      .selectAll('.tick')
      .append('line')
      .attr('class', 'grid')
      .attr('x2', grid);
  group.append('text').attr('class', 'axis-title').attr('x', -x + 2).attr('y', 11).attr('text-anchor', 'start').text(title);
}

// Text cut to what fits `room` pixels at the pictures' size of letters; "" where hardly anything does.
export function fitting(text, room) {
  const letters = Math.floor(room / 6.3);
  if (text.length <= letters) return text;
  return letters >= 5 ? `${text.slice(0, letters - 1)}…` : '';
}
