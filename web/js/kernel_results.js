// The answer of a kernel's tuning or simulation: the tiles to choose from, and the chosen one in full below them.

import { choiceTable, checkChoice } from './choice_table.js';
import { codeBlock, saveButton } from './copy.js';
import { announce, h, table } from './dom.js';
import { count, gib, microseconds, plural, signedPercent, words } from './format.js';
import { loadSimulation, simulationPanels } from './kernel_simulation.js';
import { picturePanel } from './pictures/panel.js';
import { runNote } from './run_note.js';

const TIME_COLUMNS = [
  { title: 'Time', number: true },
  { title: 'Against the best', number: true },
];
const LAST_COLUMNS = [
  { title: 'VMEM', number: true },
  { title: 'Decided by', wide: true },
];

function textOf(members) {
  return members.map(([name, value]) => `${name} ${value}`).join(' · ');
}

// The sizes of a tile in one line; layouts, which seldom differ, are left to the table.
export function tileText(tile) {
  return textOf(Object.entries(tile ?? {}).filter(([, value]) => typeof value === 'number')) || 'chosen by XLA';
}

// Which members of the tiles deserve a column: the numbers, and what differs between rows. {columns[], common{}}
export function tileColumns(tiles) {
  const columns = [];
  const common = {};
  for (const [name, value] of Object.entries(tiles[0] ?? {})) {
    if (typeof value === 'number' || tiles.some((tile) => tile[name] !== value)) columns.push(name);
    else common[name] = value;
  }
  return { columns, common };
}

function title(answer, request) {
  const shape = Object.entries(request.shape ?? {}).map(([name, value]) => `${name} ${value}`);
  return [
    h('h2', null, `${answer.kernel ?? request.kernel} on ${answer.chip ?? request.chip}`),
    h('p', { class: 'soft shape' }, shape.join(' · ')),
  ];
}

function tileRow(row, value, head, { columns, common }, best) {
  const other = Object.entries(common).filter(([name, usual]) => row.tile[name] !== usual);
  return {
    value,
    head,
    note: textOf(other.map(([name]) => [name, row.tile[name] ?? 'none'])),
    item: row,
    cells: [
      microseconds(row.time_us),
      row.time_us === best ? '' : signedPercent(row.time_us / best - 1),
      ...columns.map((name) => String(row.tile[name] ?? '–')),
      [
        gib(row.vmem_bytes),
        row.fits_vmem === false ? [' ', h('span', { class: 'verdict verdict-does_not_fit' }, 'too much')] : null,
      ],
      words(row.bound),
    ],
  };
}

function tilesTable(answer, name, onChoose) {
  const ranked = answer.ranked ?? [];
  const shown = answer.default ? [...ranked, answer.default] : ranked;
  if (!shown.length) return null;
  const layout = tileColumns((ranked.length ? ranked : shown).map((row) => row.tile));
  const best = ranked[0]?.time_us ?? NaN;
  const rows = ranked.map((row, index) => tileRow(row, index + 1, String(index + 1), layout, best));
  if (answer.default) rows.push({ ...tileRow(answer.default, 'default', 'Usual', layout, best), class: 'mine' });
  const sizes = layout.columns.map((title) => ({ title, number: true }));
  return [
    choiceTable({
      caption: 'Tiles, fastest first',
      columns: [{ title: 'Tile' }, ...TIME_COLUMNS, ...sizes, ...LAST_COLUMNS],
      rows,
      name,
      onChoose,
    }),
    Object.keys(layout.common).length
      ? h('p', { class: 'soft shape' }, `All of them with ${textOf(Object.entries(layout.common))}.`)
      : null,
    answer.default ? h('p', { class: 'soft' }, '“Usual” is what runs when no tile is given.') : null,
  ];
}

function nextBetter(next, ranked, useLimit) {
  if (next === undefined) return null;
  if (!next) return h('p', { class: 'soft' }, 'A higher VMEM limit admits no faster tile.');
  const limit = next.scoped_vmem_limit_kib;
  if (!Number.isFinite(limit)) return null;
  const gain = ranked.length ? ` (${signedPercent(next.time_us / ranked[0].time_us - 1)})` : '';
  const button = h('button', { type: 'button', class: 'small' }, `Find tiles with ${count(limit)} KiB`);
  button.addEventListener('click', () => useLimit(limit));
  return h(
    'p',
    { class: 'next-better' },
    `With a VMEM limit of ${count(limit)} KiB, ${tileText(next.tile)} would fit and take ${microseconds(next.time_us)}${gain}. `,
    h('code', null, `--xla_tpu_scoped_vmem_limit_kib=${limit}`),
    ' ',
    useLimit ? button : null,
  );
}

function sweepPanel(answer) {
  const { short_list: list, sweep } = answer;
  if (!list?.length) return null;
  const program = sweep?.tune_jax;
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h3', null, 'Worth running on a chip'),
      program
        ? h(
            'p',
            { class: 'actions' },
            saveButton('Download the sweep', `sweep_${answer.kernel}.py`, () => program, 'text/x-python'),
          )
        : null,
    ),
    table(
      'Tiles worth running on a chip',
      [{ title: 'Tile' }, { title: 'Time', number: true }, { title: 'Cannot be told from it' }],
      list.map((row) => [
        h('span', { class: 'tile' }, tileText(row.tile)),
        microseconds(row.time_us),
        row.near_equal?.length ? plural(row.near_equal.length, 'other tile', 'other tiles') : '–',
      ]),
    ),
    program ? h('details', null, h('summary', null, 'The sweep as a program'), codeBlock('Sweep', program)) : null,
  );
}

// The map around the best tile; a cell of it is simulated as a row of the table is.
function mapPanel({ tile_map: map, ranked, default: usual, chip, kernel }, shape, choose) {
  if (!map) return null;
  const simulate = (tile) => choose({ tile });
  return picturePanel('tiles', 'The tiles around it', { map, best: ranked?.[0], usual, asked: { chip, kernel, shape: shape ?? {} }, choose: simulate });
}

function showTuning(place, request, answer, actions) {
  const ranked = answer.ranked ?? [];
  const name = place.id === 'k-results' ? 'k-choice' : 'run-choice'; // a stored run may be open while the form keeps its answer
  const detail = h('div', { class: 'results', 'aria-live': 'off' });
  const choose = (row) => loadSimulation(detail, request, row.tile, actions);
  const { evaluated, exhaustive } = answer.search ?? {};
  place.replaceChildren(
    h(
      'section',
      { class: 'panel' },
      h(
        'div',
        { class: 'panel-head' },
        title(answer, request),
        h(
          'p',
          { class: 'actions' },
          saveButton('Download JSON', `tiles-${answer.kernel}.json`, () => JSON.stringify(answer, null, 2)),
        ),
      ),
      tilesTable(answer, name, choose),
      ranked.length ? null : h('p', null, 'No legal tile fits in the VMEM limit.'),
      nextBetter(answer.next_better, ranked, actions.useLimit),
      h(
        'p',
        { class: 'soft' },
        `${plural(evaluated, 'tile', 'tiles')} simulated. ${exhaustive ? (request.wide ? 'These are all legal ones.' : 'These are all legal ones of the usual sizes.') : 'There are more legal ones.'}`,
      ),
      runNote(request, answer),
    ),
    mapPanel(answer, request.shape, choose) ?? '',
    detail,
    sweepPanel(answer) ?? '',
  );
  announce(
    ranked.length
      ? `${plural(ranked.length, 'tile', 'tiles')}; the best takes ${microseconds(ranked[0].time_us)}`
      : 'No tile fits',
  );
  const first = ranked[0] ?? answer.default;
  if (!first) return null;
  checkChoice(place, name, ranked.length ? 1 : 'default');
  return choose(first);
}

// actions: {editTile(tile), useLimit(kib)}; a stored run has none. Ready when the chosen tile is drawn.
export function showKernelAnswer(place, request, answer, actions = {}) {
  if (Array.isArray(answer.ranked)) return showTuning(place, request, answer, actions);
  place.replaceChildren(
    h(
      'section',
      { class: 'panel' },
      h('div', { class: 'panel-head' }, title(answer, request)),
      runNote(request, answer),
    ),
    ...simulationPanels(request, request.tile, answer, actions),
  );
  announce(`Simulated: ${microseconds(answer.time_us)}`);
  return null;
}
