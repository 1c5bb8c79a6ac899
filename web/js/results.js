// The answer of advise or estimate: a ranked table to choose from, and the chosen plan in full below it.

import { saveButton } from './copy.js';
import { checkChoice } from './choice_table.js';
import { findingsPanel, planDetail } from './detail.js';
import { announce, h, table } from './dom.js';
import { gib, percent, plural, seconds, words } from './format.js';
import { machinesPanel, planOfMachine, trainingNote } from './machines.js';
import { verdict } from './memory_bar.js';
import { batchText, clusterText, jobSize, jobTitle, meshOfConfig, meshText, rematText } from './plan_text.js';
import { rankedTable } from './ranked_table.js';
import { runNote } from './run_note.js';
import { searchStats } from './search_stats.js';
import { tradeoff } from './tradeoff.js';

function downloadButton(answer, name) {
  return saveButton('Download JSON', `${name}.json`, () => `${JSON.stringify(answer, null, 2)}\n`);
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
      { title: 'What is short and what would make it fit', prose: true },
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

// What the order of the plans means; those whose predicted times differ less than the prediction can tell share a tie group.
function orderNote(ranked, search) {
  if (ranked.length < 2) return null;
  const tied = ranked.some(
    (plan, index) => index > 0 && plan.tie_group && plan.tie_group === ranked[index - 1].tie_group,
  );
  const said = [];
  if (search?.objective !== 'hbm') said.push('Ordered by the upper end of the interval, which one can count on.');
  if (tied)
    said.push(
      `Plans of one tie differ by less than ${percent(search?.tie_frac)}: take them as equally fast; the simplest stands first.`,
    );
  return said.length ? h('p', { class: 'soft' }, said.join(' ')) : null;
}

function fileName(request, kind) {
  return `${kind}-${jobTitle(request)
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/g, '-')}`;
}

// The reader's own configuration as the last row of the plans, where one was given.
function baselineOf(request, answer) {
  return answer.baseline?.estimate
    ? { xla_flags: request.baseline?.xla_flags, config: request.baseline?.config, ...answer.baseline, rank: 'mine' }
    : null;
}

function plansPanel({ request, answer, plans, prefix, baseline, title, onChoose, actions }) {
  const ranked = answer.ranked ?? [];
  const none = ranked.length === 0;
  const best = `The best ${ranked.length === 1 ? 'plan' : `${ranked.length} plans`}`;
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h2', null, title),
      h('p', null, none ? 'No legal plan fits in memory.' : best),
      h('p', { class: 'actions' }, actions),
    ),
    plans.length ? rankedTable(plans, prefix, baseline, onChoose) : null,
    none && answer.search?.empty_why ? h('p', null, answer.search.empty_why) : null,
    orderNote(ranked, answer.search),
    trainingNote(answer.platforms, request.workload?.token_budget),
    tradeoff(ranked, answer.pareto),
    nearMisses(answer.near_misses, none),
    searchStats(answer.search),
    h('p', { class: 'soft' }, jobSize(answer)),
    runNote(request, answer),
  );
}

// Plans of one machine, below the machines where several were compared; the best plan is open at first.
function showAdvice(place, request, answer, actions) {
  const prefix = place.id === 'results' ? '' : 'run-'; // a stored run may be open while the form keeps its answer
  const name = `${prefix}plan`;
  const detail = h('div', { class: 'results', id: `${prefix}detail` });
  const baseline = baselineOf(request, answer);
  const ranked = (answer.ranked ?? []).map((plan) => ({
    cluster: answer.cluster,
    run: answer.run_id ? { id: answer.run_id, rank: plan.rank } : null,
    ...plan,
  }));
  const plans = baseline ? [...ranked, baseline] : ranked;
  const machines = answer.platforms?.length > 1 ? answer.platforms : null;
  const show = (plan) => {
    const sensitivities = plan.rank === 1 ? answer.sensitivities : null;
    detail.replaceChildren(...planDetail({ ...plan, sensitivities }, actions(plan)));
    return `${plan.title}, ${seconds(plan.estimate.step_time_s)} per step, ${words(plan.estimate.fit_verdict)}`;
  };
  const titled = (plan) => ({
    ...plan,
    title: `${plan.rank === 'mine' ? 'My configuration' : `Plan ${plan.rank}`}: ${meshText(plan.estimate.mesh)}`,
  });
  const download = downloadButton(answer, fileName(request, 'advice'));
  place.replaceChildren(
    machines
      ? machinesPanel({
          platforms: machines,
          budget: request.workload?.token_budget,
          name,
          title: jobTitle(request),
          actions: download,
          onChoose: (machine) => announce(show(planOfMachine(machine))),
        })
      : '',
    plansPanel({
      request,
      answer,
      plans,
      prefix,
      baseline,
      title: machines ? `Plans on ${clusterText(answer.cluster ?? {})}` : jobTitle(request),
      onChoose: (plan) => announce(show(titled(plan))),
      actions: machines ? [] : download,
    }),
    findingsPanel('Warnings', answer.warnings, 'warning') ?? '',
    detail,
  );
  if (plans.length) {
    checkChoice(place, name, plans[0].rank);
    show(titled(plans[0]));
  }
  announce(
    ranked.length
      ? `${ranked.length} plans; the best takes ${seconds(ranked[0].estimate.step_time_s)} per step`
      : 'No legal plan fits in memory',
  );
}

function showEstimate(place, request, answer, actions) {
  const plan = {
    title: `My configuration: ${meshText(answer.mesh)}`,
    config: answer.config ?? request.config,
    xla_flags: answer.xla_flags ?? [request.xla_flags ?? []].flat(),
    estimate: answer,
    cluster: answer.cluster,
    run: answer.run_id ? { id: answer.run_id, rank: 1 } : null,
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
