// Sweeps: many estimates at once, followed while daemons work them off, and their results as a heatmap over two settings.

import './common.js';
import { get, isAway, post, remove } from './api.js';
import { connectAsk } from './ask.js';
import { loadCatalog } from './catalog.js';
import { parseConfig, parseFlags, passedOverText } from './config_text.js';
import { announce, byId, h, table } from './dom.js';
import { errorSummary } from './errors.js';
import { failure } from './failure.js';
import { count, dateTime, gib, plural, seconds, words } from './format.js';
import { fillChips, fillSlices, sliceLike } from './machine_choice.js';
import { verdict, verdictOfRun } from './memory_bar.js';
import { axesOf, gridOf, isSweptBy, locateSweep, parseAxis } from './sweep_axes.js';
import { itemAddress } from './sweep_item.js';
import { sharedOf, sharedPanel } from './sweep_job.js';
import { codesOf, warningsPanel } from './sweep_warnings.js';
import { typedNumber } from './typed_number.js';

const EVERY_MS = 1000;
const PAGE = 200; // items of one request
const MOST = 2000; // items of a sweep that are shown
const SHADES = 6;
const EXAMPLE = {
  model: 'llama3.1-8b',
  chip: 'v6e',
  topology: '4x4',
  slices: '1',
  config: 'max_target_length=8192',
  x: 'per_device_batch_size=1, 2, 4, 8',
  y: 'remat_policy=full, minimal, save_qkv_proj',
};


// Which shade a value has between the least and the most: 0 is the best. Pure.
export function shadeOf(value, least, most) {
  return most > least ? Math.min(SHADES - 1, Math.floor((SHADES * (value - least)) / (most - least))) : 0;
}

// open: {address, label} of the form that asks the item's question, or null.
function cellOf(item, least, most, open) {
  if (!item || !['done', 'failed'].includes(item.state)) return h('td', { class: 'heat heat-wait' }, item ? words(item.state) : 'not shown');
  if (item.state === 'failed')
    return h('td', { class: 'heat heat-none', title: item.problem?.detail ?? '' }, 'refused', h('span', { class: 'second' }, item.problem?.detail ?? ''));
  if (item.run_deleted) return h('td', { class: 'heat heat-none' }, 'run deleted');
  const fits = item.fits !== false;
  const tight = item.fit_verdict === 'tight' ? ' tight' : '';
  const text = fits ? `${count(Math.round(item.tokens_per_s_per_chip))}${tight}` : 'does not fit';
  return h(
    'td',
    { class: `heat ${fits ? `heat-${shadeOf(1 / item.tokens_per_s_per_chip, least, most)}` : 'heat-none'}` },
    h('strong', null, open ? h('a', { href: open.address }, text, h('span', { class: 'visually-hidden' }, open.label)) : text),
    h('span', { class: 'second' }, `${seconds(item.step_time_s)} · ${gib(item.hbm_bytes_per_device)}`),
  );
}

// items by number; the last axis varies fastest. Tokens per second and chip, so that batches can be compared.
function heatmap(items, y, x, first) {
  const times = items.filter((item) => item.state === 'done' && !item.run_deleted && item.fits !== false).map((item) => 1 / item.tokens_per_s_per_chip);
  const least = Math.min(...times);
  const most = Math.max(...times);
  const known = new Map(items.map((item) => [item.item, item]));
  const openOf = (item, settings) => {
    const address = itemAddress(first, item.changes);
    return address && { address, label: ` estimate ${settings.map(([key, value]) => `${key} ${shownValue(value)}`).join(', ')} in the form` };
  };
  const caption = `Tokens per second and chip by ${y.key} and ${x.key}`;
  return h(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    h(
      'table',
      { class: 'heatmap' },
      h('caption', null, caption, '; stronger colour is faster. Below it the step time and the HBM per device.', first ? ' A cell opens its settings in the form.' : ''),
      h('thead', null, h('tr', null, h('th', { scope: 'col' }, `${y.key} \\ ${x.key}`), x.values.map((value) => h('th', { scope: 'col' }, String(value))))),
      h(
        'tbody',
        null,
        y.values.map((value, row) =>
          h(
            'tr',
            null,
            h('th', { scope: 'row' }, String(value)),
            x.values.map((at, column) => {
              const item = known.get(row * x.values.length + column);
              return cellOf(item, least, most, item && openOf(item, [[y.key, value], [x.key, at]]));
            }),
          ),
        ),
      ),
    ),
  );
}

const shownValue = (value) => (value !== null && typeof value === 'object' ? JSON.stringify(value) : String(value));

function settingsOf(item, axes) {
  return axes.map((axis) => `${axis.key} ${shownValue(axis.of(item))}`).join(', ') || '–';
}

function itemsTable(items) {
  const axes = axesOf(items);
  return table(
    'Items of the sweep',
    [{ title: 'Item' }, { title: 'Settings' }, { title: 'State' }, { title: 'Step time', number: true }, { title: 'HBM per device', number: true }, { title: 'What is wrong' }],
    items.map((item) => [
      item.run_id ? h('a', { href: `#/runs/${item.run_id}` }, String(item.item)) : String(item.item),
      settingsOf(item, axes),
      item.run_deleted ? 'run deleted' : words(item.state),
      seconds(item.step_time_s),
      [gib(item.hbm_bytes_per_device), ' ', item.fits === null ? '' : verdict(verdictOfRun(item))],
      item.problem?.detail ?? (codesOf(item) ? `Warning: ${codesOf(item)}` : '–'),
    ]),
  );
}

function progressOf(sweep) {
  const ended = sweep.done_count + sweep.failed_count + sweep.cancelled_count;
  return [
    h('progress', { max: sweep.items_count, value: ended, 'aria-label': 'Items that have ended' }),
    ` ${count(ended)} of ${plural(sweep.items_count, 'item', 'items')}`,
    sweep.failed_count ? `, ${sweep.failed_count} refused` : '',
    sweep.cancelled_count ? `, ${sweep.cancelled_count} cancelled` : '',
    `, ${words(sweep.state)}`,
  ];
}

async function wholeSweep(path) {
  const sweep = await get(`${path}?limit=${PAGE}`);
  let cursor = sweep.next_cursor;
  while (cursor && sweep.items.length < MOST) {
    const next = await get(`${path}?limit=${PAGE}&cursor=${encodeURIComponent(cursor)}`);
    sweep.items.push(...next.items);
    cursor = next.next_cursor;
  }
  return { ...sweep, isCut: Boolean(cursor) };
}

// What the first item asks; null where it cannot be had.
const firstRequest = (path) => get(`${path}/items/0`).then(({ request }) => request ?? null, () => null);

const WRONG_LINK = 'The link names other settings than those of this sweep. Shown are those in which its items differ.';

// The axes are in the address, so that a link shows the same picture; without them, those that the items differ in.
export async function showSweep(place, id, query) {
  const path = `/v1/sweeps/${encodeURIComponent(id)}`;
  const asked = new URLSearchParams(query);
  const named = ['y', 'x'].map((name) => parseAxis(asked.get(name) ?? ''));
  const isAsked = ['y', 'x'].some((name) => asked.has(name));
  const wrong = h('p', { class: 'link-note', role: 'status' });
  const state = h('p', { role: 'status' });
  const shown = h('div', { class: 'results' });
  const cancel = h('button', { type: 'button', hidden: true }, 'Cancel the sweep');
  const asking = firstRequest(path);
  const draw = async () => {
    const [sweep, request] = await Promise.all([wholeSweep(path), asking]);
    const isNamed = named.every(Boolean) && sweep.items_count === named[0].values.length * named[1].values.length && isSweptBy(sweep.items, ...named);
    wrong.textContent = isNamed || !isAsked ? '' : WRONG_LINK;
    const grid = isNamed ? named : gridOf(sweep.items);
    state.replaceChildren(...progressOf(sweep), sweep.isCut ? `; the first ${count(sweep.items.length)} are shown` : '');
    cancel.hidden = sweep.state !== 'running';
    const warnings = warningsPanel(sweep.items) ?? '';
    shown.replaceChildren(
      ...(grid ? [heatmap(sweep.items, ...grid, request), warnings, h('details', null, h('summary', null, 'Every item'), itemsTable(sweep.items))] : [itemsTable(sweep.items), warnings]),
    );
    if (sweep.state === 'running') again();
    else announce(`The sweep is ${words(sweep.state)}`);
    return sweep;
  };
  const again = () => setTimeout(() => place.isConnected && draw().catch(fail), EVERY_MS);
  function fail(error) {
    if (!shown.querySelector('[role="alert"]')) shown.prepend(failure(error));
    if (isAway(error)) again(); // daemons work on, and one of them comes back
  }
  cancel.addEventListener('click', () => remove(path).then(draw).catch(fail));
  const [sweep, request] = [await draw(), await asking];
  const shared = sharedOf(request ?? {}, axesOf(sweep.items).map(({ pointer }) => pointer));
  place.replaceChildren(
    h(
      'section',
      { class: 'panel' },
      h('div', { class: 'panel-head' }, h('h1', null, sweep.label || `Sweep ${sweep.sweep_id.slice(0, 13)}`), shared.title ? h('p', null, shared.title) : null, h('p', { class: 'soft' }, `${words(sweep.kind)}${shared.project ? ` for project ${shared.project}` : ''}, started ${dateTime(sweep.created_at)}`), h('p', { class: 'actions' }, cancel)),
      wrong,
      state,
      shown,
      sharedPanel(shared),
    ),
  );
}

// catalog: for the lists of chips and slices.
function sweepForm(asked, catalog) {
  const value = (name) => asked.get(name) ?? EXAMPLE[name] ?? '';
  const field = (name, label, hint) =>
    h(
      'div',
      { class: 'field' },
      h('label', { for: `sweep-${name}` }, label),
      h('input', { type: 'text', id: `sweep-${name}`, list: name === 'model' ? 'models' : null, autocomplete: 'off', spellcheck: 'false', value: value(name), 'aria-describedby': hint ? `sweep-${name}-hint` : null }),
      hint ? h('p', { class: 'hint', id: `sweep-${name}-hint` }, hint) : null,
    );
  const choice = (name, label) => {
    const select = h('select', { id: `sweep-${name}` });
    if (name === 'chip') fillChips(select, catalog, value(name));
    else fillSlices(select, catalog, value('chip'), value(name));
    if (!value(name)) select.prepend(h('option', { value: '', selected: true }, 'choose one')); // a link without it asks for none
    return h('div', { class: 'field' }, h('label', { for: select.id }, label), select);
  };
  const box = (name, label, rows, ...notes) => {
    const text = h('textarea', { id: `sweep-${name}`, rows, spellcheck: 'false', autocapitalize: 'none' });
    text.value = value(name);
    return h('div', { class: 'field' }, h('label', { for: text.id }, label), text, ...notes);
  };
  const passedOver = h('p', { class: 'hint inherits', role: 'status' });
  const done = h('p', { class: 'soft', role: 'status', tabindex: '-1' });
  const form = h(
    'form',
    { class: 'measure', novalidate: true, 'aria-label': 'Start a sweep' },
    errorSummary('sweep-problem'),
    h('div', { class: 'filters' }, field('model', 'Model'), choice('chip', 'Chip'), choice('topology', 'Slice topology'), field('slices', 'Slices'), field('project', 'Project'), field('label', 'Label')),
    box('config', 'MaxText configuration that all share', 5, passedOver),
    box('xla_flags', 'XLA flags that all share', 3),
    h('div', { class: 'columns' }, field('y', 'Down: a key and its values', 'key=value, value, …'), field('x', 'Across: a key and its values', 'key=value, value, …')),
    h('p', { class: 'actions' }, h('button', { type: 'submit', class: 'primary' })),
  );
  const read = (name) => form.querySelector(`#sweep-${name}`).value.trim();
  const sayPassedOver = () => {
    const text = passedOverText(parseConfig(read('config')).passedOver);
    if (text !== passedOver.textContent) passedOver.textContent = text;
  };
  sayPassedOver();
  // What is typed stays in the address, for a reload and the way back.
  form.addEventListener('input', ({ target }) => {
    if (target.id === 'sweep-chip') fillSlices(form.querySelector('#sweep-topology'), catalog, target.value, sliceLike(catalog, target.value, read('topology')));
    sayPassedOver();
    const typed = [...form.querySelectorAll('input, select, textarea')].map(({ id, value: text }) => [id.replace('sweep-', ''), text]);
    const query = String(new URLSearchParams(typed.filter(([name, text]) => text !== (EXAMPLE[name] ?? ''))));
    history.replaceState(null, '', `#/sweeps${query && `?${query}`}`);
  });
  const ask = connectAsk({
    form,
    results: done,
    build: () => {
      const settings = parseConfig(read('config'));
      const errors = settings.errors.map((error) => ({ pointer: '/grid/base/config', ...error }));
      const axes = {};
      for (const name of ['y', 'x']) {
        const axis = parseAxis(read(name));
        if (axis) axes[`/config/${axis.key}`] = axis.values;
        else errors.push({ pointer: `/${name}`, detail: `${name === 'y' ? 'Down' : 'Across'}: write a key and its values, such as per_device_batch_size=1, 2, 4.` });
      }
      const [down, across] = ['y', 'x'].map((name) => parseAxis(read(name))?.key);
      if (down && down === across) errors.push({ pointer: '/x', detail: `${across} is the key down, too.`, hint: 'Give another key across.' });
      const slices = typedNumber(read('slices'));
      if (!Number.isFinite(slices)) errors.push({ pointer: '/grid/base/cluster/slices', detail: 'Give the number of slices.' });
      const request = { model: read('model'), cluster: { chip: read('chip'), topology: read('topology'), slices }, config: settings.value ?? {} };
      if (read('project')) request.project = read('project');
      const flags = [...settings.flags, ...parseFlags(read('xla_flags'))];
      if (flags.length) request.xla_flags = flags;
      const body = { kind: 'estimate', grid: { base: request, axes } };
      if (read('label')) body.label = read('label');
      return { path: '/v1/sweeps', body, errors, locate: (pointer) => locateSweep(pointer, { y: down, x: across }) };
    },
    label: () => 'Start the sweep',
    show: (body, answer) => {
      location.hash = `#/sweeps/${answer.sweep_id}?${new URLSearchParams({ y: read('y'), x: read('x') })}`;
    },
  });
  ask.relabel();
  return [form, done];
}

export async function showSweeps(place, query) {
  const [{ sweeps }, catalog] = await Promise.all([get('/v1/sweeps?limit=50'), loadCatalog()]);
  place.replaceChildren(
    h(
      'div',
      { class: 'results' },
      h('section', { class: 'panel' }, h('h1', null, 'Start a sweep'), h('p', { class: 'soft' }, 'Every combination of two settings is estimated, by all daemons of this database.'), sweepForm(new URLSearchParams(query), catalog)),
      h(
        'section',
        { class: 'panel' },
        h('h2', null, 'Sweeps'),
        sweeps.length
          ? table(
              'Sweeps, newest first',
              [{ title: 'Sweep' }, { title: 'Kind' }, { title: 'Progress' }, { title: 'Refused', number: true }, { title: 'Started' }],
              sweeps.map((sweep) => [
                h('a', { href: `#/sweeps/${sweep.sweep_id}` }, sweep.label || sweep.sweep_id.slice(0, 13)),
                words(sweep.kind),
                h('span', null, progressOf(sweep)),
                String(sweep.failed_count),
                dateTime(sweep.created_at),
              ]),
            )
          : h('p', null, 'There is none yet.'),
      ),
    ),
  );
}
