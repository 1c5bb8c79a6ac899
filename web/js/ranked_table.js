// The ranked plans as a table to choose from; the last row may be the reader's own configuration.

import { choiceTable } from './choice_table.js';
import { changeText } from './changes.js';
import { h } from './dom.js';
import { gib, percent, rounded, seconds, secondsRange } from './format.js';
import { term } from './glossary.js';
import { intervalCell, intervalScale } from './interval.js';
import { fitVerdict } from './memory_bar.js';
import { clauseOf, marksOf, ordered } from './order.js';
import { batchText, formatText, meshOfPlan, rematText } from './plan_text.js';

const SORTED_COLUMN = { time: 2, slow: 3, hbm: 6, certain: 6, advised: 0 };

const columnsOf = (order) =>
  [
    { title: 'Plan' },
    { title: 'Mesh, remat, format, batch per device', lead: true },
    { title: 'Step time', label: term('step_time', 'Step time'), number: true },
    { title: '90 % interval', label: term('interval', '90 % interval'), wide: true },
    { title: 'MFU', label: term('mfu', 'MFU'), number: true, wide: true },
    { title: 'Tokens/s/chip', label: term('tokens_per_s', 'Tokens/s/chip'), number: true, wide: true },
    { title: 'HBM per device', label: term('hbm', 'HBM per device'), number: true },
  ].map((column, index) => ({ ...column, sorted: index === SORTED_COLUMN[order] }));

const small = (text, attributes) => h('span', { class: 'second', ...attributes }, text);

function cellsOf(plan, { change, scale, clause }) {
  const { config, estimate } = plan;
  const remat = rematText(config);
  return [
    [
      meshOfPlan(plan),
      small(`${remat.text} · ${formatText(config)} · batch ${batchText(config)}`, { title: remat.tensors || null }),
      clause ? h('span', { class: 'clause' }, clause) : null,
    ],
    [
      seconds(estimate.step_time_s),
      small(secondsRange(estimate.step_time_low_s, estimate.step_time_high_s, estimate.step_time_s)),
      change ? small(change) : null,
    ],
    intervalCell(estimate, scale),
    percent(estimate.mfu_frac),
    rounded(estimate.tokens_per_s_per_chip),
    [
      `${gib(estimate.hbm_bytes_per_device)} `,
      fitVerdict(estimate),
      small(`of ${gib(estimate.hbm_limit_bytes_per_device)}`),
    ],
  ];
}

// Plans of another batch do other work: then the time of a token is compared, and said so.
export function changeToMine(mine, estimate) {
  if (mine.tokens_per_step === estimate.tokens_per_step) {
    const change = changeText(mine.step_time_s, estimate.step_time_s);
    return change && `${change} vs mine`;
  }
  const change = changeText(mine.step_time_s / mine.tokens_per_step, estimate.step_time_s / estimate.tokens_per_step);
  return change && `${change} per token vs mine`;
}

// plans: ranked ones, perhaps with the reader's own (rank "mine") last; order: an id of ORDERS; search: the answer's.
export function rankedTable(plans, { prefix, baseline, onChoose, order, search }) {
  const ranked = plans.filter((plan) => plan.rank !== 'mine');
  const mine = plans.filter((plan) => plan.rank === 'mine');
  const scale = intervalScale(plans.map((plan) => plan.estimate));
  const marks = marksOf(ranked);
  const row = (plan) => {
    const isMine = plan.rank === 'mine';
    const said = marks.get(plan) ?? [];
    return {
      value: plan.rank,
      head: isMine ? 'Mine' : [h('span', { class: 'visually-hidden' }, 'Plan '), plan.rank],
      note: said.length ? said.map((mark) => h('span', { class: `mark mark-${mark}` }, mark)) : null,
      cells: cellsOf(plan, {
        change: baseline && !isMine ? changeToMine(baseline.estimate, plan.estimate) : '',
        scale,
        clause: isMine ? '' : clauseOf(plan, ranked, search),
      }),
      class: isMine ? 'mine' : null,
      item: plan,
    };
  };
  const rows = [...ordered(ranked, order), ...mine].map(row);
  const names = { name: `${prefix}plan`, id: `${prefix}ranked` };
  return choiceTable({ caption: 'Plans', columns: columnsOf(order), rows, ...names, onChoose });
}
