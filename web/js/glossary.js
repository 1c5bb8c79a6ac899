// Terms of the field as buttons: each opens what it means, how it is computed and where that comes from.

import { h } from './dom.js';

const MAXTEXT = 'MaxText configuration and sharding documentation';
const MODEL = 'engine/README.md, the ledger of this answer';

// term: [definition, formula or null, source]
export const TERMS = {
  step_time: [
    'Predicted time of one training step on every device at once: forward, recompute, backward and optimizer update.',
    'sum of the exposed parts',
    MODEL,
  ],
  interval: [
    'The measured step is expected inside with 90 % certainty. Of tied plans the one with the narrower interval comes first.',
    'step time · exp(± 1.645 · spread of the fit)',
    'the fit’s errors on published steps, each left out in turn (tests/accuracy/report.md)',
  ],
  mfu: [
    'Model FLOPs utilisation: the share of the chip’s peak that the model’s own arithmetic takes; recomputed work does not count.',
    'model FLOPs per step / (step time · chips · peak FLOP/s)',
    'the PaLM paper’s definition; attention counted causally (flops_convention)',
  ],
  hfu: [
    'Hardware FLOPs utilisation: as MFU, with recomputed work counted.',
    'executed FLOPs per step / (step time · chips · peak FLOP/s)',
    'the PaLM paper’s definition',
  ],
  tokens_per_s: ['Training throughput of one chip.', 'tokens per step / (step time · chips)', MODEL],
  tflops: ['Model arithmetic per second and chip, in 10¹² operations.', 'model FLOPs per step / (step time · chips)', MODEL],
  bound: [
    'The resource that takes the largest exposed share of the step. A faster one of another kind changes little.',
    'argmax over resources of exposed seconds',
    MODEL,
  ],
  confidence: [
    '“calibrated”: constants of this chip are fitted on published steps like this one. “extrapolated”: something of the job lies outside them, and the interval is wider.',
    null,
    MODEL,
  ],
  hbm: [
    'High-bandwidth memory of one device (one TensorCore on tpu7x, else one chip).',
    'largest of the peaks at loss, backward and update',
    'XLA’s own peaks on compiled steps (tests/compile/report.md)',
  ],
  fit: [
    '“fits”: certain enough for a ranked plan. “tight”: it may fit, less surely than that, also where the predicted bytes are over the limit: XLA makes room when memory is short. “does not fit”: XLA would refuse the step.',
    'P(XLA needs no more than the limit), by how compiled steps spread around predictions',
    'tests/compile/report.md',
  ],
  exposed: [
    'Time that adds to the step. The rest of a transfer is hidden behind work of another unit.',
    'exposed = seconds − hidden',
    'the schedule, engine/README.md',
  ],
  mesh: [
    'How devices are arranged: each axis splits weights, batch, sequence or heads. fsdp shards weights and gathers them per layer; tensor splits each matrix; context splits the sequence; expert splits MoE experts.',
    'product of the axes = devices',
    MAXTEXT,
  ],
  remat: [
    'What of a layer’s activations is kept for the backward pass (“saves”), moved to host memory (“offloads”) or computed again.',
    null,
    MAXTEXT,
  ],
  mxu: ['Matrix unit of a TensorCore: multiplies and accumulates blocks.', 'FLOPs / (achieved share · peak FLOP/s)', MODEL],
  vpu: ['Vector unit: softmax, norms, activations.', 'vector operations / (lanes · clock)', MODEL],
  ici: ['Inter-chip interconnect: the torus links inside a slice.', 'bytes on the busiest link / link bandwidth', MODEL],
  dcn: ['Data-centre network between slices.', 'bytes per host / host bandwidth', MODEL],
  pcie: ['Link between host and chip; offloaded tensors cross it.', 'bytes / PCIe bandwidth', MODEL],
  latency: ['Fixed costs: launches, hops, loops.', 'count · latency', MODEL],
  ring: [
    'An axis whose ends are joined: a collective runs in both directions at full bandwidth. A line has half of it.',
    null,
    'slice topology, catalog',
  ],
  vmem: ['On-chip memory of a TensorCore that holds the blocks of a kernel.', 'sum of the kernel’s block buffers', MODEL],
  tile: ['Block sizes a kernel works on at a time; they decide reuse, padding and VMEM.', null, MAXTEXT],
  tie: [
    'Plans that differ by less than the prediction can tell. Take them as equally fast; the surer, then the simpler has the lower number.',
    '|a / b − 1| < tie_frac',
    'search.tie_frac of this answer',
  ],
  global_batch: ['Sequences of one step on all devices.', 'per-device batch · devices · accumulation', MAXTEXT],
  cost: ['Dollars at a price for a chip and hour.', 'chips · price · step time / 3600', 'the price in the form; without one the catalog’s, on demand in one region'],
};

const RESOURCES = new Set(['mxu', 'vpu', 'hbm', 'ici', 'dcn', 'pcie', 'latency']);
export const termOfResource = (name) => (RESOURCES.has(name) ? name : null);

function card() {
  let box = document.getElementById('glossary');
  if (!box) {
    box = h('div', { id: 'glossary', popover: 'auto', role: 'dialog', 'aria-labelledby': 'glossary-term' });
    document.body.append(box);
  }
  return box;
}

function open(button, title, [definition, formula, source]) {
  const box = card();
  box.replaceChildren(
    h('h3', { id: 'glossary-term' }, title),
    h('p', null, definition),
    formula ? h('p', null, h('code', null, formula)) : null,
    h('p', { class: 'soft' }, `Source: ${source}`),
  );
  box.showPopover();
  const at = button.getBoundingClientRect();
  const room = document.documentElement.clientWidth - box.offsetWidth - 8;
  box.style.left = `${Math.max(8, Math.min(at.left, room))}px`;
  const below = at.bottom + 4;
  box.style.top = `${below + box.offsetHeight < window.innerHeight ? below : Math.max(8, at.top - box.offsetHeight - 4)}px`;
}

// `text` as a button that explains `name`; plain text where the name has no entry.
export function term(name, text) {
  const entry = TERMS[name];
  if (!entry) return text;
  const button = h('button', { type: 'button', class: 'term', 'aria-haspopup': 'dialog' }, text);
  button.addEventListener('click', (event) => {
    event.stopPropagation();
    open(button, text, entry);
  });
  return button;
}

// A formula of the ledger by its id ("T-matmul"), as engine/README.md has it; the bundler puts the table in.
export function formulaOf(id) {
  const known = typeof FORMULAS === 'undefined' ? {} : FORMULAS;
  return known[id] ?? null;
}
