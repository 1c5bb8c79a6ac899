// The answer of advise or estimate: a ranked table to choose from, and the chosen plan in full below it.

import { saveAs } from './copy.js';
import { changeText, findingsPanel, planDetail } from './detail.js';
import { announce, h, table } from './dom.js';
import { count, gib, percent, plural, rounded, seconds, secondsRange, words } from './format.js';
import { verdict } from './memory_bar.js';
import { batchText, formatText, jobSize, jobTitle, meshOfConfig, meshText, rematText } from './plan_text.js';
import { tradeoff } from './tradeoff.js';

const COLUMNS = [
  { title: 'Rank' },
  { title: 'Mesh, remat, format' },
  { title: 'Batch per device', number: true, wide: true },
  { title: 'Step time', number: true },
  { title: 'MFU', number: true, wide: true },
  { title: 'Tokens/s/chip', number: true, wide: true },
  { title: 'HBM per device', number: true },
];

function runNote(request, answer) {
  if (answer.run_id)
    return h(
      'p',
      { class: 'soft' },
      'Stored as run ',
      h('a', { href: `#/runs/${encodeURIComponent(answer.run_id)}` }, answer.run_id),
      '.',
    );
  if (request.store && !answer.stored)
    return h('p', { class: 'soft' }, 'Not stored: the daemon has no database at the moment.');
  return null;
}

function downloadButton(answer, name) {
  const button = h('button', { type: 'button', class: 'small' }, 'Download JSON');
  button.addEventListener('click', () => saveAs(`${name}.json`, `${JSON.stringify(answer, null, 2)}\n`));
  return button;
}

function searchNote(search) {
  if (!search) return null;
  const parts = [
    `${count(search.considered)} plans considered`,
    `${count(search.illegal)} illegal`,
    `${count(search.out_of_memory)} out of memory`,
    `${count(search.pruned)} pruned`,
    `${count(search.evaluated)} evaluated`,
  ];
  const time = typeof search.elapsed_ms === 'number' ? ` in ${seconds(search.elapsed_ms / 1000)}` : '';
  return h(
    'p',
    { class: 'soft' },
    `${parts.join(', ')}${time}. ${search.exhaustive ? 'The whole space was covered.' : 'The budget ended the search early; more evaluations may find better.'}`,
  );
}

function rankedRow(plan, prefix, baseline, tied, onChoose) {
  const { config, estimate } = plan;
  const remat = rematText(config);
  const isMine = plan.rank === 'mine';
  const radio = h('input', {
    type: 'radio',
    name: `${prefix}plan`,
    value: plan.rank,
    id: `${prefix}plan-${plan.rank}`,
  });
  radio.addEventListener('change', () => onChoose(plan));
  const change = baseline && !isMine ? changeText(baseline.estimate.step_time_s, estimate.step_time_s) : '';
  const row = h(
    'tr',
    { class: isMine ? 'mine' : null },
    h(
      'th',
      { scope: 'row' },
      h('label', null, radio, isMine ? 'Mine' : [h('span', { class: 'visually-hidden' }, 'Plan '), plan.rank]),
      tied ? h('span', { class: 'second' }, `tie ${plan.tie_group}`) : null,
    ),
    h(
      'td',
      null,
      meshText(estimate.mesh),
      h('span', { class: 'second', title: remat.tensors || null }, `${remat.text} · ${formatText(config)}`),
      h('span', { class: 'second narrow' }, `batch ${batchText(config)} per device`),
    ),
    h('td', { class: 'number wide' }, batchText(config)),
    h(
      'td',
      { class: 'number' },
      seconds(estimate.step_time_s),
      h(
        'span',
        { class: 'second' },
        secondsRange(estimate.step_time_low_s, estimate.step_time_high_s, estimate.step_time_s),
      ),
      change ? h('span', { class: 'second' }, `${change} to mine`) : null,
    ),
    h('td', { class: 'number wide' }, percent(estimate.mfu_frac)),
    h('td', { class: 'number wide' }, rounded(estimate.tokens_per_s_per_chip)),
    h(
      'td',
      { class: 'number' },
      `${gib(estimate.hbm_bytes_per_device)} `,
      verdict(estimate.fit_verdict),
      h('span', { class: 'second' }, `of ${gib(estimate.hbm_limit_bytes_per_device)}`),
    ),
  );
  row.addEventListener('click', (event) => {
    if (event.target.closest('label') || String(window.getSelection())) return;
    radio.checked = true;
    radio.focus({ preventScroll: true });
    onChoose(plan);
  });
  return row;
}

function rankedTable(ranked, prefix, baseline, onChoose) {
  const tied = (plan) => plan.tie_group && ranked.filter((other) => other.tie_group === plan.tie_group).length > 1;
  return h(
    'div',
    { class: 'scroll', role: 'group', 'aria-label': 'Plans, best first; choose one to see it in full' },
    h(
      'table',
      { class: 'ranked', id: `${prefix}ranked` },
      h('caption', { class: 'visually-hidden' }, 'Plans, best first'),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          COLUMNS.map((column) =>
            h(
              'th',
              {
                scope: 'col',
                class: [column.number && 'number', column.wide && 'wide'].filter(Boolean).join(' ') || null,
              },
              column.title,
            ),
          ),
        ),
      ),
      h(
        'tbody',
        null,
        ranked.map((plan) => rankedRow(plan, prefix, baseline, tied(plan), onChoose)),
      ),
    ),
  );
}

function nearMisses(misses, open) {
  if (!misses?.length) return null;
  const list = table(
    'Plans out of memory',
    [
      { title: 'Mesh, remat' },
      { title: 'Batch per device', number: true },
      { title: 'Step time', number: true },
      { title: 'HBM per device', number: true },
      { title: 'What is short and what would make it fit' },
    ],
    misses.map((miss) => [
      [meshOfConfig(miss.config), h('span', { class: 'second' }, rematText(miss.config).text)],
      batchText(miss.config),
      seconds(miss.step_time_s),
      gib(miss.hbm_bytes_per_device),
      miss.reason,
    ]),
  );
  const summary = `${plural(misses.length, 'plan', 'plans')} out of memory, and what would make ${misses.length === 1 ? 'it' : 'them'} fit`;
  return open ? list : h('details', null, h('summary', null, summary), list);
}

// Plans whose predicted times differ less than the prediction can tell share a tie group.
function tieNote(ranked, search) {
  if (!ranked.some((plan, index) => index > 0 && plan.tie_group && plan.tie_group === ranked[index - 1].tie_group))
    return null;
  return h(
    'p',
    { class: 'soft' },
    `Plans of one tie differ by less than ${percent(search?.tie_frac)}: take them as equally fast.`,
  );
}

function fileName(request, kind) {
  return `${kind}-${jobTitle(request)
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/g, '-')}`;
}

function showAdvice(place, request, answer, actions) {
  const ranked = answer.ranked ?? [];
  const prefix = place.id === 'results' ? '' : 'run-'; // a stored run may be open while the form keeps its answer
  const detail = h('div', { class: 'results', id: `${prefix}detail` });
  const baseline = answer.baseline?.estimate
    ? { xla_flags: request.baseline?.xla_flags, config: request.baseline?.config, ...answer.baseline, rank: 'mine' }
    : null;
  const choices = baseline ? [...ranked, baseline] : ranked;
  const choose = (plan, quiet) => {
    const name = plan.rank === 'mine' ? 'My configuration' : `Plan ${plan.rank}`;
    detail.replaceChildren(
      ...planDetail({ ...plan, title: `${name}: ${meshText(plan.estimate.mesh)}` }, actions(plan)),
    );
    if (!quiet)
      announce(`${name}, ${seconds(plan.estimate.step_time_s)} per step, ${words(plan.estimate.fit_verdict)}`);
  };
  const none = ranked.length === 0;
  place.replaceChildren(
    h(
      'section',
      { class: 'panel' },
      h(
        'div',
        { class: 'panel-head' },
        h('h2', null, jobTitle(request)),
        h(
          'p',
          null,
          none
            ? 'No legal plan fits in memory.'
            : `The best ${ranked.length === 1 ? 'plan' : `${ranked.length} plans`}`,
        ),
        h('p', { class: 'actions' }, downloadButton(answer, fileName(request, 'advice'))),
      ),
      choices.length ? rankedTable(choices, prefix, baseline, choose) : null,
      none && answer.search?.empty_why ? h('p', null, answer.search.empty_why) : null,
      tieNote(ranked, answer.search),
      tradeoff(ranked, answer.pareto),
      nearMisses(answer.near_misses, none),
      h('p', { class: 'soft' }, jobSize(answer)),
      searchNote(answer.search),
      runNote(request, answer),
    ),
    findingsPanel('Warnings', answer.warnings, 'warning') ?? '',
    detail,
  );
  if (choices.length) {
    place.querySelector('.ranked input').checked = true;
    choose(choices[0], true);
  }
  announce(
    none
      ? 'No legal plan fits in memory'
      : `${ranked.length} plans; the best takes ${seconds(ranked[0].estimate.step_time_s)} per step`,
  );
}

function showEstimate(place, request, answer, actions) {
  const plan = {
    title: `My configuration: ${meshText(answer.mesh)}`,
    config: answer.config ?? request.config,
    xla_flags: answer.xla_flags ?? [request.xla_flags ?? []].flat(),
    estimate: answer,
  };
  place.replaceChildren(
    h(
      'section',
      { class: 'panel' },
      h(
        'div',
        { class: 'panel-head' },
        h('h2', null, jobTitle(request)),
        h('p', { class: 'soft' }, jobSize(answer)),
        verdict(answer.fit_verdict),
        h('p', { class: 'actions' }, downloadButton(answer, fileName(request, 'estimate'))),
      ),
      runNote(request, answer),
    ),
    ...planDetail(plan, actions(plan)),
  );
  announce(`Estimated: ${seconds(answer.step_time_s)} per step, ${words(answer.fit_verdict)}`);
}

// Fills `place` with the answer to `request`. actions(plan) gives the buttons beside a plan's settings.
export function showAnswer(place, request, answer, actions = () => []) {
  if (Array.isArray(answer.ranked)) showAdvice(place, request, answer, actions);
  else showEstimate(place, request, answer, actions);
}
