// Where the numbers come from: the formula of each time part, and the hardware figures of the chip with their sources.

import { get } from './api.js';
import { h, table } from './dom.js';
import { failure } from './failure.js';
import { compact, count, words } from './format.js';
import { formulaOf } from './glossary.js';
import { inline } from './inline.js';

function formulas(parts) {
  const shown = parts.filter((part) => part.formula || part.source);
  if (!shown.length) return null;
  return table(
    'Formulas of the time parts',
    [
      { title: 'Part' },
      { title: 'Formula', prose: true },
      { title: 'From' },
      { title: 'Per step', number: true },
      { title: 'FLOPs per device', number: true },
    ],
    shown.map((part) => [
      words(part.name),
      part.formula ? [h('code', null, part.formula), h('span', { class: 'second' }, inline(formulaOf(part.formula) ?? ''))] : '–',
      part.source ?? '–',
      count(part.count),
      part.flops_per_device > 0 ? compact(part.flops_per_device) : '–',
    ]),
  );
}

function figure({ value, unit }) {
  if (value === null || value === undefined) return 'not published';
  const text =
    typeof value === 'number' && Math.abs(value) >= 1e6
      ? value.toExponential(4).replace('e+', ' × 10^')
      : String(value);
  return `${text} ${unit ?? ''}`.trim();
}

// Only members with a source are figures; the rest of a chip's entry is names and switches.
export function figuresOf(chip) {
  return Object.entries(chip).filter(([, member]) => member && typeof member === 'object' && 'source' in member);
}

function hardwareTable(chip) {
  return table(
    `Hardware figures of ${chip.title ?? chip.name}`,
    [
      { title: 'Figure' },
      { title: 'Value', number: true },
      { title: 'Confidence' },
      { title: 'Source', prose: true },
    ],
    figuresOf(chip).map(([name, member]) => [
      h('span', { title: name }, member.what ?? words(name)),
      figure(member),
      member.confidence ?? '–',
      [
        [member.source, member.date].filter(Boolean).join(', '),
        member.note ? h('span', { class: 'second' }, member.note) : null,
      ],
    ]),
  );
}

// The catalog is asked when the reader opens the list, once.
function hardware(name) {
  const place = h('div');
  const details = h('details', null, h('summary', null, `Hardware figures of ${name} and their sources`), place);
  details.addEventListener('toggle', async () => {
    if (!details.open || place.children.length) return;
    try {
      place.replaceChildren(hardwareTable(await get(`/v1/catalog/chips/${encodeURIComponent(name)}`)));
    } catch (error) {
      place.replaceChildren(failure(error));
    }
  });
  return details;
}

export function sourcesPanel(estimate, chip) {
  const list = formulas(estimate.time_parts ?? []);
  if (!list && !chip) return null;
  return h(
    'section',
    { class: 'panel' },
    h('h3', null, 'Where the numbers come from'),
    list ? h('details', null, h('summary', null, 'Formulas of the time parts'), list) : null,
    chip ? hardware(chip) : null,
  );
}
