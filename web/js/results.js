// The answer of advise or estimate: a ranked table to choose from, and the chosen plan in full below it.

import { keepView, viewOf } from './address.js';
import { filesOfAnswer, filesOfConfig, filesOfRun } from './artifacts.js';
import { saveButton } from './copy.js';
import { checkChoice } from './choice_table.js';
import { findingsPanel, planDetail } from './detail.js';
import { announce, h, table } from './dom.js';
import { gib, percent, plural, seconds } from './format.js';
import { term } from './glossary.js';
import { inline } from './inline.js';
import { machinesPanel, planOfMachine, trainingNote } from './machines.js';
import { fitText, fitVerdict } from './memory_bar.js';
import { ORDERS, advisedBy, firstOrder } from './order.js';
import { batchText, clusterText, jobSize, jobTitle, meshOfConfig, meshOfPlan, rematText } from './plan_text.js';
import { rankedTable } from './ranked_table.js';
import { trainingTokens } from './request.js';
import { calibrationNote, runNote } from './run_note.js';
import { emptyTitle, searchStats } from './search_stats.js';
import { picturePanel } from './pictures/panel.js';

// view: {tab}, the tab that is open; keep() writes into the address.
function toolsOf(plan, { actions, repair }, prefix, view, keep) {
  return {
    prefix,
    actions: actions?.(plan) ?? [],
    onRepair: repair && plan.config ? (change, drop) => repair(plan, change, drop) : null,
    tab: view.tab,
    onTab: (tab) => {
      view.tab = tab;
      keep({ tab });
    },
  };
}

// What a link names and an answer does not have: that, and what is shown instead.
function missedText(rank, { rank: shown = 'mine' }) {
  const nameOf = (one) => (one === 'mine' ? 'my configuration' : String(one).replace(/^(machine-|(?=\d))/, (start) => (start ? 'machine ' : 'plan ')));
  return `The link names ${nameOf(rank)}, which this answer does not have. Shown is ${nameOf(shown)}.`;
}

// An answer that arrives after the reader has moved on is not in the address either.
const keeper = (place, { keep = keepView }) => (view) => {
  if (place.isConnected) keep(view);
};

// Where plan `rank` is stored (run), or how the answer can be (onStore), and where its files come from.
function storedAs(request, answer, rank, path, { store }) {
  if (answer.run_id) return { run: { id: answer.run_id, rank }, files: filesOfRun({ id: answer.run_id, rank }) };
  return { onStore: store ? (tab) => store(path, request, { plan: rank, tab }) : null, files: filesOfAnswer(answer, rank) };
}

function downloadButton(answer, name) {
  return saveButton('Download JSON', `${name}.json`, () => `${JSON.stringify(answer, null, 2)}\n`);
}

function nearMisses(misses, open) {
  if (!misses?.length) return null;
  const list = table(
    'Plans that memory keeps out',
    [
      { title: 'Mesh, remat' },
      { title: 'Batch per device', number: true },
      { title: 'Step time', number: true },
      { title: 'HBM per device', number: true },
      { title: 'What is short and what would help', prose: true },
    ],
    misses.map((miss) => [
      [meshOfConfig(miss.config), h('span', { class: 'second' }, rematText(miss.config).text)],
      batchText(miss.config),
      seconds(miss.step_time_s),
      gib(miss.hbm_bytes_per_device),
      inline(miss.reason),
    ]),
  );
  const summary = `${plural(misses.length, 'plan', 'plans')} that memory keeps out, and what would let ${misses.length === 1 ? 'it' : 'them'} in`;
  return open ? list : h('details', null, h('summary', null, summary), list);
}

// The rule of the order, to see and to change, and what the plan numbers mean.
function orderBar({ search, chosen, prefix, onOrder }) {
  const id = `${prefix}plan-order`;
  const select = h(
    'select',
    { id, class: 'small-select' },
    ORDERS.map((order) => h('option', { value: order.id, selected: order.id === chosen }, order.title)),
  );
  const end = h('span', { class: 'soft' });
  const sayEnd = () => end.replaceChildren(` ${ORDERS.find((order) => order.id === select.value).end}`);
  select.addEventListener('change', () => {
    sayEnd();
    onOrder(select.value);
  });
  sayEnd();
  return h(
    'div',
    { class: 'order' },
    h('p', null, h('label', { for: id }, 'Ordered by '), select, end),
    h(
      'p',
      { class: 'soft' },
      `Plan numbers are the advised order: by ${advisedBy(search)}; plans within ${percent(search?.tie_frac)} of the best are a `,
      term('tie', 'tie'),
      ', of which the surer, then the simpler comes first.',
    ),
  );
}

function fileName(request, kind) {
  return `${kind}-${jobTitle(request)
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/g, '-')}`;
}

// The reader's own configuration as the last row of the plans, where one was given.
function baselineOf(request, answer) {
  if (!answer.baseline?.estimate) return null;
  const { config, xla_flags: flags } = request.baseline ?? {};
  const files = filesOfConfig({ ...jobOf(request, answer.cluster), config, ...(flags?.length ? { xla_flags: flags } : {}) });
  return { xla_flags: flags, config, files, cluster: answer.cluster, ...answer.baseline, rank: 'mine' };
}

// The table, drawn anew in another order; the choice stays.
function plansTable({ answer, plans, prefix, baseline, onChoose }) {
  const place = h('div');
  const name = `${prefix}plan`;
  const objective = answer.search?.objective;
  const draw = (order) => {
    const chosen = place.querySelector(`input[name="${name}"]:checked`)?.value;
    place.replaceChildren(rankedTable(plans, { prefix, baseline, onChoose, order, search: answer.search }));
    if (chosen) checkChoice(place, name, chosen);
  };
  draw(firstOrder(objective));
  const several = (answer.ranked ?? []).length > 1;
  return [several ? orderBar({ search: answer.search, chosen: firstOrder(objective), prefix, onOrder: draw }) : null, place];
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
      h('p', null, none ? emptyTitle(answer.search) : best),
      h('p', { class: 'actions' }, actions),
    ),
    none && answer.search?.empty_why ? h('p', null, inline(answer.search.empty_why)) : null,
    plans.length ? plansTable({ answer, plans, prefix, baseline, onChoose }) : null,
    trainingNote(answer.platforms, trainingTokens(request)),
    nearMisses(answer.near_misses, none),
    searchStats(answer.search, Boolean(baseline)),
    h('p', { class: 'soft' }, jobSize(answer)),
    calibrationNote(request, answer),
    runNote(request, answer),
  );
}

// The job that a plan is estimated again for: the model as it was given, its machine, and what else its numbers depend on.
function jobOf({ model, cluster: asked, project, software }, cluster) {
  const rest = { ...(project ? { project } : {}), ...(software ? { software } : {}) };
  if (asked || !cluster) return { model, cluster: asked ?? cluster, ...rest };
  const { chip, topology, slices, price_usd_per_chip_hour: price } = cluster;
  return { model, cluster: { chip, topology, slices, ...(price ? { price_usd_per_chip_hour: price } : {}) }, ...rest };
}

// All plans in one picture; a click on one is a click in the table.
function tradeOffPanel({ answer, ranked, baseline, chosen, choose }) {
  const points = [...ranked, ...(baseline ? [baseline] : []), ...(answer.pareto ?? [])];
  if (points.length < 2) return null;
  const { pareto, trade_off: cloud, search } = answer;
  return picturePanel('trade_off', 'Step time against memory', { ranked, pareto, baseline, cloud, memoryFrac: search?.memory_frac, chosen, choose });
}

// Plans of one machine, below the machines where several were compared; the best plan is open at first.
function showAdvice(place, request, answer, tools) {
  const prefix = place.id === 'results' ? '' : 'run-'; // a stored run may be open while the form keeps its answer
  const name = `${prefix}plan`;
  const detail = h('div', { class: 'results plan-detail', id: `${prefix}detail` });
  const missed = h('p', { class: 'link-note', role: 'status' });
  const baseline = baselineOf(request, answer);
  const ranked = (answer.ranked ?? []).map((plan) => ({
    cluster: answer.cluster,
    ...storedAs(request, answer, plan.rank, '/v1/advise', tools),
    job: jobOf(request, answer.cluster),
    ...plan,
  }));
  const plans = baseline ? [...ranked, baseline] : ranked;
  const machines = answer.platforms?.length > 1 ? answer.platforms : null;
  const view = {};
  const keep = keeper(place, tools);
  let current = null;
  const show = (plan) => {
    current = plan;
    missed.textContent = '';
    const sensitivities = plan.rank === 1 ? answer.sensitivities : null;
    detail.replaceChildren(...planDetail({ job: jobOf(request, plan.cluster ?? answer.cluster), cluster: answer.cluster, ...plan, sensitivities, baseline }, toolsOf(plan, tools, prefix, view, keep)));
    return `${plan.title}, ${seconds(plan.estimate.step_time_s)} per step, ${fitText(plan.estimate)}`;
  };
  const showMachine = (machine) => {
    const { cluster, best, rank } = machine;
    keep({ plan: `machine-${rank}` });
    return show({ ...planOfMachine(machine), files: filesOfAnswer({ ...answer, cluster, ranked: [{ ...best, rank: 1 }] }) });
  };
  const titled = (plan) => ({
    ...plan,
    title: `${plan.rank === 'mine' ? 'My configuration' : `Plan ${plan.rank}`}: ${meshOfPlan(plan)}`,
  });
  const download = downloadButton(answer, fileName(request, 'advice'));
  place.replaceChildren(
    missed,
    machines
      ? machinesPanel({
          platforms: machines,
          budget: trainingTokens(request),
          objective: request.search?.objective,
          name,
          title: jobTitle(request),
          actions: download,
          onChoose: (machine) => announce(showMachine(machine)),
          withMine: Boolean(request.baseline),
        })
      : '',
    plansPanel({
      request,
      answer,
      plans,
      prefix,
      baseline,
      title: machines ? `Plans on ${clusterText(answer.cluster ?? {})}` : jobTitle(request),
      onChoose: (plan) => {
        keep({ plan: String(plan.rank) });
        announce(show(titled(plan)));
      },
      actions: machines ? [] : download,
    }),
    tradeOffPanel({
      answer,
      ranked,
      baseline,
      chosen: () => current,
      choose: (rank) => place.querySelector(`input[name="${name}"][value="${rank}"]`)?.click(),
    }) ?? '',
    findingsPanel('Warnings', answer.warnings, 'warning') ?? '',
    detail,
  );
  const open = ({ plan: rank, tab }) => {
    if (!plans.length) return;
    view.tab = tab;
    const machine = machines?.find((one) => one.best && `machine-${one.rank}` === rank);
    if (machine) {
      checkChoice(place, name, rank);
      showMachine(machine);
      return;
    }
    const found = plans.find((plan) => String(plan.rank) === rank);
    const wanted = found ?? plans[0];
    checkChoice(place, name, wanted.rank);
    show(titled(wanted));
    if (rank && !found) missed.textContent = missedText(rank, wanted);
    keep({ plan: String(wanted.rank) });
  };
  open(viewOf());
  announce(
    ranked.length
      ? `${ranked.length} plans; the best takes ${seconds(ranked[0].estimate.step_time_s)} per step`
      : emptyTitle(answer.search).replace(/\.$/, ''),
  );
  return open;
}

function showEstimate(place, request, answer, tools) {
  const plan = {
    config: answer.config ?? request.config,
    xla_flags: answer.xla_flags ?? [request.xla_flags ?? []].flat(),
    estimate: answer,
    cluster: answer.cluster,
    ...storedAs(request, answer, 1, '/v1/estimate', tools),
    job: jobOf(request, answer.cluster),
  };
  plan.title = `My configuration: ${meshOfPlan(plan)}`;
  const view = {};
  const keep = keeper(place, tools);
  const detail = h('div', { class: 'results plan-detail' });
  const missed = h('p', { class: 'link-note', role: 'status' });
  const open = ({ plan: rank, tab }) => {
    view.tab = tab;
    missed.textContent = rank && !['mine', '1'].includes(rank) ? missedText(rank, plan) : ''; // stored, it is plan 1 of its run
    detail.replaceChildren(...planDetail(plan, toolsOf(plan, tools, place.id === 'results' ? '' : 'run-', view, keep)));
    keep({ plan: 'mine' });
  };
  place.replaceChildren(
    missed,
    h(
      'section',
      { class: 'panel' },
      h(
        'div',
        { class: 'panel-head' },
        h('h2', null, jobTitle(request)),
        h('p', { class: 'soft' }, jobSize(answer)),
        fitVerdict(answer),
        h('p', { class: 'actions' }, downloadButton(answer, fileName(request, 'estimate'))),
      ),
      calibrationNote(request, answer),
      runNote(request, answer),
    ),
    detail,
  );
  open(viewOf());
  announce(`Estimated: ${seconds(answer.step_time_s)} per step, ${fitText(answer)}`);
  return open;
}

// Fills `place` with the answer to `request`. tools: {actions(plan)?: buttons beside a plan's title, repair(plan, change)?,
// store(path, request, view)?: stores the answer and opens the run at that {plan, tab}, keep(view)?: writes it into the address}.
// Returns open({plan, tab}), which shows that plan of the answer.
export function showAnswer(place, request, answer, tools = {}) {
  return (Array.isArray(answer.ranked) ? showAdvice : showEstimate)(place, request, answer, tools);
}
