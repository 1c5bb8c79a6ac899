// Sliders for another machine or another job, and the estimate that follows them.

import { get, post } from '../api.js';
import { h } from '../dom.js';
import { bandwidth, count, gib, percent, seconds, sequences, signedPercent, words } from '../format.js';
import { verdict } from '../memory_bar.js';
import { freshId, legend } from './frame.js';
import { planData, requestOf } from './plan_data.js';

const WAIT_MS = 40;
// Rates and sizes of a chip that a slider scales: what they are of, and catalog fields, all by the same factor.
const RATES = [
  ['HBM bandwidth', 'per chip', ['hbm_bytes_per_s_per_chip'], bandwidth],
  ['HBM limit', 'per device', ['hbm_usable_bytes_per_device'], gib],
  ['ICI links', 'each, one way', ['ici_link_bytes_per_s', 'ici_link_achieved_bytes_per_s'], bandwidth],
  ['MXU peak', 'per chip', ['peak_bf16_flops_per_s_per_chip', 'peak_fp8_flops_per_s_per_chip', 'peak_int8_ops_per_s_per_chip'], (value) => `${count(Math.round(value / 1e12))} TFLOP/s`],
  ['PCIe', 'per chip', ['pcie_bytes_per_s_per_chip'], bandwidth],
  ['DCN', 'per chip', ['dcn_bytes_per_s_per_chip'], bandwidth],
];
const FACTORS = [0.25, 0.33, 0.5, 0.67, 0.75, 0.8, 0.9, 1, 1.1, 1.25, 1.33, 1.5, 2, 3, 4];

const numberOf = (field) => (typeof field === 'object' ? field?.value : field);

// A slider over `values` with what it stands at beside it.
function slider({ name, unit, values, at, shown, onInput }) {
  const id = freshId('slider');
  const input = h('input', { type: 'range', id, min: 0, max: values.length - 1, step: 1, value: at });
  const output = h('output', { for: id });
  const say = () => {
    const text = shown(values[Number(input.value)]);
    output.textContent = text;
    input.setAttribute('aria-valuetext', text);
  };
  input.addEventListener('input', () => {
    say();
    onInput();
  });
  say();
  return { name, value: () => values[Number(input.value)], reset: () => { input.value = at; say(); }, row: h('div', { class: 'slider' }, h('label', { for: id }, name, unit ? [' ', h('span', { class: 'unit' }, unit)] : null), input, output) };
}

const doublings = (value, low, high) => {
  const list = [];
  for (let at = value / 2 ** low; at <= value * 2 ** high; at *= 2) list.push(at);
  return list;
};

function batches(batch) {
  const list = batch >= 1 ? Array.from({ length: Math.min(64, Math.max(16, batch * 4)) }, (_, index) => index + 1) : doublings(batch, 2, 6);
  return list.includes(batch) ? list : [...list, batch].sort((a, b) => a - b);
}

function change(now, start, good) {
  if (!(now > 0 && start > 0) || now === start) return h('span', { class: 'change' }, 'as at the start');
  const better = now < start === (good === 'less');
  return h('span', { class: `change ${better ? 'better' : 'worse'}` }, `${signedPercent(now / start - 1)} against the start`);
}

// A shorter step of fewer tokens is neither better nor worse: it does other work.
function changeOfStep(now, start) {
  const share = now.tokens_per_step / start.tokens_per_step;
  if (!Number.isFinite(share) || Math.abs(share - 1) < 1e-9) return change(now.step_time_s, start.step_time_s, 'less');
  return h('span', { class: 'change' }, `${signedPercent(now.step_time_s / start.step_time_s - 1)} against the start, for ${percent(share, 0)} of its tokens`);
}

function resultOf(now, start) {
  const fact = (name, value, second) => h('div', null, h('dt', null, name), h('dd', null, value, h('span', { class: 'second' }, second)));
  const bound = now.bound === start.bound ? `bound by ${words(now.bound)}` : `bound by ${words(now.bound)}, before by ${words(start.bound)}`;
  return [
    h('dl', { class: 'facts' }, [
      fact('Step time', seconds(now.step_time_s), changeOfStep(now, start)),
      fact('Tokens/s per chip', count(Math.round(now.tokens_per_s_per_chip)), change(now.tokens_per_s_per_chip, start.tokens_per_s_per_chip, 'more')),
      fact('MFU', percent(now.mfu_frac), change(now.mfu_frac, start.mfu_frac, 'more')),
      fact('HBM per device', [gib(now.hbm_bytes_per_device), ' ', verdict(now.fit_verdict)], `of ${gib(now.hbm_limit_bytes_per_device)}`),
    ]),
    h('p', { class: 'soft' }, bound),
  ];
}

// Both steps as bars of one scale, by resource.
function bars(now, start) {
  const longest = Math.max(now.step_time_s, start.step_time_s);
  const bar = (name, estimate) => {
    const shares = new Map();
    for (const part of estimate.time_parts) shares.set(part.resource, (shares.get(part.resource) ?? 0) + part.exposed_seconds);
    const strip = h('span', { class: 'whatif-strip', role: 'img', 'aria-label': `${name}: ${seconds(estimate.step_time_s)}` });
    for (const [resource, exposed] of [...shares].sort((a, b) => b[1] - a[1])) {
      const piece = h('span', { class: `res-${resource}`, title: `${words(resource)} ${seconds(exposed)}` });
      piece.style.width = `${(exposed / longest) * 100}%`;
      strip.append(piece);
    }
    return h('div', { class: 'whatif-bar' }, h('span', { class: 'soft' }, name), strip, h('span', { class: 'nowrap' }, seconds(estimate.step_time_s)));
  };
  return h('div', { class: 'whatif-bars' }, bar('start', start), bar('now', now));
}

export async function show(plan) {
  const name = plan.cluster?.chip ?? plan.job.cluster?.chip;
  if (!name) return null;
  const [start, chip] = await Promise.all([planData(plan), get(`/v1/catalog/chips/${encodeURIComponent(name)}`)]);
  if (!(start.step_time_s > 0) || !start.time_parts?.length) return null;
  const given = plan.job.cluster.overrides ?? {};
  const valueOf = (field) => given[field] ?? numberOf(chip[field]);
  const batch = Number(plan.config.per_device_batch_size ?? 1);
  const sequence = Number(plan.config.max_target_length ?? 2048);
  const key = legend({ 'res-mxu': 'MXU', 'res-vpu': 'VPU', 'res-hbm': 'HBM', 'res-ici': 'ICI', 'res-dcn': 'DCN', 'res-pcie': 'PCIe', 'res-latency': 'latency' });
  const place = h('div', { class: 'whatif-result', 'aria-live': 'polite' }, resultOf(start, start), bars(start, start), key);
  let timer = null;
  let running = null;

  const rates = RATES.filter(([, , fields]) => Number.isFinite(valueOf(fields[0]))).map(([name, unit, fields, shown]) => ({
    fields,
    ...slider({ name, unit, values: FACTORS, at: FACTORS.indexOf(1), shown: (factor) => `${shown(factor * valueOf(fields[0]))}${factor === 1 ? '' : ` (×${factor})`}`, onInput: () => ask() }),
  }));
  const sizes = batches(batch);
  const lengths = doublings(sequence, 3, 4);
  const batchSlider = slider({ name: 'Batch per device', values: sizes, at: sizes.indexOf(batch), shown: sequences, onInput: () => ask() });
  const lengthSlider = slider({ name: 'Sequence length', values: lengths, at: 3, shown: (value) => `${count(value)} tokens`, onInput: () => ask() });
  const all = [...rates, batchSlider, lengthSlider];

  const request = () => {
    const overrides = { ...given };
    for (const rate of rates)
      for (const field of rate.fields) if (rate.value() !== 1 && Number.isFinite(valueOf(field))) overrides[field] = valueOf(field) * rate.value();
    const cluster = Object.keys(overrides).length ? { ...plan.job.cluster, overrides } : plan.job.cluster;
    return { ...requestOf(plan), cluster, config: { ...plan.config, per_device_batch_size: batchSlider.value(), max_target_length: lengthSlider.value() } };
  };
  const send = async () => {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    try {
      const now = await post('/v1/estimate', request(), signal);
      if (!signal.aborted) place.replaceChildren(...resultOf(now, start), bars(now, start), key);
    } catch (error) {
      if (error.name === 'AbortError') return;
      const said = (error.errors ?? []).map((item) => item.detail).join(' ') || error.detail || error.message;
      place.replaceChildren(h('p', { class: 'whatif-refused' }, `Not possible: ${said}`));
    }
  };
  function ask() {
    clearTimeout(timer);
    timer = setTimeout(send, WAIT_MS);
  }
  const reset = h('button', { type: 'button', class: 'small' }, 'Back to the start');
  reset.addEventListener('click', () => {
    all.forEach((one) => one.reset());
    ask();
  });
  return h('div', { class: 'whatif' }, h('div', { class: 'sliders' }, all.map((one) => one.row), h('p', { class: 'actions' }, reset)), place);
}
