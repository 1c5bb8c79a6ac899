// The two settings of a sweep: as they are typed, as its items have them, and where an error of them stands in the form. Pure.

import { parseValue } from './config_text.js';

// Splits at commas outside quotes and brackets.
function splitList(text) {
  const parts = [''];
  let depth = 0;
  let quote = '';
  for (const letter of text) {
    if (quote) quote = letter === quote ? '' : quote;
    else if (/['"]/.test(letter)) quote = letter;
    else if (/[[{]/.test(letter)) depth += 1;
    else if (/[\]}]/.test(letter)) depth -= 1;
    if (letter === ',' && depth === 0 && !quote) parts.push('');
    else parts[parts.length - 1] += letter;
  }
  return parts.map((part) => part.trim()).filter(Boolean);
}

// The values of a key: "1, 2, 4", or a list of YAML, "[1, 2, 4]" and "- 1 - 2 - 4" (an entry of one line loses the line breaks of what
// is pasted).
function valuesOf(text) {
  const items = /^-\s/.test(text) ? text.replace(/^-\s+/, '').split(/\s+-\s+/) : splitList(text);
  const values = items.map((item) => parseValue(item));
  return values.length === 1 && Array.isArray(values[0]) ? values[0] : values;
}

// "per_device_batch_size=1, 2, 4" -> {key, values}; null where it is no axis.
export function parseAxis(text) {
  const found = /^\s*([A-Za-z_]\w*)\s*[=:]\s*(.+?)\s*$/s.exec(text);
  if (!found) return null;
  const values = valuesOf(found[2]);
  return values.length ? { key: found[1], values } : null;
}

const LAST_NAME = /[^/]*$/;

// The members in which the items of a sweep differ: [{pointer, key, values, of(item)}], in the order of the first item. Pure.
export function axesOf(items) {
  const first = items.find((item) => item.item === 0)?.changes ?? {};
  return Object.keys(first).map((pointer) => {
    const of = (item) => item.changes?.[pointer] ?? first[pointer];
    const texts = [...new Set(items.map((item) => JSON.stringify(of(item))))];
    return { pointer, key: LAST_NAME.exec(pointer)[0], values: texts.map((text) => JSON.parse(text)), of };
  });
}

// The two axes of a sweep that is their grid, the last one varying fastest; null for any other. Pure.
export function gridOf(items) {
  const axes = axesOf(items);
  if (axes.length !== 2 || items.length !== axes[0].values.length * axes[1].values.length) return null;
  const changes = (axis) => items.filter((item, at) => at > 0 && JSON.stringify(axis.of(item)) !== JSON.stringify(axis.of(items[at - 1]))).length;
  const [slow, fast] = changes(axes[0]) <= changes(axes[1]) ? axes : [axes[1], axes[0]];
  const width = fast.values.length;
  const isGrid = items.every((item, at) => JSON.stringify(slow.of(item)) === JSON.stringify(slow.values[Math.floor(at / width)]) && JSON.stringify(fast.of(item)) === JSON.stringify(fast.values[at % width]));
  return isGrid ? [slow, fast] : null;
}

// Whether named axes are those that the items differ in; items that tell of no change cannot contradict.
export function isSweptBy(items, y, x) {
  const width = x.values.length;
  const valueOf = (axis, item) => {
    if (axis.key === y.key) return y.values[Math.floor(item.item / width)];
    return axis.key === x.key ? x.values[item.item % width] : undefined;
  };
  return axesOf(items).every((axis) => items.every((item) => JSON.stringify(axis.of(item)) === JSON.stringify(valueOf(axis, item))));
}

const POINTERS = [
  [/^\/grid\/base\/model/, 'sweep-model'],
  [/^\/grid\/base\/cluster\/topology/, 'sweep-topology'],
  [/^\/grid\/base\/cluster\/slices/, 'sweep-slices'],
  [/^\/grid\/base\/project/, 'sweep-project'],
  [/^\/grid\/base\/cluster/, 'sweep-chip'],
  [/^\/grid\/base\/xla_flags/, 'sweep-xla_flags'],
  [/^\/grid\/base/, 'sweep-config'],
  [/^\/requests?(\/\d+)?\/model/, 'sweep-model'],
  [/^\/requests?(\/\d+)?\/cluster\/topology/, 'sweep-topology'],
  [/^\/requests?(\/\d+)?\/cluster\/slices/, 'sweep-slices'],
  [/^\/requests?(\/\d+)?\/cluster/, 'sweep-chip'],
  [/^\/requests?(\/\d+)?\/xla_flags/, 'sweep-xla_flags'],
  [/^\/y/, 'sweep-y'],
  [/^\/x/, 'sweep-x'],
  [/^\/label/, 'sweep-label'],
];

// The entry that an error is about; down and across: the keys that are swept.
export function locateSweep(pointer, { y: down, x: across }) {
  const swept = /^\/grid\/axes\/~1config~1([^/]*)/.exec(pointer)?.[1];
  if (swept && (swept === down || swept === across)) return { field: swept === across ? 'sweep-x' : 'sweep-y', below: '' };
  const row = POINTERS.find(([pattern]) => pattern.test(pointer));
  return { field: row ? row[1] : pointer ? 'sweep-config' : null, below: row ? '' : pointer };
}
