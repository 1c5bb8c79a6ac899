// The question of one item of a sweep, as the address of the form. Pure.

import { stateToQuery } from './permalink.js';
import { stateOfRequest, unaskable } from './request.js';

const partsOf = (pointer) => pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));

// A request with members set: {"/config/remat_policy": "full"}.
export function withChanges(request, changes) {
  const made = structuredClone(request);
  for (const [pointer, value] of Object.entries(changes ?? {})) {
    const parts = partsOf(pointer);
    const last = parts.pop();
    let place = made;
    for (const part of parts) place = place[part] ??= {};
    place[last] = value;
  }
  return made;
}

// first: the request of item 0, from which `changes` go; null where the form cannot ask it. The answer comes at once.
export function itemAddress(first, changes) {
  if (!first) return null;
  const request = withChanges(first, changes);
  if (unaskable(request).length) return null;
  return `#/?${stateToQuery(stateOfRequest(request))}&plan=${request.workload ? '1' : 'mine'}`;
}
