// The same training on several machines: predicted ones to choose from, those without a plan, and GPUs as headline rooflines.

import { choiceTable } from './choice_table.js';
import { h, table } from './dom.js';
import { compact, count, days, energy, percent, plural, seconds, secondsRange, usd } from './format.js';
import { intervalCell, intervalScale } from './interval.js';
import { spoken } from './labels.js';
import { fitVerdict } from './memory_bar.js';
import { clusterText, meshOfPlan } from './plan_text.js';
import { scatter } from './scatter.js';

const COLUMNS = [
  { title: 'Machine' },
  { title: 'Chips', number: true },
  { title: 'Step time', number: true },
  { title: '90 % interval', wide: true },
  { title: 'MFU', number: true, wide: true },
];

function priceNote(cluster) {
  const price = cluster.price_usd_per_chip_hour;
  return Number.isFinite(price) ? `${usd(price)} per chip and hour` : 'no price given';
}

// With failures, checkpoints and restarts where the answer has them; GPUs as rooflines have none.
const totalDays = (numbers) => numbers.training?.days ?? numbers.days_for_tokens;
const totalUsd = (numbers) => numbers.training?.usd ?? numbers.usd_for_tokens;

// The rule that the machines are sorted by; their batches, and so the work of their steps, may differ.
const RULES = {
  hbm: 'least memory per device first',
  usd_per_token: 'fewest dollars per token first',
  step_time_high: 'the earliest slow end of the 90 % interval first',
};

export function machinesRule(objective, budget) {
  const rule = RULES[objective] ?? 'most tokens per second first';
  return budget ? `for ${compact(budget)} tokens, ${rule}` : rule;
}

// Days and dollars of the whole training; without a token budget the rate, and the dollars for a billion tokens.
function costColumns(budget) {
  if (!budget) return [{ title: 'Tokens/s', number: true }, { title: 'Per billion tokens', number: true }];
  return [
    { title: 'Time', number: true },
    { title: 'Dollars', number: true },
    { title: 'Energy', number: true, wide: true },
  ];
}

function costCells(numbers, perBillion, budget) {
  if (!budget) return [compact(numbers.best.estimate.tokens_per_step / numbers.best.estimate.step_time_s), usd(perBillion)];
  return [days(totalDays(numbers)), usd(totalUsd(numbers)), energy(numbers.energy_kwh)];
}

function machineRow(machine, scale, tied, budget) {
  const { estimate } = machine.best;
  const small = (text) => h('span', { class: 'second' }, text);
  return {
    value: `machine-${machine.rank}`,
    head: `${machine.rank}. ${clusterText(machine.cluster)}`,
    note: [
      priceNote(machine.cluster),
      tied ? ` · tie ${machine.tie_group}` : '',
      machine.on_front
        ? h('span', { title: 'No other machine is both as fast and as cheap' }, ' · on the front')
        : null,
    ],
    item: machine,
    cells: [
      count(machine.cluster.chips),
      [
        seconds(estimate.step_time_s),
        small(secondsRange(estimate.step_time_low_s, estimate.step_time_high_s, estimate.step_time_s)),
      ],
      intervalCell(estimate, scale),
      percent(estimate.mfu_frac),
      ...costCells(machine, estimate.usd_per_billion_tokens, budget),
      fitVerdict(estimate),
    ],
  };
}

// withFailures: the days of the predicted machines have failures, checkpoints and restarts in them.
function headlineTable(rows, budget, withFailures) {
  if (!rows.length) return null;
  const cells = ({ cluster, headline }) => [
    [
      `${count(cluster.chips)} ${cluster.chip}`,
      h('span', { class: 'second' }, `${spoken(headline.label)} · ${priceNote(cluster)}`),
    ],
    seconds(headline.roofline_step_time_s),
    percent(headline.mfu_frac),
    ...(budget ? costCells(headline, null, budget) : []),
  ];
  const columns = [
    { title: 'GPUs', prose: true },
    { title: 'Roofline step time', number: true },
    { title: 'MFU assumed', number: true },
  ];
  return [
    h('h3', null, 'Headline rooflines of GPUs: not predictions'),
    h(
      'p',
      { class: 'soft' },
      'The FLOPs of the model over the peak rate times an assumed MFU. Nothing of the machine is modelled: no memory, no network, no kernels.',
      withFailures ? ' Failures, checkpoints and restarts are in the days and dollars of the machines above, and not in these.' : null,
    ),
    table('Headline rooflines of GPUs', [...columns, ...(budget ? costColumns(budget) : [])], rows.map(cells)),
  ];
}

function withoutPlan(rows) {
  if (!rows.length) return null;
  return table(
    'Machines without a plan',
    [{ title: 'Machine' }, { title: 'Chips', number: true }, { title: 'Why it has no plan', prose: true }],
    rows.map((machine) => [clusterText(machine.cluster), count(machine.cluster.chips), machine.reason ?? '–']),
  );
}

// Days against dollars: lower left is better on both. GPUs are squares.
function daysAgainstDollars(platforms) {
  const numbers = (machine) => machine.headline ?? machine;
  const shown = platforms.filter(
    (machine) =>
      Number.isFinite(totalDays(numbers(machine))) && Number.isFinite(totalUsd(numbers(machine))),
  );
  if (shown.length < 2) return null;
  const points = shown.map((machine) => {
    const time = totalDays(numbers(machine));
    const cost = totalUsd(numbers(machine));
    const name = machine.best ? String(machine.rank) : machine.cluster.chip;
    const what = machine.best ? clusterText(machine.cluster) : `${machine.cluster.chip}, headline roofline`;
    return {
      x: cost,
      y: time,
      name,
      class: machine.best ? 'ranked-dot' : 'headline',
      title: `${what}: ${days(time)}, ${usd(cost)}`,
    };
  });
  const some = points.some((point) => point.class === 'headline');
  return [
    scatter({
      label: `Days against dollars of ${points.length} machines; the values are in the tables.`,
      points,
      xTitle: 'dollars',
      yTitle: 'time',
      show: { x: usd, y: days },
    }),
    h(
      'p',
      { class: 'soft' },
      `Lower and further left is better.${some ? ' Squares are headline rooflines, not predictions.' : ''}`,
    ),
  ];
}

// The plan that a chosen machine shows in full.
export function planOfMachine(machine) {
  const { best, cluster } = machine;
  const plan = { ...best, cluster };
  return { ...plan, title: `${clusterText(cluster)}: ${meshOfPlan(plan)}` };
}

// One machine and a token budget: the whole training in a sentence.
export function trainingNote(platforms, budget) {
  const only = platforms?.length === 1 && budget ? platforms[0] : null;
  if (!only?.best) return null;
  const said = [days(only.days_for_tokens), usd(only.usd_for_tokens), energy(only.energy_kwh)].filter(
    (text) => text !== '–',
  );
  return [h('p', null, `${compact(budget)} tokens with plan 1: ${said.join(', ')}.`), goodputNote(only.training, 'Plan 1')];
}

// Failures, checkpoints and restarts: what they add, and where the assumptions come from.
function goodputNote(training, name) {
  if (!training) return null;
  if (!training.ends) return h('p', null, 'With these failures no checkpoint would ever be reached: the training does not end.');
  const range = (show, low, high) => `${show(low)} to ${show(high)}`;
  const dollars = Number.isFinite(training.usd)
    ? `, ${usd(training.usd)} (${range(usd, training.usd_low, training.usd_high)})`
    : '';
  const every = Number.isFinite(training.checkpoint_interval_s)
    ? ` A checkpoint every ${plural(training.checkpoint_interval_steps, 'step', 'steps')} (${seconds(training.checkpoint_interval_s)}) costs least;` +
      ` ${fixedFailures(training.failures)} and ${compact(training.tokens_lost)} tokens trained twice are to be expected.`
    : '';
  return h(
    'details',
    { class: 'goodput' },
    h(
      'summary',
      null,
      `${name}, with failures and checkpoints: ${days(training.days)} (${range(days, training.days_low, training.days_high)})${dollars}.`,
    ),
    h('p', null, `${percent(training.goodput_frac)} of the time is productive.${every}`),
    h(
      'ul',
      null,
      training.assumptions.map(({ name, value, source }) => h('li', null, h('code', null, name), ` ${Number(value.toPrecision(3))}: ${source}`)),
    ),
  );
}

const fixedFailures = (failures) => plural(Number(failures.toPrecision(2)), 'failure', 'failures');

// What a configuration that is compared with does to the machines: its kin is ranked on each, and where it cannot run nothing is.
function besideMine(hasNone) {
  return h(
    'p',
    { class: 'soft' },
    'Beside my configuration: with better tiles and placements it is one of the plans of each machine, and of tied plans the simpler comes first. So best plans and the order of machines may be others than without it.',
    hasNone ? ' A machine on which it cannot run has no plan here, and may have one without it.' : null,
  );
}

// withMine: the reader's own configuration is compared with.
export function machinesPanel({ platforms, budget, objective, name, title, actions, onChoose, withMine = false }) {
  const predicted = platforms.filter((machine) => machine.best);
  const refused = platforms.filter((machine) => !machine.best && !machine.headline);
  const scale = intervalScale(predicted.map((machine) => machine.best.estimate));
  const tied = (machine) => predicted.filter((other) => other.tie_group === machine.tie_group).length > 1;
  const rows = predicted.map((machine) => machineRow(machine, scale, tied(machine), budget));
  const columns = [...COLUMNS, ...costColumns(budget), { title: 'Fit' }];
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h2', null, title),
      h('p', null, machinesRule(objective, budget)),
      h('p', { class: 'actions' }, actions),
    ),
    rows.length
      ? choiceTable({ caption: 'Machines, best first', columns, rows, name, onChoose })
      : h('p', null, 'None of these machines has a plan; the table says why.'),
    predicted.length
      ? h('p', { class: 'soft' }, predicted.length === 1 ? 'The machine is shown with its best plan. Choose it to see that.' : `${predicted.length} machines, each with its best plan. Choose one to see it.`)
      : null,
    withMine ? besideMine(refused.length > 0) : null,
    goodputNote(predicted[0]?.training, 'Machine 1'),
    daysAgainstDollars(platforms),
    withoutPlan(refused),
    headlineTable(
      platforms.filter((machine) => machine.headline),
      budget,
      predicted.some((machine) => machine.training),
    ),
  );
}
