// Form state to API request, and an error's JSON pointer back to the field it is about. Pure: no page, no network.

import { configToLines, parseConfig, parseFlags } from './config_text.js';
import { clustersOf, machineField, machinesOf, parseMachines } from './machines_text.js';
import { typedNumber } from './typed_number.js';

export const DEFAULTS = Object.freeze({
  mode: 'advise',
  model_kind: 'catalog',
  model: '',
  model_text: '',
  chip: 'tpu7x',
  topology: '4x4x4',
  slices: '1',
  price: '',
  machines: 'tpu7x,any,64;v6e,any,256;H100,,64,,,0.4',
  seq_len: '8192',
  batch_kind: 'per_device_batch_size',
  batch: '1',
  quantization: '',
  token_budget: '',
  objective: 'step_time',
  top_k: '10',
  fit_probability: '',
  sensitivities: 'true',
  pins: '',
  config: '',
  xla_flags: '',
  project: '',
  label: '',
  store: '',
});

// First match wins, so longer pointers stand before their parents.
const FIELD_OF_POINTER = [
  ['/model/name', 'model'],
  ['/model', 'model'],
  ['/cluster/price_usd_per_chip_hour', 'price'],
  ['/cluster/slices', 'slices'],
  ['/cluster/topology', 'topology'],
  ['/cluster/accelerator', 'topology'],
  ['/cluster', 'chip'],
  ['/workload/seq_len', 'seq_len'],
  ['/workload/quantization', 'quantization'],
  ['/workload/token_budget', 'token_budget'],
  ['/workload/total_tokens', 'token_budget'],
  ['/workload/global_batch_sequences', 'batch'],
  ['/workload/per_device_batch_size', 'batch'],
  ['/workload/tokens_per_step', 'batch'],
  ['/workload/optimizer', 'config'],
  ['/workload/weight_dtype', 'config'],
  ['/workload/mu_dtype', 'config'],
  ['/workload/grad_dtype', 'config'],
  ['/workload', 'batch'],
  ['/search/objective', 'objective'],
  ['/search/top_k', 'top_k'],
  ['/search/fit_probability', 'fit_probability'],
  ['/machines', 'add-machine'],
  ['/clusters', 'add-machine'],
  ['/pins', 'pins'],
  ['/baseline/config', 'config'],
  ['/baseline/xla_flags', 'xla_flags'],
  ['/baseline', 'config'],
  ['/config', 'config'],
  ['/recipe', 'config'],
  ['/xla_flags', 'xla_flags'],
  ['/project', 'project'],
  ['/label', 'label'],
];

// The field's name and what of the pointer lies below it ("/config/seq" -> config, "seq"); field null: the whole page.
export function fieldOfPointer(pointer, state) {
  if (/^\/clusters\/\d/.test(pointer ?? '')) return { field: machineField(pointer), below: '' };
  const row = FIELD_OF_POINTER.find(([prefix]) => pointer === prefix || pointer?.startsWith(`${prefix}/`));
  if (!row) return { field: null, below: pointer ?? '' };
  const field = row[1] === 'model' && state.model_kind !== 'catalog' ? 'model_text' : row[1];
  return {
    field,
    below: pointer
      .slice(row[0].length + 1)
      .replaceAll('~1', '/')
      .replaceAll('~0', '~'),
  };
}

function number(text, pointer, what, errors) {
  const value = typedNumber(text);
  if (!Number.isFinite(value)) {
    errors.push({
      pointer,
      detail: text.trim() === '' ? `${what} is missing.` : `${what}: “${text.trim()}” is not a number.`,
    });
  }
  return value;
}

// "8k" tokens of a sequence are mostly 8192, and sometimes 8000: it is suggested, not guessed.
function sequenceLength(text, errors) {
  const thousands = /^(\d+)\s*[kK]$/.exec(text.trim());
  if (!thousands) return number(text, '/workload/seq_len', 'Sequence length', errors);
  const [, count] = thousands;
  const hint = `did you mean \`${count * 1024}\` or \`${count * 1000}\`?`;
  errors.push({ pointer: '/workload/seq_len', detail: `Sequence length: “${text.trim()}” is not a number.`, hint });
  return NaN;
}

// What is typed in percent is asked for as a fraction.
function probability(text, pointer, errors) {
  const percent = typedNumber(text.replace(/%\s*$/, ''));
  if (!(percent > 1 && percent < 100)) return number(text, pointer, 'Probability to fit', errors);
  const hint = `did you mean \`${Number((percent / 100).toPrecision(12))}\`?`;
  errors.push({ pointer, detail: `Probability to fit: “${text.trim()}” is in percent, not from 0.5 to 0.9999.`, hint });
  return percent;
}

// "15T" is 15e12 tokens.
function tokens(text, pointer, errors) {
  const found = /^([\d.]+)\s*([kMBT])$/.exec(text.trim());
  const scale = { k: 1e3, M: 1e6, B: 1e9, T: 1e12 };
  return found && Number.isFinite(Number(found[1]))
    ? Number(found[1]) * scale[found[2]]
    : number(text, pointer, 'Tokens of the whole training', errors);
}

function modelOf(state, errors) {
  if (state.model_kind === 'catalog') {
    if (!state.model.trim()) errors.push({ pointer: '/model', detail: 'Choose a model.' });
    return state.model.trim();
  }
  if (!state.model_text.trim()) {
    errors.push({ pointer: '/model', detail: 'Paste the model description as JSON.' });
    return null;
  }
  const isJson = state.model_text.trim().startsWith('{');
  if (state.model_kind === 'hf' && !isJson) {
    errors.push({ pointer: '/model', detail: 'config.json starts with “{”; this text does not.' });
    return null;
  }
  const parsed = parseConfig(state.model_text);
  parsed.errors.forEach((error) => errors.push({ pointer: '/model', ...error }));
  return state.model_kind === 'hf' ? { hf_config: parsed.value } : parsed.value;
}

// {cluster} or, to compare several machines, {clusters}.
function machinesOrCluster(state, errors) {
  if (state.mode !== 'machines') return { cluster: clusterOf(state, errors) };
  const rows = parseMachines(state.machines);
  if (!rows.length) errors.push({ pointer: '/machines', detail: 'Add a machine to compare.' });
  return { clusters: clustersOf(rows, (text, pointer, what) => number(text, pointer, what, errors)) };
}

function clusterOf(state, errors) {
  const cluster = {
    chip: state.chip,
    topology: state.topology,
    slices: number(state.slices, '/cluster/slices', 'Number of slices', errors),
  };
  if (state.price.trim()) {
    cluster.price_usd_per_chip_hour = number(state.price, '/cluster/price_usd_per_chip_hour', 'Price', errors);
  }
  return cluster;
}

function settingsOf(text, pointer, errors) {
  const parsed = parseConfig(text);
  parsed.errors.forEach((error) => errors.push({ pointer, ...error }));
  return parsed;
}

// A pin that is left out would not be kept.
function pinsOf(text, errors) {
  const { value, passedOver } = settingsOf(text, '/pins', errors);
  passedOver.forEach((key) => errors.push({ pointer: '/pins', detail: `${key} is a list or mapping, which cannot be pinned.` }));
  return value;
}

function storing(state) {
  const extra = {};
  if (state.project.trim()) extra.project = state.project.trim();
  if (state.label.trim()) extra.label = state.label.trim();
  if (state.store) extra.store = 'try';
  return extra;
}

// The form's batch in sequences per device of one pass, for sequences of `length` tokens; null where it cannot be known.
function batchPerDevice(state, config, length, devices) {
  const batch = typedNumber(state.batch);
  const passes = devices * (config.gradient_accumulation_steps > 1 ? config.gradient_accumulation_steps : 1);
  const perDevice = {
    per_device_batch_size: batch,
    global_batch_sequences: devices ? batch / passes : null,
    tokens_per_step: devices && length > 0 ? batch / length / passes : null,
  }[state.batch_kind];
  return perDevice > 0 ? perDevice : null;
}

// What the form's workload means in MaxText's keys, beside a pasted text. devices: of all slices together, null where unknown.
function workloadKeys(state, config, devices) {
  const seq = typedNumber(state.seq_len);
  const perDevice = batchPerDevice(state, config, Number(config.max_target_length ?? seq), devices);
  return { ...(seq > 0 ? { max_target_length: seq } : {}), ...(perDevice ? { per_device_batch_size: perDevice } : {}) };
}

// Settings that a pasted text leaves open and MaxText would fill with its own defaults: they take the form's workload instead.
// {key: value} of what is taken.
export function inheritedOf(state, config, devices) {
  return Object.fromEntries(Object.entries(workloadKeys(state, config, devices)).filter(([key]) => !(key in config)));
}

// The other way round: {key: value} of a pasted text that count instead of what the form says.
export function overruledOf(state, config, devices) {
  const keys = workloadKeys(state, config, devices);
  const unlike = (key) => key in config && !(Math.abs(config[key] / keys[key] - 1) < 1e-9);
  return Object.fromEntries(Object.keys(keys).filter(unlike).map((key) => [key, config[key]]));
}

// The reader's own settings, completed from the form.
function mineOf(state, pointer, devices, errors) {
  const mine = settingsOf(state.config, pointer, errors);
  return { config: { ...mine.value, ...inheritedOf(state, mine.value ?? {}, devices) }, flags: mine.flags };
}

function adviseRequest(state, devices, errors) {
  const workload = { seq_len: sequenceLength(state.seq_len, errors) };
  workload[state.batch_kind] = number(state.batch, `/workload/${state.batch_kind}`, 'Batch', errors);
  if (state.quantization) workload.quantization = state.quantization;
  if (state.token_budget.trim()) workload.token_budget = tokens(state.token_budget, '/workload/token_budget', errors);
  const body = {
    model: modelOf(state, errors),
    ...machinesOrCluster(state, errors),
    workload,
    search: { objective: state.objective, top_k: number(state.top_k, '/search/top_k', 'Number of plans', errors) },
    ...storing(state),
  };
  if (state.fit_probability.trim())
    body.search.fit_probability = probability(state.fit_probability, '/search/fit_probability', errors);
  if (state.sensitivities) body.search.sensitivities = true;
  if (state.pins.trim()) body.pins = pinsOf(state.pins, errors);
  if (state.config.trim()) {
    const mine = mineOf(state, '/baseline/config', devices, errors);
    body.baseline = { config: mine.config, xla_flags: [...mine.flags, ...parseFlags(state.xla_flags)] };
    workload.quantization ??= 'none'; // the form's word; formats that it has no field for are the configuration's
  }
  // A pin MaxText does not know cannot be kept; a baseline may be an old recipe whose old keys are only worth a warning.
  if (body.pins && !body.baseline) body.strict = true;
  return { path: '/v1/advise', body, errors };
}

function estimateRequest(state, devices, errors) {
  const mine = mineOf(state, '/config', devices, errors);
  if (!state.config.trim()) {
    errors.push({
      pointer: '/config',
      detail: 'Paste the configuration to estimate.',
      hint: 'MaxText settings as key=value lines, as YAML or as a JSON object.',
    });
  }
  const flags = [...mine.flags, ...parseFlags(state.xla_flags)];
  const body = {
    model: modelOf(state, errors),
    cluster: clusterOf(state, errors),
    config: mine.config,
    ...storing(state),
  };
  if (flags.length) body.xla_flags = flags;
  return { path: '/v1/estimate', body, errors };
}

// {path, body, errors[{pointer, detail, hint?}]}; with errors the body must not be sent. devices: of the form's slices, where known.
export function buildRequest(state, devices = null) {
  return state.mode === 'estimate' ? estimateRequest(state, devices, []) : adviseRequest(state, devices, []);
}

// The form's settings of a plan with a change of keys, and without keys and flags that are refused.
export function changedSettings(plan, change, { keys = [], flags = [] } = {}) {
  const kept = Object.entries({ ...plan.config, ...change }).filter(([key]) => !keys.includes(key));
  const isKept = (flag) => !flags.some((refused) => flag.split('=')[0] === refused.split('=')[0]);
  return { config: configToLines(Object.fromEntries(kept)), xla_flags: (plan.xla_flags ?? []).filter(isKept).join('\n') };
}

// The tokens of the whole training, which have an older name, too.
export const trainingTokens = ({ workload }) => workload?.total_tokens ?? workload?.token_budget;

// A stored request back into the form, as far as the form has fields for it.
export function stateOfRequest(request) {
  const state = { ...DEFAULTS, mode: request.workload ? 'advise' : 'estimate' };
  if (typeof request.model === 'string') state.model = request.model;
  else if (request.model?.hf_config)
    Object.assign(state, { model_kind: 'hf', model_text: JSON.stringify(request.model.hf_config, null, 2) });
  else Object.assign(state, { model_kind: 'dims', model_text: JSON.stringify(request.model ?? {}, null, 2) });
  const several = request.clusters ?? (request.cluster?.topology === 'any' ? [request.cluster] : null);
  if (several) Object.assign(state, { mode: 'machines', machines: machinesOf(several) });
  const cluster = (several ? null : request.cluster) ?? DEFAULTS;
  state.chip = cluster.chip ?? '';
  state.topology = cluster.topology ?? cluster.accelerator ?? '';
  state.slices = String(cluster.slices ?? 1);
  state.price = String(cluster.price_usd_per_chip_hour ?? '');
  // Of an estimate its own settings count; what they leave to MaxText is not filled in by the form.
  const { max_target_length: seq_len = '', per_device_batch_size = '' } = request.config ?? {};
  const workload = request.workload ?? { seq_len, per_device_batch_size };
  state.seq_len = String(workload.seq_len ?? DEFAULTS.seq_len);
  state.batch_kind =
    ['global_batch_sequences', 'per_device_batch_size', 'tokens_per_step'].find((kind) => kind in workload) ??
    DEFAULTS.batch_kind;
  state.batch = String(workload[state.batch_kind] ?? DEFAULTS.batch);
  state.quantization = workload.quantization === 'none' ? '' : (workload.quantization ?? '');
  state.token_budget = String(trainingTokens(request) ?? '');
  state.sensitivities = request.workload && !request.search?.sensitivities ? '' : 'true';
  state.objective = request.search?.objective ?? DEFAULTS.objective;
  state.top_k = String(request.search?.top_k ?? DEFAULTS.top_k);
  state.fit_probability = String(request.search?.fit_probability ?? '');
  state.pins = configToLines(request.pins);
  state.config = configToLines(request.config ?? request.baseline?.config);
  const flags = request.xla_flags ?? request.baseline?.xla_flags ?? [];
  state.xla_flags = Array.isArray(flags) ? flags.join('\n') : flags;
  state.project = request.project ?? '';
  state.label = request.label ?? '';
  return state;
}

// Members that leave the numbers of an answer as they are, and those that the form has under another name.
const BESIDE = new Set(['store', 'label', 'project', 'git_ref', 'tags', 'include', 'verify', 'strict', 'recipe_notes']);
const OTHER_NAME = { accelerator: 'topology', total_tokens: 'token_budget', cluster: 'clusters' };

const missing = (request, body) =>
  Object.keys(request ?? {}).filter((name) => (request[name] ?? false) !== false && !(name in body) && !(OTHER_NAME[name] in body));

// What of a request the form has no field for, as "cluster.overrides": without it the question is another one.
export function unaskable(request) {
  const { body } = buildRequest(stateOfRequest(request));
  const inside = { ...body, cluster: body.cluster ?? body.clusters?.[0] };
  const lost = ['cluster', 'workload', 'search', 'baseline'].flatMap((part) =>
    missing(request[part], inside[part] ?? {}).map((name) => `${part}.${name}`),
  );
  return [...missing(request, body).filter((name) => !BESIDE.has(name)), ...lost];
}
