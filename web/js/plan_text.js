// One plan in a few words: its mesh, batch, remat and number formats, read from the answer's config and estimate.

import { count, words } from './format.js';

const PLACEMENTS = new Set(['device', 'offload', 'remat']);

// "fsdp 128 × context 2"
export function meshText(mesh) {
  const used = (mesh ?? []).filter((axis) => axis.size > 1).map((axis) => `${axis.axis} ${axis.size}`);
  return used.length ? used.join(' × ') : 'one device';
}

// The same from MaxText keys, for plans that come without an estimate.
export function meshOfConfig(config) {
  const used = [];
  for (const [key, value] of Object.entries(config ?? {})) {
    const found = /^(ici|dcn)_(.+)_parallelism$/.exec(key);
    if (found && value !== 1)
      used.push(`${found[1] === 'dcn' ? 'dcn ' : ''}${found[2]} ${value === -1 ? 'the rest' : value}`);
  }
  return used.length ? used.join(' × ') : 'default mesh';
}

export function batchText(config) {
  const batch = count(Number(config?.per_device_batch_size));
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
  return config?.quantization ? config.quantization : (config?.dtype ?? 'bfloat16');
}
