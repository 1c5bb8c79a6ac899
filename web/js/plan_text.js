// One plan in a few words: its mesh, batch, remat and number formats, read from the answer's config and estimate.

import { compact, count, plural, words } from './format.js';

const PLACEMENTS = new Set(['device', 'offload', 'remat']);

const sizeText = ({ axis, size }) => `${axis} ${size === -1 ? 'the rest' : size}`;

// "fsdp 128 × context 2"
export function meshText(mesh) {
  const used = (mesh ?? []).filter((axis) => axis.size > 1).map(sizeText);
  return used.length ? used.join(' × ') : 'one device';
}

const AXIS_OF_KEY = { pipeline: 'stage' }; // where MaxText's key and mesh axis have two names

// The axes across slices, from MaxText keys: an estimate's mesh is of one slice. An axis of -1 takes the slices that the others
// leave, and data does where no key names it, as in MaxText. [{axis, size}], the size -1 where the number of slices is not known.
export function axesAcross(config, slices) {
  const sizes = new Map(slices > 1 ? [['data', -1]] : []);
  for (const [key, value] of Object.entries(config ?? {})) {
    const found = /^dcn_(.+)_parallelism$/.exec(key);
    if (found) sizes.set(AXIS_OF_KEY[found[1]] ?? found[1], Number(value));
  }
  const given = [...sizes.values()].reduce((all, size) => (size > 1 ? all * size : all), 1);
  const rest = slices ? Math.floor(slices / given) : -1;
  return [...sizes]
    .map(([axis, size]) => ({ axis: `dcn ${axis}`, size: size === -1 ? rest : size }))
    .filter(({ size }) => size > 1 || size === -1);
}

// The same from MaxText keys, for plans that come without an estimate.
export function meshOfConfig(config) {
  const used = axesAcross(config).map(sizeText);
  for (const [key, value] of Object.entries(config ?? {})) {
    const found = /^ici_(.+)_parallelism$/.exec(key);
    if (found && value !== 1) used.push(sizeText({ axis: AXIS_OF_KEY[found[1]] ?? found[1], size: value }));
  }
  return used.length ? used.join(' × ') : 'default mesh';
}

// The whole mesh of a plan, the axes across slices first: "dcn data 2 × fsdp 128". Ranked plans come with their mesh as placed;
// points of the front and near misses with their keys only.
export function meshOfPlan({ config, estimate, cluster }) {
  if (!estimate?.mesh) return meshOfConfig(config);
  const across = axesAcross(config, cluster?.slices);
  const within = estimate.mesh.filter((axis) => axis.size > 1);
  return across.length ? [...across, ...within].map(sizeText).join(' × ') : meshText(within);
}

export function batchText(config) {
  const batch = count(Number(config?.per_device_batch_size ?? NaN));
  const steps = Number(config?.gradient_accumulation_steps ?? 1);
  return steps > 1 ? `${batch} × ${steps} accumulated` : batch;
}

function placementsOf(config) {
  const found = { device: [], offload: [], remat: [] };
  for (const [key, value] of Object.entries(config ?? {})) {
    if (PLACEMENTS.has(value)) found[value].push(key);
  }
  return found;
}

// "custom: saves 4, offloads 2"; the second line names the tensors.
export function rematText(config) {
  const policy = config?.remat_policy ?? 'full';
  if (policy !== 'custom') return { text: words(policy), tensors: '' };
  const { device, offload } = placementsOf(config);
  const said = [];
  if (device.length) said.push(`saves ${device.length}`);
  if (offload.length) said.push(`offloads ${offload.length}`);
  const tensors = [...device, ...offload.map((name) => `${name} (host)`)].join(', ');
  return { text: `custom: ${said.join(', ') || 'saves nothing'}`, tensors };
}

export function formatText(config) {
  const name = config?.quantization || (config?.dtype ?? 'bfloat16');
  return name === 'bfloat16' ? 'bf16' : name;
}

// "2 × tpu7x 4x4x4"
export function clusterText({ chip, topology, accelerator, slices }) {
  const where = [chip, topology ?? accelerator].filter(Boolean).join(' ');
  return `${slices > 1 ? `${slices} × ` : ''}${where}`;
}

// The name of a model as it was asked for: by name, as dimensions or as a config.json.
export const modelText = (model) => (typeof model === 'string' ? model : (model?.name ?? model?.hf_config?.model_type ?? 'Given model'));

export function jobTitle(request) {
  const model = modelText(request.model);
  const { clusters } = request;
  return clusters?.length > 1
    ? `${model} on several machines`
    : `${model} on ${clusterText(request.cluster ?? clusters?.[0] ?? {})}`;
}

// How large the job is, from the answer's model and cluster: "70.6 B parameters; 64 chips, 128 devices, 16 hosts".
export function jobSize({ model, cluster }) {
  const said = [];
  if (typeof model?.params_total === 'number') {
    const active = model.params_active < model.params_total * 0.99 ? `, ${compact(model.params_active)} active` : '';
    said.push(`${compact(model.params_total)} parameters${active}`);
  }
  if (typeof cluster?.chips === 'number') {
    const { chips, devices, hosts } = cluster;
    said.push(
      [plural(chips, 'chip', 'chips'), plural(devices, 'device', 'devices'), plural(hosts, 'host', 'hosts')].join(
        ', ',
      ),
    );
  }
  return said.join('; ');
}
