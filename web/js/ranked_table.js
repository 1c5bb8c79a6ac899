// The ranked plans as a table to choose from; the last row may be the reader's own configuration.

import { choiceTable } from './choice_table.js';
import { changeText } from './changes.js';
import { h } from './dom.js';
import { gib, percent, rounded, seconds, secondsRange } from './format.js';
import { intervalCell, intervalScale } from './interval.js';
import { verdict } from './memory_bar.js';
import { batchText, formatText, meshText, rematText } from './plan_text.js';

const COLUMNS = [
  { title: 'Rank' },
  { title: 'Mesh, remat, format, batch per device' },
  { title: 'Step time', number: true },
  { title: '90 % interval', wide: true },
  { title: 'MFU', number: true, wide: true },
  { title: 'Tokens/s/chip', number: true, wide: true },
  { title: 'HBM per device', number: true },
];

function cellsOf({ config, estimate }, change, scale) {
  const remat = rematText(config);
  const small = (text, attributes) => h('span', { class: 'second', ...attributes }, text);
  return [
    [
      meshText(estimate.mesh),
      small(`${remat.text} · ${formatText(config)} · batch ${batchText(config)}`, { title: remat.tensors || null }),
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
      verdict(estimate.fit_verdict),
      small(`of ${gib(estimate.hbm_limit_bytes_per_device)}`),
    ],
  ];
}

// Plans of another batch do other work: then the time of a token is compared, and said so.
export function changeToMine(mine, estimate) {
  if (mine.tokens_per_step === estimate.tokens_per_step) {
    const change = changeText(mine.step_time_s, estimate.step_time_s);
    return change && `${change} to mine`;
  }
  const change = changeText(mine.step_time_s / mine.tokens_per_step, estimate.step_time_s / estimate.tokens_per_step);
  return change && `${change} per token to mine`;
}

export function rankedTable(ranked, prefix, baseline, onChoose) {
  const scale = intervalScale(ranked.filter((plan) => plan.rank !== 'mine').map((plan) => plan.estimate));
  const tied = (plan) => plan.tie_group && ranked.filter((other) => other.tie_group === plan.tie_group).length > 1;
  const rows = ranked.map((plan) => {
    const isMine = plan.rank === 'mine';
    const change = baseline && !isMine ? changeToMine(baseline.estimate, plan.estimate) : '';
    return {
      value: plan.rank,
      head: isMine ? 'Mine' : [h('span', { class: 'visually-hidden' }, 'Plan '), plan.rank],
      note: tied(plan) ? `tie ${plan.tie_group}` : null,
      cells: cellsOf(plan, change, isMine ? null : scale),
      class: isMine ? 'mine' : null,
      item: plan,
    };
  });
  const names = { name: `${prefix}plan`, id: `${prefix}ranked` };
  return choiceTable({ caption: 'Plans, best first', columns: COLUMNS, rows, ...names, onChoose });
}
