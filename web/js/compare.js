// Stored runs side by side, and which time and memory terms moved between the first and each other.

import { Problem, get } from './api.js';
import { changeText } from './changes.js';
import { h, table } from './dom.js';
import { dateTime, gib, gibLike, percent, rounded, seconds, secondsLike, secondsRange, words } from './format.js';
import { gatePanel } from './gate.js';
import { intervalMark, intervalScale } from './interval.js';
import { MOMENT_TEXT, verdict } from './memory_bar.js';
import { clusterText } from './plan_text.js';
import { picturePanel } from './pictures/panel.js';
import { signedBar } from './signed_bar.js';

const SMALL = 5e-4; // of the whole: less would be shown as +0.000

// Terms that moved, the largest move first, and one row for all that hardly did; the differences add up to the whole.
export function movedTerms(terms) {
  const whole = Math.max(...['from', 'to'].map((side) => terms.reduce((all, term) => all + term[side], 0)));
  const isMove = (term) => Math.abs(term.delta) > SMALL * whole;
  const moved = terms.filter(isMove).sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta));
  const rest = terms.filter((term) => !isMove(term));
  const sum = (side) => rest.reduce((all, term) => all + term[side], 0);
  if (!rest.some((term) => term.from > 0 || term.to > 0)) return moved;
  const name = rest.every((term) => term.delta === 0) ? 'unchanged' : 'all other terms';
  return [...moved, { name, from: sum('from'), to: sum('to'), delta: sum('delta') }];
}

function signed(show, value) {
  return value > 0 ? `+${show(value)}` : show(value);
}

// note: a sentence between the title and the table, or null.
function termsPanel(title, terms, names, show, note = null) {
  if (!terms?.length) return null;
  const rows = movedTerms(terms);
  const scale = Math.max(...rows.map((term) => Math.abs(term.delta)));
  const total = (member) => terms.reduce((all, term) => all + term[member], 0);
  return h(
    'section',
    { class: 'panel' },
    h('h2', null, title),
    note && h('p', { class: 'soft' }, note),
    table(
      title,
      [
        { title: 'Term' },
        { title: names[0], number: true },
        { title: names[1], number: true },
        { title: 'Difference', number: true },
        { title: 'Less or more' },
      ],
      rows.map(({ name, from, to, delta }) => [
        words(name),
        show(from),
        show(to),
        signed(show, delta),
        signedBar({ less: Math.min(0, delta), more: Math.max(0, delta), scale }),
      ]),
      { footer: ['Sum', show(total('from')), show(total('to')), signed(show, total('delta')), ''] },
    ),
  );
}

// How many tokens a step of the first run has for one of a step of the second; 1 where that is not known.
function tokensOf(first, second) {
  const [one, other] = [first?.tokens_per_step, second?.tokens_per_step];
  return one > 0 && other > 0 ? one / other : 1;
}

// A run with its times for the tokens of a step of the first one.
export function likened(first, run) {
  const scale = tokensOf(first, run);
  const of = (member) => (Number.isFinite(run[member]) ? run[member] * scale : run[member]);
  return { ...run, step_time_s: of('step_time_s'), step_time_low_s: of('step_time_low_s'), step_time_high_s: of('step_time_high_s') };
}

// stored: the runs as they were stored. Of an advice its first plan is compared.
function sidesTable(runs, stored, nameOf) {
  const first = runs[0];
  const small = (text) => h('span', { class: 'second' }, text);
  const change = (run, member) => (run === first ? '' : changeText(first[member], run[member]));
  const timeChange = (run) => {
    const scale = tokensOf(first, run);
    if (run === first || scale === 1) return change(run, 'step_time_s');
    const text = changeText(first.step_time_s, run.step_time_s * scale);
    return text && `${text} per token`;
  };
  const kinds = new Map(stored.map((run) => [run.run_id, run.kind]));
  const jobOf = ({ run_id: id, model, cluster }) => {
    const job = [model?.name, cluster ? clusterText(cluster) : null].filter(Boolean).join(' on ');
    return [job, kinds.get(id) === 'advise' ? 'plan 1 of the advice' : ''].filter(Boolean).join(', ');
  };
  const drawn = runs.map((run) => likened(first, run));
  const scale = intervalScale(drawn);
  return table(
    'Runs side by side',
    [
      { title: 'Run' },
      { title: 'Step time', number: true },
      { title: '90 % interval' },
      { title: 'Tokens/s per chip', number: true },
      { title: 'MFU', number: true },
      { title: 'HBM per device', number: true },
    ],
    runs.map((run, index) => [
      [
        h('a', { href: `#/runs/${encodeURIComponent(run.run_id)}` }, nameOf(run.run_id)),
        small(jobOf(run)),
      ],
      [seconds(run.step_time_s), small(timeChange(run))],
      [
        secondsRange(run.step_time_low_s, run.step_time_high_s, run.step_time_s),
        run.confidence ? small(words(run.confidence)) : null,
        intervalMark(drawn[index], scale),
        drawn[index].step_time_s === run.step_time_s ? null : small('drawn per token'),
      ],
      [rounded(run.tokens_per_s_per_chip), small(change(run, 'tokens_per_s_per_chip'))],
      percent(run.mfu_frac),
      [gib(run.hbm_bytes_per_device), ' ', verdict(run.fit_verdict), small(change(run, 'hbm_bytes_per_device'))],
    ]),
  );
}

// Whether the prediction can tell two runs apart at all, for as many tokens.
export function overlapNote(first, other, nameOf) {
  const scale = tokensOf(first, other);
  const [low, high] = [
    Math.max(first.step_time_low_s, other.step_time_low_s * scale),
    Math.min(first.step_time_high_s, other.step_time_high_s * scale),
  ];
  if (!(low <= high)) return null;
  return `The intervals of ${nameOf(first.run_id)} and ${nameOf(other.run_id)} overlap${scale === 1 ? '' : ' per token'}: what both share in error cancels in the difference, but a small difference may not show on a chip.`;
}

// What tells two runs apart beside their settings: then the difference is not one of these alone.
function unlikeNote({ from, to, unlike }, nameOf) {
  if (!unlike?.length) return null;
  const what = unlike.map((code) => (code === 'hardware' ? 'what-if hardware' : words(code))).join(', ');
  return `${nameOf(from)} and ${nameOf(to)} are unlike in more than their settings: ${what}. The difference is of all that together.`;
}

// How many tokens a step of the first run of a difference has for one of the second.
function scaleOf({ from, to }, runs) {
  const [first, second] = [from, to].map((id) => runs.find((run) => run.run_id === id));
  return tokensOf(first, second);
}

// The longer of two steps, for the same tokens: what moved is shown in its unit and digits.
export function stepOf({ time_terms: terms }, scale) {
  const total = (side, factor) => (terms ?? []).reduce((all, term) => all + term[side] * factor, 0);
  const ends = [total('from', 1), total('to', scale)].filter((end) => end > 0);
  return ends.length ? Math.max(...ends) : undefined;
}

function waterfallPanel(terms, scale, names) {
  if (!terms?.length) return null;
  if (terms.every((term) => Math.abs(term.to * scale - term.from) < 1e-9 * term.from)) {
    const same = `No term of the time moves: ${names[0]} and ${names[1]} are predicted alike${scale === 1 ? '' : ' for the same tokens'}.`;
    return h('section', { class: 'panel' }, h('h2', null, `From ${names[0]} to ${names[1]}`), h('p', null, same));
  }
  const other = scale === 1 ? null : `Per token: ${names[1]} is scaled to the tokens of a step of ${names[0]}.`;
  return picturePanel('waterfall', `From ${names[0]} to ${names[1]}`, { kind: 'terms', names, terms, scale, other }, 'h2');
}

// For the same tokens, as in the picture above it; show(seconds): its text.
function timePanel(terms, scale, names, show) {
  const scaled = terms?.map((term) => ({ ...term, to: term.to * scale, delta: term.to * scale - term.from }));
  if (scale === 1) return termsPanel('Where the time went (exposed)', scaled, names, show);
  return termsPanel('Where the time went (exposed), per token', scaled, [names[0], `${names[1]}, scaled`], show);
}

// Either run is itemised at its own peak; of two unlike ones the parts come and go with the moment.
export function momentsNote({ memory_at_from: from, memory_at_to: to }, names) {
  if (!from || !to || from === to) return null;
  const said = (at) => MOMENT_TEXT[at].toLowerCase();
  return `${names[0]} needs most ${said(from)}, ${names[1]} ${said(to)}: what is held at only one of these moments comes or goes whole.`;
}

// Map of run id -> its label, with the date where others have the same one, and with its id where these are of one minute.
export function namesOf(runs) {
  const names = [
    (run) => run.label || run.run_id.slice(0, 13),
    (run) => `${run.label || run.run_id.slice(0, 13)} (${dateTime(run.created_at)})`,
    (run) => `${run.label} (${run.run_id})`,
  ];
  const isAlone = (name, run) => runs.every((other) => other.run_id === run.run_id || name(other) !== name(run));
  return new Map(runs.map((run) => [run.run_id, (names.find((name) => isAlone(name, run)) ?? names[2])(run)]));
}

const MOST = 16; // runs of one comparison

export async function showCompare(place, ids) {
  if (ids.length < 2 || ids.length > MOST) {
    const detail = `A comparison is of 2 to ${MOST} runs, and the link names ${ids.length || 'none'}. Tick them in the list of stored runs.`;
    throw new Problem({ title: 'The link names no comparison', detail });
  }
  const [answer, ...stored] = await Promise.all([
    get(`/v1/compare?runs=${ids.map(encodeURIComponent).join(',')}`),
    ...ids.map((id) => get(`/v1/runs/${encodeURIComponent(id)}`)), // for their labels
  ]);
  const names = namesOf(stored);
  const nameOf = (id) => names.get(id) ?? id.slice(0, 13);
  const [first, ...others] = answer.runs;
  const named = ({ run_id: id }) => ({ id, name: nameOf(id) });
  place.replaceChildren(
    h(
      'div',
      { class: 'results' },
      h(
        'section',
        { class: 'panel' },
        h('h1', null, 'Comparison'),
        sidesTable(answer.runs, stored, nameOf),
        others.map((run) => overlapNote(first, run, nameOf)).map((said) => said && h('p', { class: 'soft' }, said)),
        answer.differences.map((difference) => unlikeNote(difference, nameOf)).map((said) => said && h('p', null, said)),
      ),
      answer.differences.map((difference) => {
        const ends = [nameOf(difference.from), nameOf(difference.to)];
        const scale = scaleOf(difference, answer.runs);
        const step = stepOf(difference, scale);
        return [
          waterfallPanel(difference.time_terms, scale, ends),
          h(
            'div',
            { class: 'columns terms' },
            timePanel(difference.time_terms, scale, ends, (value) => secondsLike(value, step)),
            termsPanel('Where the memory went', difference.memory_terms, ends, gibLike, momentsNote(difference, ends)),
          ),
        ];
      }),
      gatePanel(named(first), others.map(named)),
    ),
  );
}
