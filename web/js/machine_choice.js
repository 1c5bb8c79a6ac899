// The choice of a chip and of a slice of it, from what the catalog knows. A value that it does not know stays, and is named so.

import { sliceNote, slicesOf } from './catalog.js';
import { h } from './dom.js';

function setOptions(select, options, chosen) {
  const known = options.some((option) => option.value === chosen) || !chosen;
  const extra = { value: chosen, text: options.length ? `${chosen} (not in the catalog)` : chosen };
  const all = known ? options : [extra, ...options];
  select.replaceChildren(...all.map((option) => h('option', { value: option.value }, option.text)));
  if (chosen) select.value = chosen;
}

export function fillChips(select, catalog, chosen) {
  setOptions(
    select,
    catalog.chips.map((chip) => ({ value: chip.name, text: chip.title })),
    chosen,
  );
}

export function fillSlices(select, catalog, chip, chosen) {
  setOptions(
    select,
    slicesOf(catalog, chip).map((slice) => ({ value: slice.topology, text: `${slice.topology} · ${sliceNote(slice)}` })),
    chosen,
  );
}

// After a change of chip: the same shape if that chip has it, else its first slice that is no smaller. Pure.
export function sliceLike(catalog, chip, topology) {
  const slices = slicesOf(catalog, chip);
  if (!slices.length || slices.some((slice) => slice.topology === topology)) return topology;
  const chips = topology.split('x').reduce((all, size) => all * Number(size), 1);
  return (slices.find((slice) => slice.chips >= chips) ?? slices.at(-1)).topology;
}
