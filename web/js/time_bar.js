// Where the step's time goes: the exposed parts, which add up to the step, and how busy each resource is, hidden work included.

import { hasLetter, letter, linkRows, stackedBars } from './bar.js';
import { h, table } from './dom.js';
import { term, termOfResource } from './glossary.js';
import { percent, plural, resource, seconds, secondsLike, secondsRange, words } from './format.js';

const SMALL = 1e-9;
const SMALL_SHARE = 0.01; // parts below it are folded

export const resourceClass = (name) => `res-${name}`;

// The letter of a part on the colour of its resource.
function mark(part) {
  return h('span', { class: `swatch ${resourceClass(part.resource)}` }, letter(part.index));
}

// Largest exposed part first, then what is wholly hidden; the index is the part's letter everywhere.
export function orderParts(parts) {
  return [...parts]
    .sort((a, b) => b.exposed_seconds - a.exposed_seconds || b.seconds - a.seconds)
    .map((part, index) => ({ ...part, index, hidden_seconds: Math.max(0, part.seconds - part.exposed_seconds) }));
}

// [{resource, exposed, hidden}], busiest first.
export function byResource(parts) {
  const found = new Map();
  for (const part of parts) {
    const row = found.get(part.resource) ?? { resource: part.resource, exposed: 0, hidden: 0 };
    row.exposed += part.exposed_seconds;
    row.hidden += part.hidden_seconds;
    found.set(part.resource, row);
  }
  return [...found.values()].sort((a, b) => b.exposed + b.hidden - a.exposed - a.hidden);
}

function exposedTable(parts, step) {
  const exposed = parts.filter((part) => part.exposed_seconds > SMALL);
  const large = exposed.filter((part) => part.exposed_seconds >= SMALL_SHARE * step);
  const small = exposed.slice(large.length);
  const total = exposed.reduce((all, part) => all + part.exposed_seconds, 0);
  const folded = small.reduce((all, part) => all + part.exposed_seconds, 0);
  const row = (part) => [
    [mark(part), ' ', words(part.name)],
    term(termOfResource(part.resource), words(part.resource)),
    secondsLike(part.exposed_seconds, step),
    percent(part.exposed_seconds / step),
  ];
  const columns = () => [
    { title: 'Part' },
    { title: 'Resource' },
    { title: 'Exposed', label: term('exposed', 'Exposed'), number: true },
    { title: 'Of step', number: true },
  ];
  const fold = small.length > 1;
  const list = table(
    'Exposed parts of the step, adding up to the step time',
    columns(),
    [
      ...(fold ? large : exposed).map(row),
      ...(fold
        ? [[`${small.length} parts below 1 %`, '', secondsLike(folded, step), percent(folded / step)]]
        : []),
    ],
    { footer: ['Step', '', secondsLike(total, step), percent(total / step)] },
  );
  return [
    list,
    fold
      ? h(
          'details',
          null,
          h('summary', null, `The ${small.length} parts below 1 % of the step`),
          table('Parts below 1 % of the step', columns(), small.map(row)),
        )
      : null,
  ];
}

function hiddenTable(parts, step) {
  const hidden = parts
    .filter((part) => part.hidden_seconds > SMALL)
    .sort((a, b) => b.hidden_seconds - a.hidden_seconds);
  if (!hidden.length) return null;
  return h(
    'details',
    null,
    h('summary', null, `Hidden behind other work: ${plural(hidden.length, 'part', 'parts')}`),
    table(
      'Parts hidden behind other work; they add nothing to the step',
      [
        { title: 'Part' },
        { title: 'Resource' },
        { title: 'Hidden', number: true },
        { title: 'Of it all', number: true },
      ],
      hidden.map((part) => [
        [mark(part), ' ', words(part.name)],
        words(part.resource),
        secondsLike(part.hidden_seconds, step),
        percent(part.hidden_seconds / part.seconds),
      ]),
    ),
  );
}

function exposedChart(parts, step) {
  const exposed = parts.filter((part) => part.exposed_seconds > SMALL);
  return stackedBars({
    label: `Step time ${seconds(step)}: ${exposed
      .slice(0, 4)
      .map((part) => `${words(part.name)} ${seconds(part.exposed_seconds)}`)
      .join(', ')}. All parts are in the table.`,
    scale: step || 1,
    rows: [
      {
        label: 'Exposed parts, coloured by resource',
        parts: exposed.map((part) => ({
          index: part.index,
          colour: resourceClass(part.resource),
          value: part.exposed_seconds,
          title: `${words(part.name)} (${resource(part.resource)}): ${seconds(part.exposed_seconds)}`,
        })),
      },
    ],
  });
}

function resourceKey(parts) {
  return h(
    'ul',
    { class: 'key' },
    byResource(parts)
      .filter((row) => row.exposed > SMALL)
      .map((row) =>
        h(
          'li',
          null,
          h('span', { class: `swatch ${resourceClass(row.resource)}`, 'aria-hidden': 'true' }),
          term(termOfResource(row.resource), resource(row.resource)),
        ),
      ),
  );
}

// The legend of the letters on the line, as far as a part is large enough to have one.
function partsKey(parts, step) {
  const lettered = parts.filter((part) => hasLetter(part.exposed_seconds, step));
  return h(
    'ul',
    { class: 'key' },
    lettered.map((part) => h('li', null, mark(part), ` ${words(part.name)} ${percent(part.exposed_seconds / step)}`)),
  );
}

// The step at a glance: the exposed parts in one line, what they are, and the resources' colours.
export function timeStrip(estimate) {
  const parts = orderParts(estimate.time_parts ?? []);
  const step = estimate.step_time_s;
  return h('div', null, exposedChart(parts, step), partsKey(parts, step), resourceKey(parts));
}

export function timeBar(estimate) {
  const parts = orderParts(estimate.time_parts ?? []);
  const step = estimate.step_time_s;
  const busy = byResource(parts);
  const scale = Math.max(step, ...busy.map((row) => row.exposed + row.hidden)) || 1;
  const chart = exposedChart(parts, step);
  const use = stackedBars({
    label: `Busy time by resource: ${busy.map((row) => `${resource(row.resource)} ${seconds(row.exposed + row.hidden)}, of it hidden ${seconds(row.hidden)}`).join('; ')}.`,
    scale,
    rows: busy.map((row) => ({
      label: `${resource(row.resource)} · exposed ${secondsLike(row.exposed, step)}${row.hidden > SMALL ? `, hidden ${secondsLike(row.hidden, step)}` : ''}`,
      parts: [
        { colour: resourceClass(row.resource), value: row.exposed, class: 'exposed-part', title: `exposed ${seconds(row.exposed)}` },
        { colour: resourceClass(row.resource), value: row.hidden, class: 'hidden-part', title: `hidden ${seconds(row.hidden)}` },
      ],
    })),
  });
  const list = h('div', null, exposedTable(parts, step));
  linkRows(chart, list.querySelectorAll('tbody tr:has(.swatch)'));
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h3', null, 'Step time'),
      h(
        'p',
        null,
        `${seconds(step)}, 90 % interval ${secondsRange(estimate.step_time_low_s, estimate.step_time_high_s, estimate.step_time_s)}, decided by ${resource(estimate.bound)}`,
      ),
    ),
    chart,
    resourceKey(parts),
    h(
      'div',
      { class: 'beside' },
      h('div', null, list, hiddenTable(parts, step)),
      h('div', null, h('h4', { class: 'soft' }, 'Busy time by resource (hidden part pale)'), use),
    ),
  );
}
