// A recipe as it lies in a repository (script, XPK or gcluster command, manifest), pasted where settings go: the daemon reads it, and
// the form is filled with what it says.

import { Problem, post } from './api.js';
import { configToLines } from './config_text.js';
import { plural } from './format.js';

const SIGNS = [
  /^#!/,
  /\$[{(A-Za-z_]/, // a shell's variable or command
  /^[^#\n]*\b(xpk|gcluster|gcloud|kubectl|docker)[ \t]+[a-z]/m,
  /^\s*(apiVersion|kind):\s/m,
];

// Whether a text is more than settings in one of the forms that parseConfig reads. Pure.
export function isRecipe(text) {
  const isJson = text.trim().startsWith('{');
  return !isJson && SIGNS.some((sign) => sign.test(text));
}

const NAMES_OF_A_RUN = new Set(['run_name', 'base_output_directory', 'model_name']);
const isKnown = ([name, value]) => !NAMES_OF_A_RUN.has(name) && !(typeof value === 'string' && value.includes('$'));

// The form's fields from the answer to the recipe; {state, said}, said tells what was read. Pure.
export function stateOfRecipe({ model, cluster, config, xla_flags: flags = [] }) {
  const settings = Object.entries(config ?? {}).filter(isKnown);
  const { model_name: name, ...dims } = model.config ?? {};
  const state = {
    ...(name ? { model_kind: 'catalog', model: name } : { model_kind: 'dims', model_text: JSON.stringify(dims, null, 2) }),
    chip: cluster.chip,
    topology: cluster.topology,
    slices: String(cluster.slices ?? 1),
    config: configToLines(Object.fromEntries(settings)),
    xla_flags: flags.join('\n'),
  };
  if (config?.max_target_length > 0) state.seq_len = String(config.max_target_length);
  if (config?.per_device_batch_size > 0) {
    const sequences = config.per_device_batch_size * cluster.devices * (config.gradient_accumulation_steps ?? 1);
    Object.assign(state, { batch_kind: 'global_batch_sequences', batch: String(sequences) });
  }
  if (config?.quantization) state.quantization = config.quantization;
  const machine = `${cluster.chip} ${cluster.topology}${cluster.slices > 1 ? ` × ${cluster.slices}` : ''}`;
  const said = `Read as a recipe: ${name ?? model.name} on ${machine}, ${plural(settings.length, 'setting', 'settings')}, ${plural(flags.length, 'XLA flag', 'XLA flags')}. All of it is in the form now.`;
  return { state, said };
}

// Asks the daemon. What the recipe leaves to its caller (model, machine) is the form's: {model, cluster}.
export async function readRecipe(text, { model, cluster }, signal) {
  let body = { recipe: text };
  for (;;) {
    try {
      return stateOfRecipe(await post('/v1/estimate', body, signal));
    } catch (error) {
      const missing = (pointer) => error instanceof Problem && error.errors.some((item) => item.pointer === pointer && /is missing/.test(item.detail));
      const more = { ...(missing('/model') && model ? { model } : {}), ...(missing('/cluster') ? { cluster } : {}) };
      if (!Object.keys(more).length || Object.keys(more).every((name) => name in body)) throw error;
      body = { ...body, ...more };
    }
  }
}
