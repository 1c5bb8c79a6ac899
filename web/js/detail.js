// Everything about one plan: figures, time, memory, reasons, placement, kernels and the settings to run.

import { artifactsTable } from './artifacts.js';
import { changesPanel } from './changes.js';
import { configToCommand, configToLines } from './config_text.js';
import { codeBlock } from './copy.js';
import { fact, h, table } from './dom.js';
import {
  bandwidth,
  compact,
  count,
  microseconds,
  percent,
  resource,
  rounded,
  seconds,
  secondsRange,
  usd,
  words,
} from './format.js';
import { memoryBar } from './memory_bar.js';
import { sensitivitiesPanel } from './sensitivities.js';
import { sourcesPanel } from './sources.js';
import { timeBar } from './time_bar.js';

function figures(estimate) {
  return h(
    'dl',
    { class: 'facts' },
    fact(
      'Step time',
      seconds(estimate.step_time_s),
      secondsRange(estimate.step_time_low_s, estimate.step_time_high_s, estimate.step_time_s),
    ),
    fact('Tokens/s per chip', rounded(estimate.tokens_per_s_per_chip)),
    fact('TFLOP/s per chip', rounded(estimate.tflops_per_s_per_chip)),
    fact('MFU', percent(estimate.mfu_frac), `HFU ${percent(estimate.hfu_frac)}`),
    fact(
      'Global batch',
      `${count(estimate.global_batch_sequences)} sequences`,
      `${compact(estimate.tokens_per_step)} tokens per step`,
    ),
    fact('Decided by', resource(estimate.bound)),
    fact('Confidence', words(estimate.confidence), estimate.confidence_why),
    estimate.usd_per_step === null || estimate.usd_per_step === undefined
      ? null
      : fact(
          'Cost',
          `${usd(estimate.usd_per_billion_tokens)} per billion tokens`,
          `${usd(estimate.usd_per_step)} per step`,
        ),
  );
}

function finding(item, kind) {
  if (typeof item === 'string') return h('li', { class: `severity-${kind}` }, item);
  const text = item.message ?? item.detail ?? item.code;
  const change =
    item.change && Object.keys(item.change).length
      ? h('code', null, configToLines(item.change).replaceAll('\n', ' '))
      : null;
  return h(
    'li',
    { class: `severity-${item.severity ?? kind}` },
    item.pointer && !text.includes(item.pointer) ? [h('code', null, item.pointer), ' '] : null,
    text,
    typeof item.gain_frac === 'number' && item.gain_frac > 0
      ? h('span', { class: 'gain' }, ` Saves ${percent(item.gain_frac)} of the step time.`)
      : null,
    item.hint ? h('span', { class: 'second' }, item.hint) : null,
    change ? h('span', { class: 'second' }, 'Change: ', change) : null,
  );
}

export function findingsPanel(title, items, kind) {
  if (!items?.length) return null;
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, title),
    h(
      'ul',
      { class: 'findings' },
      items.map((item) => finding(item, kind)),
    ),
  );
}

function whyPanel(why) {
  if (!why?.length) return null;
  const text = (item) => (typeof item === 'string' ? item : (item.message ?? item.detail ?? JSON.stringify(item)));
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, 'Why this plan'),
    h(
      'ul',
      { class: 'reasons' },
      why.map((item) => h('li', null, text(item))),
    ),
  );
}

function meshPanel(mesh) {
  if (!mesh?.length) return null;
  const place = (axis) => (Array.isArray(axis.placed_on) ? axis.placed_on.join(', ') : axis.placed_on) || '–';
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, 'Mesh placement'),
    table(
      'Mesh placement',
      [
        { title: 'Axis' },
        { title: 'Size', number: true },
        { title: 'Placed on' },
        { title: 'Shape' },
        { title: 'Bandwidth', number: true },
      ],
      mesh.map((axis) => [
        axis.axis,
        count(axis.size),
        place(axis),
        axis.size > 1 ? (axis.wraps ? 'ring' : 'line') : '–',
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
        { title: 'Tile' },
        { title: 'Time', number: true },
        { title: 'Per step', number: true },
      ],
      kernels.map((kernel) => [
        h('code', null, kernel.kernel),
        shown(kernel.shape),
        shown(kernel.tile),
        microseconds(kernel.time_us),
        count(kernel.count),
      ]),
    ),
  );
}

function filesOf({ run, config }) {
  if (run) return artifactsTable(run);
  return config
    ? h(
        'p',
        { class: 'soft' },
        'Stored as a run, the plan also comes as files: a start script, YAML, an XPK job, a report.',
      )
    : null;
}

function runPanel(plan, actions) {
  const { config, xla_flags: flags } = plan;
  if (!config) return null;
  return h(
    'section',
    { class: 'panel' },
    h('div', { class: 'panel-head' }, h('h3', null, 'Settings to run'), h('p', { class: 'actions' }, actions)),
    h(
      'div',
      { class: 'columns' },
      codeBlock('MaxText settings', configToLines(config)),
      flags?.length ? codeBlock('LIBTPU_INIT_ARGS', flags.join(' \\\n')) : null,
    ),
    h('details', null, h('summary', null, 'As one command'), codeBlock('Command', configToCommand(config, flags))),
    filesOf(plan),
  );
}

// plan: {title, config, xla_flags, estimate, why?, changes_from_baseline?, cluster?, sensitivities?, run?};
// run {id, rank} says where it is stored; actions: buttons beside the settings.
export function planDetail(plan, actions = []) {
  const { estimate } = plan;
  return [
    h('section', { class: 'panel' }, h('h2', null, plan.title), figures(estimate)),
    timeBar(estimate),
    memoryBar(estimate),
    findingsPanel('Warnings', estimate.warnings, 'warning'),
    h('div', { class: 'columns' }, whyPanel(plan.why), findingsPanel('Advice', estimate.advice, 'info')),
    changesPanel(plan),
    sensitivitiesPanel(plan.sensitivities),
    runPanel(plan, actions),
    meshPanel(estimate.mesh),
    kernelsPanel(estimate.kernels),
    sourcesPanel(estimate, plan.cluster?.chip),
  ].filter((part) => part && (part.className !== 'columns' || part.children.length));
}
