// The form view: fields to state and back, what shows in which mode, sending, and keeping the address up to date.

import { keepView, leaveTab, viewOf } from './address.js';
import { post, setToken, token } from './api.js';
import { connectAsk } from './ask.js';
import { modelNote, sliceNote } from './catalog.js';
import { copyFrom } from './copy.js';
import { announce, byId, h } from './dom.js';
import { clearErrors, showErrors } from './errors.js';
import { configToLines, parseConfig, passedOverText } from './config_text.js';
import { LABELS } from './labels.js';
import { fillChips, fillSlices, sliceLike } from './machine_choice.js';
import { connectMachines, drawMachines } from './machines_form.js';
import { queryToState, stateToQuery } from './permalink.js';
import { isRecipe, readRecipe } from './recipe.js';
import { DEFAULTS, buildRequest, changedSettings, fieldOfPointer, inheritedOf, overruledOf } from './request.js';
import { showAnswer } from './results.js';
import { parseRoute } from './router.js';
import { sweepAddress } from './sweep_address.js';

const SUBMIT_TEXT = { advise: 'Advise', machines: 'Compare', estimate: 'Estimate my configuration' };
const MODEL_TEXT = {
  hf: { label: 'Hugging Face config.json', hint: 'The whole file as it is on the hub.' },
  dims: {
    label: 'MaxText dimensions',
    hint: 'base_emb_dim, base_num_query_heads, base_num_kv_heads, head_dim, base_mlp_dim, base_num_decoder_layers, vocab_size …, as key=value lines or JSON.',
  },
};

let catalog = { models: [], chips: [], gpus: [], slices: [] };
let ask = null;
let answered = null; // the form's state that the answer on screen is of
let openPlan = null; // shows a plan of that answer
let shown = {}; // {plan, tab} of it on screen

const form = () => byId('form');
// Devices of all slices the form names, where the catalog knows the slice; several machines have no one number.
function devices(state) {
  if (state.mode === 'machines') return null;
  const slice = catalog.slices.find((row) => row.chip === state.chip && row.topology === state.topology);
  return slice ? slice.devices * (Number(state.slices) || 1) : null;
}

// Beside pasted settings: what they leave open and take from the form.
function showInherited(state) {
  byId('config-read').textContent = '';
  if (isRecipe(state.config)) {
    byId('config-inherits').textContent = '';
    return;
  }
  const parsed = state.config.trim() ? parseConfig(state.config) : null;
  const isRead = parsed && !parsed.errors.length;
  const named = (keys) => Object.entries(keys).map(([key, value]) => `${key}=${value}`).join(', ');
  const taken = isRead ? named(inheritedOf(state, parsed.value, devices(state))) : '';
  const overruled = isRead && state.mode === 'estimate' ? named(overruledOf(state, parsed.value, devices(state))) : '';
  const said = [
    taken && `Not in the text, so taken from the workload of this form: ${taken}.`,
    overruled && `The text’s own count, not the workload of this form: ${overruled}.`,
    passedOverText(parsed?.passedOver ?? []),
  ];
  byId('config-inherits').textContent = said.filter(Boolean).join(' ');
}

const hash = (state) => `#/${stateToQuery(state) ? `?${stateToQuery(state)}` : ''}`;

export function readState() {
  const data = new FormData(form());
  return Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, String(data.get(name) ?? '')]));
}

function showNotes() {
  const model = catalog.models.find((row) => row.name === byId('model').value.trim());
  byId('model-hint').textContent = modelNote(model) || 'Type a part of the name, for example 70b.';
  const slice = catalog.slices.find(
    (row) => row.chip === byId('chip').value && row.topology === byId('topology').value,
  );
  const slices = Number(byId('slices').value);
  byId('topology-hint').textContent =
    slice && slices > 1
      ? `${sliceNote({ chips: slice.chips * slices, devices: slice.devices * slices })} in all slices`
      : slice?.name
        ? `Known as ${slice.name}`
        : '';
}

function showModes() {
  const state = readState();
  const { mode, model_kind: kind } = state;
  for (const part of form().querySelectorAll('[data-mode]'))
    part.hidden = !part.dataset.mode.split(' ').includes(mode);
  form().querySelector('[data-field="model"]').hidden = kind !== 'catalog';
  form().querySelector('[data-field="model_text"]').hidden = kind === 'catalog';
  if (kind !== 'catalog') {
    byId('model_text-label').textContent = MODEL_TEXT[kind].label;
    byId('model_text-hint').textContent = MODEL_TEXT[kind].hint;
  }
  const mine = byId('mine-details');
  mine.classList.toggle('forced', mode === 'estimate');
  if (mode === 'estimate') mine.open = true;
  ask?.relabel();
  showNotes();
  showInherited(state);
}

// A choice that a control does not have leaves the usual one.
function choose(control, value, usual) {
  control.value = value;
  if (control.value !== value && control.type !== 'textarea') control.value = usual;
}

// What of a link's state is no choice of its control, as errors of the form.
function notTaken(state) {
  const taken = readState();
  const controls = Object.keys(CHOICES).filter((name) => state[name] !== taken[name]);
  return controls.map((name) => ({
    pointer: byId(name) ? `/${name}` : '',
    detail: `${CHOICES[name]}: the link says “${state[name]}”, which is no choice; the usual one is chosen.`,
  }));
}

export function writeState(state) {
  for (const [name, value] of Object.entries({ ...DEFAULTS, ...state })) {
    if (name === 'chip') fillChips(byId('chip'), catalog, value);
    else if (name === 'topology') fillSlices(byId('topology'), catalog, byId('chip').value, value);
    else if (name === 'store' || name === 'sensitivities') byId(name).checked = Boolean(value);
    else choose(form().elements[name], value, DEFAULTS[name]);
  }
  drawMachines(catalog);
  byId('pins-details').open ||= Boolean(state.pins);
  byId('mine-details').open ||= Boolean(state.config || state.xla_flags);
  byId('options-details').open ||= Boolean(state.price || state.project || state.label || state.store);
  showModes();
}

// The lists arrive after the page; what was chosen or typed in the meantime stays.
export function useCatalog(loaded) {
  const state = readState();
  catalog = loaded;
  byId('models').replaceChildren(
    ...catalog.models.map((model) => h('option', { value: model.name }, modelNote(model))),
  );
  writeState(state);
}

// The address of an answer stays in the history: one goes back to it from another question.
function keepAddress() {
  history[viewOf().plan ? 'pushState' : 'replaceState'](null, '', hash(readState()));
}

const isAnswered = (state) => answered !== null && stateToQuery(answered) === stateToQuery(state);

// A plan is named only beside the question that it answers: the form may ask another by now, or another page be open.
function keepPlan(view) {
  Object.assign(shown, view);
  const { view: page, query } = parseRoute(location.hash);
  if (page !== 'plan' || !isAnswered(readState())) return;
  if (!isAnswered(queryToState(query))) history.replaceState(null, '', hash(answered));
  keepView(view);
}

// The machine of a plan, which is not the form's one where several were compared.
function clusterState(cluster) {
  if (answered.mode !== 'machines' || !cluster) return {};
  const { chip, topology, slices, price_usd_per_chip_hour: price } = cluster;
  return { chip, topology, slices: String(slices ?? 1), price: String(price ?? '') };
}

function planActions(plan) {
  if (!plan.config) return [];
  const button = h('button', { type: 'button', class: 'small' }, 'Edit as my configuration');
  button.addEventListener('click', () => {
    writeState({
      ...answered,
      ...clusterState(plan.cluster),
      mode: 'estimate',
      config: configToLines(plan.config),
      xla_flags: (plan.xla_flags ?? []).join('\n'),
    });
    keepAddress();
    byId('config').focus();
    announce('The settings are in the form; change them and estimate');
  });
  const { body, errors } = buildRequest(answered);
  const address = errors.length ? null : sweepAddress(plan, body);
  const sweep = address ? h('a', { href: address, class: 'button small' }, 'Sweep around it') : null;
  return [button, sweep].filter(Boolean);
}

// The settings of a plan with a change, and without keys and flags that are refused, estimated at once; of the job that was asked
// for, whatever the form says by now.
function repair(plan, change, drop) {
  writeState({
    ...answered,
    ...clusterState(plan.cluster),
    mode: 'estimate',
    ...changedSettings(plan, change, drop),
  });
  keepAddress();
  ask.submit();
}

// Asks the question on screen once more, to be stored, and opens the run.
async function storeAnswer(path, request, view) {
  const { run_id: id } = await post(path, { ...request, store: true });
  leaveTab(byId('results'));
  location.hash = `#/runs/${encodeURIComponent(id)}?${new URLSearchParams(view)}`;
}

// The page opened without a question in its address, as by its name in the header: the form holds one, and perhaps its answer.
export function returnToForm() {
  const state = readState();
  if (!stateToQuery(state)) return;
  history.replaceState(null, '', hash(state));
  if (isAnswered(state)) keepView(shown);
}

const CHOICES = { mode: 'Task', model_kind: 'Model', batch_kind: 'Batch counted in', quantization: LABELS.quantization, objective: LABELS.objective };

// A link: the form as it was and, where it names a plan, the answer too, once the catalog is there (ready).
export async function openLink(query, ready) {
  const state = queryToState(query);
  writeState(state);
  clearErrors(form());
  const errors = notTaken(state);
  if (errors.length) {
    showErrors(form(), (pointer) => ({ field: pointer.slice(1), below: '' }), { title: 'The link was changed: check the form, then ask', errors });
    return;
  }
  const view = viewOf(`?${query}`);
  if (!view.plan) return;
  if (isAnswered(state)) {
    shown = view;
    openPlan(view); // another one may have been chosen since
    return;
  }
  await ready;
  if (stateToQuery(readState()) === stateToQuery(state)) ask.submit({ keep: true });
}

// A pasted recipe becomes the entries that it means. What it leaves open is the form's.
async function takeRecipe(signal) {
  const now = readState();
  const { chip, topology, slices } = now;
  const model = now.model_kind === 'catalog' ? now.model.trim() : null;
  const { state, said } = await readRecipe(now.config, { model, cluster: { chip, topology, slices: Number(slices) || 1 } }, signal);
  writeState({ ...now, ...state, mode: now.mode === 'machines' ? 'advise' : now.mode });
  keepAddress();
  byId('config-read').textContent = said;
  announce(said);
}

const locatorOf = (state) => (pointer) => fieldOfPointer(pointer, state);

function openWhatIsNeeded(problem) {
  if (problem.status === 401 || problem.status === 403) byId('options-details').open = true;
}

// A failure that no request of the form caused, such as a catalog that cannot be read.
export function showFormFailure(problem) {
  showErrors(form(), locatorOf(readState()), problem);
  openWhatIsNeeded(problem);
}

// The trade-off of an advice is drawn at once: its data comes along.
const sendWithPictures = (path, body, signal) =>
  post(path, path === '/v1/advise' ? { ...body, include: ['trade_off'] } : body, signal);

export function connectForm() {
  ask = connectAsk({
    form: form(),
    results: byId('results'),
    build: () => {
      const state = readState();
      return { ...buildRequest(state, devices(state)), address: hash(state), state, locate: locatorOf(state), send: sendWithPictures };
    },
    label: () => SUBMIT_TEXT[readState().mode],
    show: (body, answer, state) => {
      answered = state;
      shown = viewOf();
      openPlan = showAnswer(byId('results'), body, answer, { actions: planActions, repair, store: storeAnswer, keep: keepPlan });
    },
    failed: openWhatIsNeeded,
    prepare: (signal) => (isRecipe(byId('config').value) ? takeRecipe(signal) : null),
  });
  connectMachines();
  byId('config').addEventListener('paste', () => {
    // The text is there only after the event; what cannot be read is told when it is sent.
    setTimeout(() => isRecipe(byId('config').value) && takeRecipe().catch(() => {}));
  });
  form().addEventListener('input', (event) => {
    if (event.target.id === 'chip') {
      const chip = event.target.value;
      fillSlices(byId('topology'), catalog, chip, sliceLike(catalog, chip, byId('topology').value));
    }
    if (event.target.id === 'token') setToken(event.target.value.trim());
    showModes();
    keepAddress();
  });
  byId('token').value = token();
  byId('copy-link').addEventListener('click', (event) => {
    if (!viewOf().plan) keepAddress();
    copyFrom(event.currentTarget, location.href);
  });
  byId('reset').addEventListener('click', () => {
    clearErrors(form());
    history.pushState(null, '', '#/');
    writeState(DEFAULTS);
    byId('model').focus();
  });
}
