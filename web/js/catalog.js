// What the daemon knows: models, chips and topologies, read once and turned into the lists of the form.

import { get } from './api.js';
import { compact, count } from './format.js';

// A collection is {"<name>": [rows]}; engine and paging members stand beside the rows.
function rowsOf(answer, collection) {
  const rows = Array.isArray(answer) ? answer : answer[collection];
  return Array.isArray(rows) ? rows : Object.entries(rows ?? {}).map(([name, row]) => ({ name, ...row }));
}

// A catalog number is plain or {value, unit, source, …}.
function plain(field) {
  return field && typeof field === 'object' && 'value' in field ? field.value : field;
}

export async function loadCatalog() {
  const [models, chips, topologies] = await Promise.all(
    ['models', 'chips', 'topologies'].map((name) => get(`/v1/catalog/${name}`)),
  );
  const slices = rowsOf(topologies, 'topologies')
    .map((row) => ({
      name: row.name,
      chip: row.chip ?? row.gen,
      topology: row.topology,
      chips: plain(row.chips),
      devices: plain(row.devices),
    }))
    .filter((row) => row.chip && row.topology);
  return {
    engine: models.engine,
    models: rowsOf(models, 'models').map((row) => ({
      name: row.name,
      params: plain(row.total_params ?? row.params?.total),
      active: plain(row.active_params ?? row.params?.active),
    })),
    chips: rowsOf(chips, 'chips')
      .map((row) => ({ name: row.name, title: plain(row.title) ?? row.name }))
      .filter((chip) => slices.some((slice) => slice.chip === chip.name)),
    slices,
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
