// The page's address: "#/?model=…&chip=…" is the whole form, so a link or a reload brings everything back.

import { DEFAULTS } from './request.js';

const NOT_IN_LINK = new Set(['store']);

// Only what differs from the defaults, in the form's order, so that links stay short and comparable.
export function stateToQuery(state) {
  const query = new URLSearchParams();
  for (const [name, standard] of Object.entries(DEFAULTS)) {
    const value = state[name] ?? '';
    if (!NOT_IN_LINK.has(name) && value !== standard) query.set(name, value);
  }
  return query.toString();
}

export function queryToState(text) {
  const state = { ...DEFAULTS };
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in DEFAULTS && !NOT_IN_LINK.has(name)) state[name] = value;
  }
  return state;
}
