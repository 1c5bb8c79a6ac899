// One simulated tile in full: figures, what the time is made of, the timeline and the trace to take away.

import { post } from './api.js';
import { letteredParts } from './parts_chart.js';
import { configToLines } from './config_text.js';
import { codeBlock, saveButton } from './copy.js';
import { findingsPanel } from './detail.js';
import { fact, h } from './dom.js';
import { failure } from './failure.js';
import { bandwidth, count, gib, microseconds, percent, resource, words } from './format.js';
import { simulationOf } from './kernel_request.js';
import { timelinePanel } from './timeline.js';

const PATH = '/v1/kernels/simulate';
const latest = new WeakMap(); // place -> the request it waits for

function figures(answer) {
  const over = answer.fits_vmem === false;
  return h(
    'dl',
    { class: 'facts' },
    fact('Time', microseconds(answer.time_us), 'of the whole operation on one device'),
    fact('Decided by', resource(answer.bound)),
    answer.vmem_bytes === 0
      ? fact('VMEM', 'chosen by XLA', `of ${gib(answer.vmem_limit_bytes)}`)
      : fact(
          'VMEM',
          [
            gib(answer.vmem_bytes),
            ' ',
            h('span', { class: `verdict verdict-${over ? 'does_not_fit' : 'fits'}` }, over ? 'does not fit' : 'fits'),
          ],
          `of ${gib(answer.vmem_limit_bytes)}`,
        ),
    answer.grid_steps === 0 ? null : fact('Grid steps', count(Math.round(answer.grid_steps))),
    fact('MXU busy', percent(answer.mxu_busy_us / answer.time_us), microseconds(answer.mxu_busy_us)),
    fact('HBM traffic', gib(answer.hbm_bytes), bandwidth(answer.hbm_bytes / (answer.time_us * 1e-6))),
  );
}

function partsPanel(answer) {
  const parts = (answer.parts ?? []).map((part) => ({ name: words(part.name), value: part.us }));
  if (!parts.length) return null;
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, 'Where the time goes'),
    letteredParts({ title: 'Parts of the kernel', parts, total: answer.time_us, show: microseconds }),
  );
}

function vmemPanel(answer) {
  const parts = (answer.vmem_parts ?? []).map((part) => ({ name: part.name, value: part.bytes }));
  if (!parts.length) return null;
  const limit = answer.vmem_limit_bytes;
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, 'VMEM'),
    letteredParts({
      title: 'Buffers in VMEM',
      unit: 'Size',
      parts,
      total: answer.vmem_bytes,
      show: gib,
      limit: Number.isFinite(limit) ? { value: limit, label: `limit ${gib(limit)}` } : null,
    }),
  );
}

// The limit under which a tile that is too large compiles; useLimit, if given, tries it.
function limitNote(answer, useLimit) {
  const limit = answer.scoped_vmem_limit_needed_kib;
  if (answer.fits_vmem !== false || !Number.isFinite(limit)) return null;
  const button = h('button', { type: 'button', class: 'small' }, `Try with ${count(limit)} KiB`);
  button.addEventListener('click', () => useLimit(limit));
  return h(
    'p',
    { class: 'next-better' },
    `This tile needs a VMEM limit of ${count(limit)} KiB: `,
    h('code', null, `--xla_tpu_scoped_vmem_limit_kib=${limit}`),
    ' ',
    useLimit ? button : null,
  );
}

function keysPanel(groups) {
  const names = Object.keys(groups ?? {});
  if (!names.length) return null;
  const title = (name) => (names.length > 1 ? `As ${words(name)}` : 'MaxText settings');
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, 'MaxText keys of this tile'),
    h(
      'div',
      { class: 'columns' },
      names.map((name) => codeBlock(title(name), configToLines(groups[name]))),
    ),
  );
}

function traceButton(request, tile) {
  const name = `${request.kernel}-${request.chip}.trace.json`;
  const load = async () => {
    const answer = await post(PATH, simulationOf(request, tile, { trace: true }));
    return JSON.stringify(answer.trace);
  };
  return saveButton('Download trace (Perfetto)', name, load);
}

function editButton(tile, editTile) {
  if (!editTile || !Object.keys(tile ?? {}).length) return null;
  const button = h('button', { type: 'button', class: 'small' }, 'Edit this tile');
  button.addEventListener('click', () => editTile(tile));
  return button;
}

// The panels of one simulation.
export function simulationPanels(request, tile, answer, actions) {
  const sizes = Object.entries(tile ?? {}).map(([name, value]) => `${name} ${value}`);
  return [
    h(
      'section',
      { class: 'panel' },
      h(
        'div',
        { class: 'panel-head' },
        h('h3', null, sizes.length ? 'Chosen tile' : 'Simulation'),
        h('p', { class: 'soft shape' }, sizes.join(' · ')),
        h('p', { class: 'actions' }, editButton(tile, actions.editTile)),
      ),
      figures(answer),
      answer.extrapolated
        ? h(
            'p',
            { class: 'notice' },
            'Extrapolated: no measurement of this kernel is near this shape, tile and chip.',
          )
        : null,
      limitNote(answer, actions.useLimit),
    ),
    findingsPanel('Warnings', answer.warnings, 'warning'),
    keysPanel(answer.maxtext_keys),
    h('div', { class: 'columns' }, partsPanel(answer), vmemPanel(answer)),
    answer.timeline ? timelinePanel(answer.timeline, traceButton(request, tile)) : null,
  ].filter(Boolean);
}

// Asks for the simulation of `tile` and draws it into `place`; only the last of several choices is drawn.
export async function loadSimulation(place, request, tile, actions) {
  const asked = {};
  latest.set(place, asked);
  place.classList.add('busy');
  let panels;
  try {
    const answer = await post(PATH, simulationOf(request, tile, { timeline: true }));
    panels = simulationPanels(request, tile, answer, actions);
  } catch (error) {
    panels = [failure(error)];
  }
  if (latest.get(place) !== asked) return;
  place.classList.remove('busy');
  place.replaceChildren(...panels);
}
