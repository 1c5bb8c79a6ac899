// Everything about one plan, in tabs below a summary that stays in sight.

import { artifactsTable } from './artifacts.js';
import { changesPanel } from './changes.js';
import { configToCommand, configToLines } from './config_text.js';
import { codeBlock } from './copy.js';
import { fact, h, table } from './dom.js';
import {
  bandwidth,
  compact,
  count,
  gib,
  microseconds,
  percent,
  probability,
  resource,
  rounded,
  seconds,
  secondsRange,
  sequences,
  usd,
  words,
} from './format.js';
import { term } from './glossary.js';
import { inline, sentenceOf } from './inline.js';
import { placeOf } from './labels.js';
import { measurePanel } from './measure.js';
import { fitVerdict, memoryBar } from './memory_bar.js';
import { changesPicture, planPicture } from './pictures/panel.js';
import { axesAcross } from './plan_text.js';
import { provePanel } from './prove.js';
import { sensitivitiesPanel } from './sensitivities.js';
import { sourcesPanel } from './sources.js';
import { tabs } from './tabs.js';
import { timeBar, timeStrip } from './time_bar.js';

// A plan that does not fit has no throughput: what it would have is said small.
function figures(estimate, price) {
  const fits = estimate.fit_verdict !== 'does_not_fit';
  const rate = (name, label, value, second) =>
    fits ? fact(term(name, label), value, second) : fact(term(name, label), '–', `${value} if it fitted`);
  return h(
    'dl',
    { class: 'facts' },
    fact(
      term('step_time', 'Step time'),
      seconds(estimate.step_time_s),
      secondsRange(estimate.step_time_low_s, estimate.step_time_high_s, estimate.step_time_s),
    ),
    rate('tokens_per_s', 'Tokens/s per chip', rounded(estimate.tokens_per_s_per_chip)),
    rate('tflops', 'TFLOP/s per chip', rounded(estimate.tflops_per_s_per_chip)),
    rate('mfu', 'MFU', percent(estimate.mfu_frac), `HFU ${percent(estimate.hfu_frac)}`),
    fact(
      term('global_batch', 'Global batch'),
      sequences(estimate.global_batch_sequences),
      `${compact(estimate.tokens_per_step)} tokens per step`,
    ),
    fact(term('bound', 'Decided by'), resource(estimate.bound)),
    fact(term('confidence', 'Confidence'), words(estimate.confidence), inline(estimate.confidence_why)),
    estimate.usd_per_step === null || estimate.usd_per_step === undefined
      ? null
      : fact(
          term('cost', 'Cost'),
          `${usd(estimate.usd_per_billion_tokens)} per billion tokens`,
          `${usd(estimate.usd_per_step)} per step${Number.isFinite(price) ? `, at ${usd(price)} per chip and hour` : ''}`,
        ),
  );
}

const isMine = (item) => item.pointer?.startsWith('/baseline');

// What a remark is about, where its text does not name it: the entry of the form, or the key of the settings.
function aboutWhat(pointer, text) {
  const { place, key } = placeOf(pointer);
  const unsaid = key && !text.includes(key) ? h('code', null, key) : null;
  return place || unsaid ? [place, place && unsaid ? ', ' : '', unsaid, ': '] : null;
}

export function finding(item, kind, onRepair) {
  if (typeof item === 'string') return h('li', { class: `severity-${kind}` }, inline(sentenceOf(item)));
  const text = sentenceOf(item.message ?? item.detail ?? item.code);
  const hasChange = item.change && Object.keys(item.change).length > 0;
  const change = hasChange ? h('code', null, configToLines(item.change).replaceAll('\n', ' ')) : null;
  const apply = hasChange && onRepair ? h('button', { type: 'button', class: 'small' }, 'Apply and estimate') : null;
  apply?.addEventListener('click', () => onRepair(item.change));
  return h(
    'li',
    { class: `severity-${item.severity ?? kind}` },
    aboutWhat(item.pointer, text),
    inline(isMine(item) ? text.replace(/\bthe baseline\b/, 'my configuration') : text),
    item.gain_frac > 0 && !text.includes(`${percent(item.gain_frac)} less time`)
      ? h('span', { class: 'gain' }, ` Saves ${percent(item.gain_frac)} of the step time.`)
      : null,
    item.hint ? h('span', { class: 'second' }, inline(sentenceOf(item.hint))) : null,
    change ? h('span', { class: 'second' }, 'Change: ', change) : null,
    apply,
  );
}

// onRepair(change), if given, is offered as a button on each finding that names a change of settings.
export function findingsPanel(title, items, kind, onRepair) {
  if (!items?.length) return null;
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, title),
    h(
      'ul',
      { class: 'findings' },
      items.map((item) => finding(item, kind, onRepair)),
    ),
  );
}

// Names of time and memory parts in a text (those of other plans stand behind their seconds) as the tables have them, and the resource that binds with its capitals. Pure.
export function readable(text, estimate) {
  const names = [...(estimate.time_parts ?? []), ...(estimate.hbm_parts ?? [])].map((part) => part.name).filter((name) => name.includes('_'));
  const known = new Set(names);
  return text
    .replace(/(\d s )?\b([a-z0-9]+(?:_[a-z0-9]+)+)\b(?!=)/g, (all, time, name) => (time || known.has(name) ? `${time ?? ''}${words(name)}` : all))
    .replace(/^The ([a-z]+) binds/, (_, name) => `The ${words(name)} binds`);
}

function whyPanel(why, estimate) {
  if (!why?.length) return null;
  const text = (item) => (typeof item === 'string' ? item : (item.message ?? item.detail ?? JSON.stringify(item)));
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, 'Why this plan'),
    h(
      'ul',
      { class: 'reasons' },
      why.map((item) => h('li', null, inline(sentenceOf(readable(text(item), estimate))))),
    ),
  );
}

// The red banner of a plan that XLA would refuse: how much is too much, and the cheapest change that would fit.
function shortBanner(estimate, onRepair) {
  if (estimate.fit_verdict !== 'does_not_fit') return null;
  const over = estimate.hbm_bytes_per_device - estimate.hbm_limit_bytes_per_device;
  const repair = (estimate.advice ?? []).find((item) => item.code === 'memory_exceeded');
  const change = repair?.change && Object.keys(repair.change).length ? repair.change : null;
  const button = change && onRepair ? h('button', { type: 'button', class: 'primary' }, 'Repair and estimate') : null;
  button?.addEventListener('click', () => onRepair(change));
  const short =
    over > 0
      ? `${gib(estimate.hbm_bytes_per_device)} needed on each device, ${gib(estimate.hbm_limit_bytes_per_device)} there: ${gib(over)} too much.`
      : 'It needs more memory than there is.';
  return h(
    'div',
    { class: 'banner banner-bad', role: 'group', 'aria-label': 'Does not fit' },
    h('p', null, h('strong', null, 'Does not fit. '), short),
    change
      ? h('p', null, 'Cheapest repair: ', h('code', null, configToLines(change).replaceAll('\n', ' ')), ' ', button)
      : null,
  );
}

// Axes across slices lie on no link of a slice.
function meshPanel({ config, estimate, cluster }) {
  const across = axesAcross(config, cluster?.slices).filter(({ size }) => size > 1);
  const mesh = [...across.map((axis) => ({ ...axis, placed_on: 'DCN, between slices' })), ...(estimate.mesh ?? [])];
  if (!mesh.length) return null;
  const place = (axis) => (Array.isArray(axis.placed_on) ? axis.placed_on.join(', ') : axis.placed_on) || '–';
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, term('mesh', 'Mesh'), ' placement'),
    table(
      'Mesh placement',
      [
        { title: 'Axis' },
        { title: 'Size', number: true },
        { title: 'Placed on' },
        { title: 'Shape', label: term('ring', 'Shape') },
        { title: 'Bandwidth', number: true },
      ],
      mesh.map((axis) => [
        axis.axis,
        count(axis.size),
        place(axis),
        axis.size > 1 && 'wraps' in axis ? (axis.wraps ? 'ring' : 'line') : '–',
        axis.size > 1 ? bandwidth(axis.bandwidth_bytes_per_s) : '–',
      ]),
    ),
  );
}

function kernelsPanel(kernels) {
  if (!kernels?.length) return null;
  const shown = (value) =>
    value && typeof value === 'object'
      ? Object.entries(value)
          .map(([key, item]) => `${key} ${item}`)
          .join(', ')
      : value || '–';
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, 'Kernels'),
    table(
      'Kernels of one step',
      [
        { title: 'Kernel' },
        { title: 'Shape' },
        { title: 'Tile', label: term('tile', 'Tile') },
        { title: 'Time', number: true },
        { title: 'Per step', number: true },
      ],
      kernels.map((kernel) => [
        h('code', { class: 'nowrap' }, kernel.kernel),
        shown(kernel.shape),
        shown(kernel.tile),
        microseconds(kernel.time_us),
        count(kernel.count),
      ]),
    ),
  );
}

function runPanel(plan) {
  const { config, xla_flags: flags } = plan;
  if (!config) return null;
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, 'Settings to run'),
    h(
      'div',
      { class: 'settings' },
      codeBlock('MaxText settings', configToLines(config)),
      flags?.length ? codeBlock('LIBTPU_INIT_ARGS', flags.join(' \\\n')) : null,
    ),
    h('details', null, h('summary', null, 'As one command'), codeBlock('Command', configToCommand(config, flags))),
    plan.files ? artifactsTable(plan.files) : null,
  );
}

// A tight plan says how surely it fits.
function fitOf(estimate) {
  const chance = estimate.fit_verdict === 'tight' && Number.isFinite(estimate.fit_probability) ? probability(estimate.fit_probability) : null;
  return [fitVerdict(estimate), chance ? h('span', { class: 'soft' }, term('fit', `fits with a probability of ${chance}`)) : null];
}

// The plan's head, which stays in sight above the tabs.
function summary(plan) {
  const { estimate } = plan;
  const fits = estimate.fit_verdict !== 'does_not_fit';
  const item = (name, value) => h('span', null, h('span', { class: 'soft' }, name), ' ', h('strong', null, value));
  return [
    h('h2', null, plan.title),
    h(
      'p',
      { class: 'summary-figures' },
      item('step', seconds(estimate.step_time_s)),
      fits ? item('MFU', percent(estimate.mfu_frac)) : null,
      item('HBM', `${gib(estimate.hbm_bytes_per_device)} of ${gib(estimate.hbm_limit_bytes_per_device)}`),
      fitOf(estimate),
    ),
  ];
}

const columns = (...parts) => (parts.some(Boolean) ? h('div', { class: 'columns' }, parts) : null);

// The tabs and their parts from top to bottom: part(plan, {onRepair, prefix}) gives an element or null.
export const PLAN_TABS = [
  {
    id: 'overview',
    title: 'Overview',
    parts: [
      ({ estimate, cluster }) =>
        h('section', { class: 'panel' }, h('h3', { class: 'visually-hidden' }, 'Figures'), figures(estimate, cluster?.price_usd_per_chip_hour), timeStrip(estimate)),
      ({ estimate }) => findingsPanel('Warnings', estimate.warnings, 'warning'),
      (plan, { onRepair }) =>
        columns(whyPanel(plan.why, plan.estimate), findingsPanel('Advice', plan.estimate.advice, 'info', onRepair)),
      (plan) => changesPicture(plan),
      (plan) => changesPanel(plan),
      (plan) => sensitivitiesPanel(plan.sensitivities),
    ],
  },
  {
    id: 'time',
    title: 'Time',
    parts: [(plan) => planPicture('layer_time', 'One layer in time', plan), ({ estimate }) => timeBar(estimate), (plan) => sourcesPanel(plan.estimate, plan.cluster?.chip)],
  },
  { id: 'memory', title: 'Memory', parts: [(plan) => planPicture('memory', 'Memory over the step', plan), ({ estimate }) => memoryBar(estimate)] },
  { id: 'mesh', title: 'Mesh', parts: [(plan) => planPicture('torus', 'The mesh on the torus', plan), meshPanel] },
  { id: 'kernels', title: 'Kernels', parts: [(plan) => planPicture('roofline', 'Roofline of a layer', plan), ({ estimate }) => kernelsPanel(estimate.kernels)] },
  { id: 'scaling', title: 'Scaling', parts: [(plan) => planPicture('scaling', 'The plan at other sizes', plan)] },
  { id: 'whatif', title: 'What if', parts: [(plan) => planPicture('whatif', 'What if the machine or the job were another', plan)] },
  { id: 'run', title: 'Run it', parts: [runPanel] },
  { id: 'prove', title: 'Prove', parts: [provePanel] },
  { id: 'measured', title: 'Measured', parts: [measurePanel] },
];

// plan: {title, config, xla_flags, estimate, why?, changes_from_baseline?, cluster?, sensitivities?, job?, baseline?, run?, onStore?, files?}; run {id, rank} says
// where it is stored, onStore(tab) stores it, files {rank, load(name)} makes its files. tools: actions (buttons beside the title), onRepair(change)?, tab (shown first), onTab(id)?, prefix.
export function planDetail(plan, { actions = [], onRepair, tab, onTab, prefix = '' } = {}) {
  const items = PLAN_TABS.map(({ id, title, parts }) => ({
    id,
    title,
    build: () => {
      const made = parts.map((part) => part(plan, { onRepair, prefix })).filter(Boolean);
      return made.length ? made : [h('p', { class: 'soft' }, 'This answer says nothing about it.')];
    },
  }));
  const { list, panels } = tabs({ name: `${prefix}plan`, label: 'Parts of the plan', items, chosen: tab, onChoose: onTab });
  return [
    h('div', { class: 'plan-head' }, h('div', { class: 'summary' }, summary(plan), h('p', { class: 'actions' }, actions)), list),
    shortBanner(plan.estimate, onRepair),
    ...panels,
  ].filter(Boolean);
}
