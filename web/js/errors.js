// Shows what is wrong where it is wrong: a list beside each field and a linked summary on top. Clears only its own marks.
// locate(pointer, error) gives {field, below}: the id of the control a JSON pointer is about (null: none) and what lies below it.

import { announce, byId, h } from './dom.js';
import { inline, plain, sentenceOf } from './inline.js';
import { spokenAt } from './labels.js';
import { mendSettings, suggestionsOf } from './suggestions.js';

// The words beside a control, without its unit.
function labelOf(field) {
  const label = byId(field)?.labels?.[0]?.cloneNode(true);
  label?.querySelectorAll('.unit').forEach((unit) => unit.remove());
  return label?.textContent.trim() ?? '';
}

function sentence(error, below, field) {
  const label = field && !below ? labelOf(field) : '';
  const detail = spokenAt(error.detail ?? error.code ?? 'is not accepted', error.pointer?.split('/').pop(), label);
  const named = below && !/^\d+$/.test(below) && !detail.includes(below.split('/').pop());
  return named ? [h('code', null, below), ': ', inline(detail)] : inline(sentenceOf(detail));
}

// Puts a suggested value where the error is: into the whole field, or at the one key of pasted settings.
function take(control, below, suggestion, error) {
  const key = below?.split('/').pop();
  const isKey = !/value|range|must be/.test(`${error.code} ${error.detail}`);
  const mended = key && control.tagName === 'TEXTAREA' ? mendSettings(control.value, key, suggestion, isKey) : null;
  control.value = mended ?? suggestion;
  control.dispatchEvent(new Event('input', { bubbles: true }));
  announce(`${suggestion} is entered`);
}

function suggestionButtons(control, { error, below }) {
  const isSettings = control.tagName === 'TEXTAREA';
  return suggestionsOf(error.hint)
    .filter(() => !isSettings || below)
    .map((suggestion) => {
      const button = h('button', { type: 'button', class: 'small' }, `Use ${suggestion}`);
      button.addEventListener('click', () => {
        take(control, below, suggestion, error);
        button.closest('li').remove();
        control.removeAttribute('aria-invalid');
        control.focus();
      });
      return button;
    });
}

function describe(control, id, add) {
  const ids = new Set((control.getAttribute('aria-describedby') ?? '').split(/\s+/).filter(Boolean));
  if (add) ids.add(id);
  else ids.delete(id);
  if (ids.size) control.setAttribute('aria-describedby', [...ids].join(' '));
  else control.removeAttribute('aria-describedby');
}

export function clearErrors(form) {
  for (const list of form.querySelectorAll('.field-error, .field-warning')) {
    const control = byId(list.dataset.field);
    control.removeAttribute('aria-invalid');
    describe(control, list.id, false);
    list.remove();
  }
  form.querySelector('.error-summary').hidden = true;
}

// kind: "error" marks the field as invalid, "warning" only adds the text.
function showAtField(name, entries, kind) {
  const control = byId(name);
  for (let parent = control.closest('details'); parent; parent = parent.parentElement.closest('details'))
    parent.open = true;
  const id = `${name}-${kind}`;
  const list = h(
    'ul',
    { class: `field-${kind}`, id, 'data-field': name },
    entries.map(({ error, below }) =>
      h(
        'li',
        null,
        sentence(error, below, name),
        error.hint ? h('span', { class: 'remedy' }, ' ', inline(sentenceOf(error.hint))) : null,
        suggestionButtons(control, { error, below }),
      ),
    ),
  );
  (control.closest('.check') ?? control).after(list); // a box has its name behind it
  if (kind === 'error') control.setAttribute('aria-invalid', 'true');
  describe(control, id, true);
}

// [{field, error, below}] for the fields of the page; field null where there is none.
function placed(errors, locate) {
  return errors.map((error) => {
    const { field, below } = locate(error.pointer ?? '', error);
    const known = field && byId(field);
    return { field: known ? field : null, error, below: known ? below : error.pointer };
  });
}

function showBeside(entries, kind) {
  const fields = new Set(entries.map((entry) => entry.field).filter(Boolean));
  for (const name of fields)
    showAtField(
      name,
      entries.filter((entry) => entry.field === name),
      kind,
    );
}

// Shows an answer's warnings beside the fields they are about. The focus stays where it is.
export function showWarnings(locate, warnings) {
  showBeside(placed(warnings, locate), 'warning');
}

function summaryLine({ field, error, below }) {
  const text = sentence(error, below, field);
  if (!field) return h('li', null, text, error.hint ? [' ', inline(sentenceOf(error.hint))] : '');
  const row = byId(field).closest('[role="group"][aria-label]')?.getAttribute('aria-label'); // of entries that there are several of
  const go = (event) => {
    event.preventDefault();
    byId(field).focus();
  };
  return h('li', null, h('a', { href: `#${field}`, onclick: go }, row ? `${row}: ` : '', text));
}

const same = (a, b) =>
  String(a ?? '')
    .toLowerCase()
    .replace(/\.$/, '') ===
  String(b ?? '')
    .toLowerCase()
    .replace(/\.$/, '');

// The sentence below the title, for a fault of no entry: without saying the title twice, and when to try again.
export function generalText(problem) {
  const title = problem.message ?? problem.title;
  const general = problem.errors.filter((error) => !error.pointer);
  const details = general.length
    ? general.flatMap((error) => [error.detail, error.hint])
    : problem.errors.length
      ? []
      : [problem.detail];
  const said = details
    .filter((detail) => detail && !same(detail, title))
    .map((detail) => `${detail[0].toUpperCase()}${detail.slice(1)}${/[.?!]$/.test(detail) ? '' : '.'}`);
  if (problem.notShown) said.push(`${problem.notShown} more are not shown.`);
  const isLasting = said.some((text) => /is configured/.test(text)); // a daemon without a database gets none by waiting
  if (problem.retryAfter && !isLasting) said.push(`Try again in ${problem.retryAfter} s.`);
  return said.join(' ');
}

// The summary of a form that is made by the page: hidden until there is a problem.
export function errorSummary(id) {
  return h(
    'div',
    { class: 'error-summary', role: 'group', tabindex: '-1', 'aria-labelledby': id, hidden: true },
    h('h2', { id }),
    h('p'),
    h('ul'),
  );
}

// The title of a problem is that of its first error: of several kinds their number says more.
function headOf(problem, entries) {
  const kinds = new Set(entries.map(({ error }) => error.code));
  return kinds.size > 1 ? `${entries.length} entries need a change` : plain(problem.message ?? problem.title);
}

// problem: {title, detail?, errors[], status?, retryAfter?}. Moves the focus to the summary.
export function showErrors(form, locate, problem) {
  clearErrors(form);
  const entries = placed(
    problem.errors.filter((error) => error.pointer),
    locate,
  );
  showBeside(entries, 'error');
  const summary = form.querySelector('.error-summary');
  summary.querySelector('h2').textContent = headOf(problem, entries);
  summary.querySelector('p').replaceChildren(...inline(generalText(problem)));
  summary.querySelector('ul').replaceChildren(...entries.map(summaryLine));
  summary.hidden = false;
  summary.focus();
}
