// The daemon's catalog: models, chips and topologies, read once and turned into the lists of the form.

import { get } from './api.js';
import { compact, count } from './format.js';

// {engine, models[{name, params, active}], chips[{name, title}], gpus[{name, title}], slices[{name, chip, topology, chips,
// devices}]}; chips are those that come in slices.
export async function loadCatalog() {
  const [{ engine, models }, { chips }, { topologies }] = await Promise.all(
    ['models', 'chips', 'topologies'].map((name) => get(`/v1/catalog/${name}`)),
  );
  const sold = new Set(topologies.map((slice) => slice.chip));
  return {
    engine,
    models: models.map((row) => ({ name: row.name, params: row.total_params, active: row.active_params })),
    chips: chips.filter((chip) => sold.has(chip.name)),
    gpus: chips.filter((chip) => chip.is_tpu === false),
    slices: topologies,
  };
}

export function modelNote(model) {
  if (!model || typeof model.params !== 'number') return '';
  const active =
    typeof model.active === 'number' && model.active < model.params * 0.99 ? `, ${compact(model.active)} active` : '';
  return `${compact(model.params)} parameters${active}`;
}

export function slicesOf(catalog, chip) {
  const seen = new Set();
  return catalog.slices
    .filter((slice) => slice.chip === chip && !seen.has(slice.topology) && seen.add(slice.topology))
    .sort((a, b) => a.chips - b.chips || a.topology.localeCompare(b.topology));
}

export function sliceNote(slice) {
  const chips = `${count(slice.chips)} ${slice.chips === 1 ? 'chip' : 'chips'}`;
  return slice.devices === slice.chips ? chips : `${chips}, ${count(slice.devices)} devices`;
}
