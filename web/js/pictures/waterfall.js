// From one step time to another: what moved it, bar by bar, adding up to the difference.

import { max, min, scaleLinear, sum } from 'd3';
import { h, table } from '../dom.js';
import { percent, seconds, signedPercent, words } from '../format.js';
import { bottomAxis, fitting } from './axes.js';
import { frame, valuesTable } from './frame.js';

const MOST = 14;
const ROW = 27;
const SMALL = 5e-4; // of the start: less would be shown as 0.0 %

// The largest moves one by one, those too small to be seen (of `whole` seconds) and too many together, so that they still add up.
export function fewer(moves, whole = 0, most = MOST) {
  const seen = moves.filter((move) => Math.abs(move.change_s) >= SMALL * whole);
  const largest = [...seen].sort((a, b) => Math.abs(b.change_s) - Math.abs(a.change_s));
  const kept = moves.length <= most ? seen : largest.slice(0, most - 1);
  const rest = moves.filter((move) => !kept.includes(move));
  if (rest.length < 2) return moves;
  return [...moves.filter((move) => kept.includes(move)), { name: `${rest.length} others`, detail: rest.map((move) => move.name).join(', '), change_s: sum(rest, (move) => move.change_s) }];
}

// Steps of changes_from_baseline: keys taken over together are one bar. Seconds are of the baseline's step, so batches may differ.
export function movesOfChanges(changes, from_s) {
  const steps = new Map();
  for (const change of changes.filter((one) => one.order > 0)) {
    const same = steps.get(change.order) ?? { keys: [], change_s: -change.gain_frac * from_s, own: change.own_gain_frac };
    same.keys.push(change);
    steps.set(change.order, same);
  }
  const shown = (value) => (typeof value === 'object' ? JSON.stringify(value) : String(value));
  return [...steps.entries()]
    .sort((a, b) => a[0] - b[0])
    .map(([, { keys, change_s }]) => ({
      name: keys.length === 1 ? `${keys[0].key} = ${shown(keys[0].to)}` : `${keys[0].key} and ${keys.length - 1} more`,
      detail: keys.map((key) => `${key.key}: ${shown(key.from)} to ${shown(key.to)}`).join('; '),
      change_s,
    }));
}

// From my configuration to a plan: the steps in their order. gain: of the time of a token.
function ofChanges({ name, changes, gain, from }) {
  const start = from.step_time_s;
  const moves = movesOfChanges(changes, start);
  return {
    from: { name: 'My configuration', seconds: start },
    to: { name, seconds: start * (1 - gain) },
    moves,
    note: 'Settings one after the other, the most useful first; each bar is what it saves on top of those above it. Times are for my batch: plans with another batch are compared by the time of a token.',
  };
}

// Between two runs: the terms that moved, for the same number of tokens.
function ofTerms({ names, terms, scale, other }) {
  const total = (side, factor) => sum(terms, (term) => term[side] * factor);
  return {
    from: { name: names[0], seconds: total('from', 1) },
    to: { name: names[1], seconds: total('to', scale) },
    moves: terms.map((term) => ({ name: words(term.name), change_s: term.to * scale - term.from })).filter((move) => move.change_s !== 0).sort((a, b) => a.change_s - b.change_s),
    note: other,
  };
}

// input: changes of a plan (kind "changes") or terms of two runs (kind "terms").
export function show(input) {
  const shown = input.kind === 'changes' ? ofChanges(input) : ofTerms(input);
  const numbers = [shown.from.seconds, shown.to.seconds, ...shown.moves.map((move) => move.change_s)];
  return numbers.every(Number.isFinite) && shown.from.seconds > 0 ? draw(shown) : null;
}

// Where the axis begins: at zero, unless the moves are too small to be seen from there. Pure.
export function lowEnd(levels) {
  const [least, most] = [min(levels), max(levels)];
  return least < 0.7 * most ? 0 : Math.max(0, least - (most - least || most * 0.1) * 0.35);
}

// {from: {name, seconds}, to: {name, seconds}, moves: [{name, change_s, detail?}], note?}; the moves add up to to - from.
function draw({ from, to, moves, note }) {
  const bars = fewer(moves, from.seconds);
  let at = from.seconds;
  const steps = bars.map((move) => {
    const start = at;
    at += move.change_s;
    return { ...move, start, end: at };
  });
  const levels = [from.seconds, to.seconds, ...steps.map((step) => step.end)];
  const span = max(levels) - min(levels) || max(levels) * 0.1;
  const low = lowEnd(levels);
  const fill = ({ svg, width }) => {
    const narrow = width < 560;
    const left = narrow ? 0 : Math.min(300, width * 0.36);
    const row = narrow ? 42 : ROW;
    const x = scaleLinear([low, max(levels) + span * 0.06], [left, width - 70]);
    const items = [
      { name: from.name, start: low, end: from.seconds, total: true },
      ...steps,
      { name: to.name, start: low, end: to.seconds, total: true },
    ].map((step, index) => {
      const y = index * row + (narrow ? 17 : 2);
      const [x0, x1] = [Math.min(x(step.start), x(step.end)), Math.max(x(step.start), x(step.end))];
      const kind = step.total ? 'total' : step.change_s <= 0 ? 'gain' : 'loss';
      svg.append('text').attr('class', `lane-name${step.total ? ' strong' : ''}`).attr('x', 0).attr('y', narrow ? y - 4 : y + 15).text(fitting(step.name, narrow ? width : left - 8) || step.name.slice(0, 8));
      svg.append('rect').attr('class', `fall fall-${kind}`).attr('x', x0).attr('width', Math.max(1.5, x1 - x0)).attr('y', y).attr('height', 20);
      if (index <= steps.length) svg.append('line').attr('class', 'fall-line').attr('x1', x(step.end)).attr('x2', x(step.end)).attr('y1', y + 20).attr('y2', y + row);
      svg.append('text').attr('class', 'value').attr('x', x1 + 4).attr('y', y + 15).text(step.total ? seconds(step.end) : signedPercent(step.change_s / from.seconds));
      return {
        x: (x0 + x1) / 2,
        y: y + 10,
        box: [x0, y, Math.max(x1, x0 + 4), y + 20],
        text: step.total ? `${step.name}: ${seconds(step.end)}` : `${step.detail ?? step.name}: ${step.change_s > 0 ? 'adds' : 'saves'} ${seconds(Math.abs(step.change_s))}, ${percent(Math.abs(step.change_s) / from.seconds)} of ${from.name}`,
      };
    });
    bottomAxis(svg, x, { y: items.length * row + 4, ticks: narrow ? 4 : 7, title: low > 0 ? 'step time, s (not from zero)' : 'step time, s', x1: width - 70 });
    return items;
  };
  const picture = frame({
    label: `From ${from.name} to ${to.name}: what changes the step time.`,
    height: (width) => (bars.length + 2) * (width < 560 ? 42 : ROW) + 48,
    hint: 'Point at a bar for what it changes.',
    draw: fill,
  });
  return [
    note ? h('p', { class: 'soft' }, note) : null,
    picture.place,
    valuesTable(
      table(
        `From ${from.name} to ${to.name}`,
        [{ title: 'What' }, { title: 'Change', number: true }, { title: 'Of the start', number: true }, { title: 'Then', number: true }],
        [[from.name, '', '', seconds(from.seconds)], ...steps.map((step) => [step.detail ?? step.name, `${step.change_s > 0 ? '+' : '−'}${seconds(Math.abs(step.change_s))}`, signedPercent(step.change_s / from.seconds), seconds(step.end)])],
        { footer: [to.name, '', signedPercent(to.seconds / from.seconds - 1), seconds(to.seconds)] },
      ),
    ),
  ];
}
