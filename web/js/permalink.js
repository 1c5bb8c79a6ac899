// The page's address: "#/?model=…&chip=…" is the whole form, so a link or a reload brings everything back.

import { DEFAULTS } from './request.js';

const NOT_IN_LINK = new Set(['store']);

// Only what differs from the defaults, in the form's order, so that links stay short and comparable.
export function stateToQuery(state, defaults = DEFAULTS) {
  const query = new URLSearchParams();
  for (const name of new Set([...Object.keys(defaults), ...Object.keys(state)])) {
    const value = state[name] ?? '';
    if (name in state && !NOT_IN_LINK.has(name) && value !== (defaults[name] ?? '')) query.set(name, value);
  }
  return query.toString();
}

// isKnown says which names the form has; what else a link holds is left out.
export function queryToState(text, defaults = DEFAULTS, isKnown = (name) => name in defaults) {
  const state = { ...defaults };
  for (const [name, value] of new URLSearchParams(text)) {
    if (isKnown(name) && !NOT_IN_LINK.has(name)) state[name] = value;
  }
  return state;
}
