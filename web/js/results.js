// The answer of advise or estimate: a ranked table to choose from, and the chosen plan in full below it.

import { saveButton } from './copy.js';
import { checkChoice } from './choice_table.js';
import { findingsPanel, planDetail } from './detail.js';
import { announce, h, table } from './dom.js';
import { count, gib, percent, plural, rounded, seconds, secondsRange, words } from './format.js';
import { verdict } from './memory_bar.js';
import { batchText, formatText, jobSize, jobTitle, meshOfConfig, meshText, rematText } from './plan_text.js';
import { rankedTable } from './ranked_table.js';
import { runNote } from './run_note.js';
import { tradeoff } from './tradeoff.js';

function downloadButton(answer, name) {
  return saveButton('Download JSON', `${name}.json`, () => `${JSON.stringify(answer, null, 2)}\n`);
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
    checkChoice(place, `${prefix}plan`, choices[0].rank);
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
