// A form that asks the daemon and a place for the answer: sending, cancelling, the busy mark, failures beside the fields.

import { Problem, post } from './api.js';
import { announce, h } from './dom.js';
import { clearErrors, showErrors, showWarnings } from './errors.js';

function problemOf(error) {
  if (error instanceof Problem) return error;
  return new Problem({
    title: 'The page failed to show the answer',
    detail: `${error.message}. Reload the page; the address keeps what you entered.`,
  });
}

// Marks an answer on screen as one to an earlier question: it says so, and goes pale, until the next answer.
function markStale(results) {
  if (results.classList.contains('stale') || !results.querySelector('.panel')) return;
  results.classList.add('stale');
  results.prepend(h('p', { class: 'stale-note' }, 'The last request failed. What is below answers the one before it.'));
}

const CHANGED = 'The form has been changed since. What is below answers what was asked before.';

function entriesProblem(errors) {
  const title = errors.length === 1 ? 'One entry needs a change' : `${errors.length} entries need a change`;
  return new Problem({ title, errors });
}

// build() gives {path, body, errors, locate, address?, state?, send?}: send is post unless the request is another, address where the
// answer can be found again; label() is the text of the submit button; show(body, answer, state) fills
// `results`; failed(problem), if given, comes after the errors are shown; prepare(signal) gives null, or a promise that the question waits for. The form has an .error-summary, and
// a button.cancel if its request may take long. Returns {submit, relabel, fail}.
export function connectAsk({ form, results, build, label, show, failed, prepare }) {
  const button = form.querySelector('button[type="submit"]');
  const cancel = form.querySelector('.cancel');
  const changed = h('p', { class: 'stale-note' }, CHANGED);
  let running = null;
  let answered = null; // the address of the answer on screen

  // An answer beside a form that asks something else by now says so.
  const noteChange = () => {
    const isOther = answered !== null && build().address !== answered && !results.classList.contains('stale');
    if (!isOther) changed.remove();
    else if (!changed.isConnected) results.prepend(changed);
  };

  const relabel = () => {
    button.textContent = running ? 'Working …' : label();
    noteChange();
  };

  const setRunning = (controller) => {
    running = controller;
    const busy = Boolean(controller);
    results.setAttribute('aria-busy', String(busy));
    results.classList.toggle('busy', busy);
    button.setAttribute('aria-disabled', String(busy));
    if (cancel) cancel.hidden = !busy;
    relabel();
    if (busy) announce('Working');
  };

  const fail = (locate, error) => {
    showErrors(form, locate, problemOf(error));
    markStale(results);
    failed?.(error);
  };

  // What has to be read before the question can be built; false where that failed.
  const prepared = async () => {
    const controller = new AbortController();
    const reading = prepare?.(controller.signal);
    if (!reading) return true;
    setRunning(controller);
    try {
      await reading;
      return true;
    } catch (error) {
      if (error.name === 'AbortError') announce('Cancelled');
      else fail(build().locate, error);
      return false;
    } finally {
      setRunning(null);
    }
  };

  // keep: the address stays as it is, as when a link is opened.
  const submit = async ({ keep = false } = {}) => {
    if (running) return;
    clearErrors(form);
    if (!(await prepared())) return;
    const built = build();
    const { path, body, errors, locate, address = location.hash, state, send = post } = built;
    if (errors.length) {
      fail(locate, entriesProblem(errors));
      return;
    }
    if (!keep && location.hash !== address) history.pushState(null, '', address);
    const controller = new AbortController();
    setRunning(controller);
    try {
      const answer = await send(path, body, controller.signal);
      results.classList.remove('stale');
      answered = built.address ?? null;
      await show(body, answer, state);
      showWarnings(locate, answer.warnings ?? []);
      results.focus({ preventScroll: true });
      if (window.matchMedia('(max-width: 60rem)').matches) results.scrollIntoView({ block: 'start' });
    } catch (error) {
      if (error.name === 'AbortError') announce('Cancelled');
      else fail(locate, error);
    } finally {
      setRunning(null);
    }
  };

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  cancel?.addEventListener('click', () => {
    running?.abort();
    button.focus();
  });
  return { submit, relabel, fail };
}
