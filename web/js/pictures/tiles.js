// The tiles around the best one: predicted time and VMEM over two block sizes, what does not fit or is not legal hatched.

import { extent, scaleLog } from 'd3';
import { h, table } from '../dom.js';
import { gib, microseconds, percent, plural } from '../format.js';
import { frame, freshId, legend, valuesTable } from './frame.js';
import { publishedKey } from './published_key.js';

const ROW = 36;
const LEFT = 46;
const TOP = 24;
const FAINT = 0.06; // of the slowest; stronger ones keep letters readable
const STRONG = 0.55;
const ROOM = 44; // pixels that a number needs
const SLOW = 4; // times the fastest: slower ones look alike
const MARKS = { best: '★', default: '◆', published: '▲' };
const NAMES = { best: 'the best tile', default: 'the default', published: 'the published winner' };

const stateOf = (cell) => (cell.broken_rule ? 'illegal' : !(cell.time_us > 0) ? 'unknown' : cell.fits_vmem ? 'fits' : 'over');

// Cells as a list, with their sizes and what stands there: {row, column, sizes, cell, state, marks[]}.
export function cellsOf(map, tiles) {
  const at = (tile, cell) => [map.rows, map.columns].every((axis, index) => tile?.[axis.name] === axis.values[cell[index]]);
  return map.cells.flatMap((line, row) =>
    line.map((cell, column) => ({
      row,
      column,
      cell,
      sizes: `${map.rows.name} ${map.rows.values[row]}, ${map.columns.name} ${map.columns.values[column]}`,
      state: stateOf(cell),
      marks: Object.keys(MARKS).filter((name) => at(tiles[name], [row, column])),
    })),
  );
}

// "+12 %" as far as that is a small number, then "×3.4".
const slower = (ratio) => (ratio < 2 ? `+${Math.round((ratio - 1) * 100)} %` : `×${ratio < 10 ? ratio.toFixed(1) : Math.round(ratio)}`);

// The measures that the cells of one picture can show: their number, its text, and how strong their colour is.
const VIEWS = [
  {
    title: 'Predicted time',
    colour: 'heat-time',
    of: (cell) => cell.time_us,
    drawn: (one) => one.state === 'fits',
    text: (cell, best) => (cell.time_us === best ? microseconds(best).replace(' ', '') : slower(cell.time_us / best)),
    strength: ([low, high]) => scaleLog([low, Math.min(high, low * SLOW)], [STRONG, FAINT]).clamp(true),
    note: 'Stronger colour is faster; the others against the fastest cell.',
  },
  {
    title: 'VMEM',
    colour: 'heat-vmem',
    of: (cell) => cell.vmem_bytes,
    drawn: (one) => one.state === 'fits' || one.state === 'over',
    text: (cell) => `${Math.round(cell.vmem_bytes / 2 ** 20)}`,
    strength: (ends) => scaleLog(ends, [FAINT, STRONG]).clamp(true),
    note: 'MiB that the tile of the cell needs; stronger colour is more.',
  },
];

function sentence({ sizes, cell, state, marks }, limit) {
  const named = marks.map((mark) => `${NAMES[mark]} has these sizes`);
  const said = {
    illegal: `not legal: ${cell.broken_rule}`,
    unknown: 'not known',
    fits: `${microseconds(cell.time_us)} at best, ${gib(cell.vmem_bytes)} of VMEM`,
    over: `does not fit: at least ${gib(cell.vmem_bytes)} of ${gib(limit)} VMEM`,
  }[state];
  const rest = Object.entries(cell.tile ?? {}).filter(([name, value]) => typeof value === 'number' && !sizes.includes(`${name} `));
  const others = rest.length ? ` (with ${rest.map(([name, value]) => `${name} ${value}`).join(', ')})` : '';
  return `${[`${sizes}: ${said}${others}`, ...named].join('; ')}.${state === 'fits' || state === 'over' ? ' Click or Enter simulates it.' : ''}`;
}

function hatch(svg, id, name) {
  const pattern = svg.append('pattern').attr('id', id).attr('width', 7).attr('height', 7).attr('patternUnits', 'userSpaceOnUse').attr('patternTransform', 'rotate(45)');
  pattern.append('rect').attr('class', `hatch-ground ${name}`).attr('width', 7).attr('height', 7);
  pattern.append('line').attr('class', `hatch-line ${name}`).attr('y2', 7);
}

function drawView({ svg, width, view, cells, map, choose }) {
  const ids = { illegal: freshId('hatch'), over: freshId('hatch'), unknown: freshId('hatch') };
  for (const [name, id] of Object.entries(ids)) hatch(svg, id, name);
  const wide = (width - LEFT - 1) / map.columns.values.length;
  const shown = cells.filter(view.drawn);
  const ends = extent(shown, (one) => view.of(one.cell));
  const strength = view.strength(ends[0] < ends[1] ? ends : [ends[0], ends[0] * 2]);
  const best = Math.min(...cells.filter((one) => one.state === 'fits').map((one) => one.cell.time_us));
  const bottom = TOP + map.rows.values.length * ROW;
  svg.append('text').attr('class', 'axis-name').attr('x', 0).attr('y', 12).text(map.rows.name);
  svg.append('text').attr('class', 'axis-name').attr('x', width - 1).attr('y', bottom + 32).attr('text-anchor', 'end').text(map.columns.name);
  map.rows.values.forEach((value, row) => svg.append('text').attr('class', 'axis-value').attr('x', LEFT - 6).attr('y', TOP + row * ROW + ROW / 2 + 4).attr('text-anchor', 'end').text(value));
  map.columns.values.forEach((value, column) => svg.append('text').attr('class', 'axis-value').attr('x', LEFT + (column + 0.5) * wide).attr('y', bottom + 15).attr('text-anchor', 'middle').text(wide < 34 && column % 2 ? '' : value));
  return cells.map((one) => {
    const [x, y] = [LEFT + one.column * wide, TOP + one.row * ROW];
    const cell = svg.append('rect').attr('class', `heat ${view.colour}${one.marks.length ? ' marked' : ''}`).attr('x', x + 1).attr('y', y + 1).attr('width', wide - 2).attr('height', ROW - 2);
    const filled = view.drawn(one);
    if (filled) cell.style('fill-opacity', strength(view.of(one.cell)));
    else cell.style('fill', `url(#${ids[one.state]})`);
    const middle = x + wide / 2;
    const marked = one.marks.map((mark) => MARKS[mark]).join('');
    if (marked) svg.append('text').attr('class', 'heat-mark').attr('x', middle).attr('y', y + 14).attr('text-anchor', 'middle').text(marked);
    if (filled && wide >= ROOM) svg.append('text').attr('class', 'heat-value').attr('x', middle).attr('y', y + (marked ? 29 : 22)).attr('text-anchor', 'middle').text(view.text(one.cell, best));
    if (filled && one.state === 'over') svg.append('path').attr('class', 'heat-over').attr('d', `M${x + 2},${y + ROW - 2}L${x + wide - 2},${y + 2}`);
    const select = one.cell.tile && one.state !== 'unknown' ? () => choose(one.cell.tile) : undefined;
    return { x: middle, y: y + ROW / 2, box: [x, y, x + wide, y + ROW], text: sentence(one, map.vmem_limit_bytes), select };
  });
}

// Legal tiles that tune does not look at, and that are predicted faster than the best it found.
function beyond(cells, best) {
  const faster = cells.filter((one) => one.state === 'fits' && one.cell.time_us < best.time_us * 0.999);
  if (!faster.length) return null;
  const least = Math.min(...faster.map((one) => one.cell.time_us));
  return h('p', { class: 'soft' }, `${plural(faster.length, 'cell is', 'cells are')} predicted faster than the best tile, by up to ${percent(1 - least / best.time_us)}: such tiles are outside the sizes that published sweeps try. “Also smaller and larger tiles than usual” looks at more of them.`);
}

// The result of a published sweep for the very shape, in words; and whether its sizes are on the map.
function publishedNote(published, cells) {
  if (!published) return 'No published sweep has this very shape.';
  const sizes = Object.entries(published.tile).filter(([name, value]) => typeof value === 'number' && !name.endsWith('_layout')).map(([name, value]) => `${name} ${value}`);
  const where = cells.some((one) => one.marks.includes('published')) ? '' : ' Its sizes are not on the map.';
  return `${MARKS.published} the winner of a published sweep of this shape: ${sizes.join(', ')}, measured ${microseconds(published.time_us)} (${published.source}${published.date ? `, ${published.date}` : ''}).${where}`;
}

// input: {map: tile_map of a tuning, best, usual?: rows of the tuning, asked: {chip, kernel, shape}, choose(tile)}
export async function show({ map, best, usual, asked, choose }) {
  const { tiles } = await import('published-tiles'); // made by build.mjs
  const published = tiles[publishedKey(asked.chip, asked.kernel, asked.shape)];
  const cells = cellsOf(map, { best: best?.tile, default: usual?.tile, published: published?.tile });
  if (!cells.some((one) => one.state === 'fits')) return null;
  const views = VIEWS.map((view) =>
    h(
      'div',
      { class: 'small-chart' },
      h('h4', null, view.title),
      h('p', { class: 'soft' }, view.note),
      frame({
        label: `${view.title} over ${map.rows.name} and ${map.columns.name}.`,
        height: () => TOP + map.rows.values.length * ROW + 40,
        hint: 'Point at a cell for its tile.',
        draw: ({ svg, width }) => drawView({ svg, width, view, cells, map, choose }),
      }).place,
    ),
  );
  const marked = ({ marks }) => marks.map((mark) => `${MARKS[mark]} `).join('');
  const textOf = (one) => `${marked(one)}${valueOf(one)}`;
  const valueOf = ({ state, cell }) => ({ fits: `${microseconds(cell.time_us)}, ${gib(cell.vmem_bytes)}`, over: `${gib(cell.vmem_bytes)}: too much`, illegal: 'not legal', unknown: '–' })[state];
  const rows = map.rows.values.map((value, row) => [String(value), ...cells.filter((one) => one.row === row).map(textOf)]);
  return [
    h('p', { class: 'soft' }, `Each cell has the best of all other sizes. ${MARKS.best} the best tile, ${MARKS.default} the default; the limit of VMEM is ${gib(map.vmem_limit_bytes)}.`),
    h('p', { class: 'soft' }, publishedNote(published, cells)),
    h('div', { class: 'small-charts' }, views),
    legend({ 'swatch-over-vmem': 'red: does not fit VMEM', 'swatch-illegal': 'grey: not legal for the shape' }),
    beyond(cells, best ?? {}),
    valuesTable(table(`Time and VMEM by ${map.rows.name} and ${map.columns.name}`, [{ title: map.rows.name }, ...map.columns.values.map((value) => ({ title: `${map.columns.name} ${value}`, number: true }))], rows)),
  ];
}
