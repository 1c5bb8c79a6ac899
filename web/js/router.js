// Views by the part after "#": "#/?…" the plan form, "#/kernels?…" the kernel form, "#/runs", "#/runs/ID", "#/compare?runs=a,b",
// "#/accuracy", "#/sweeps", "#/sweeps/ID"; any other part is a view that is missing.

// What no browser writes may be typed or cut off: then the text itself is the part.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function parseRoute(hash) {
  const [path, query = ''] = hash.replace(/^#/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decoded);
  if (parts[0] === 'runs') return parts[1] ? { view: 'run', id: parts[1] } : { view: 'runs', query };
  if (parts[0] === 'sweeps') return parts[1] ? { view: 'sweep', id: parts[1], query } : { view: 'sweeps', query };
  if (parts[0] === 'accuracy') return { view: 'accuracy', query };
  if (parts[0] === 'compare')
    return { view: 'compare', runs: (new URLSearchParams(query).get('runs') ?? '').split(',').filter(Boolean) };
  if (parts[0] === 'kernels') return { view: 'kernels', query };
  if (parts.length) return { view: 'missing', path };
  return { view: 'plan', query };
}

// Calls show(route) now and whenever the address changes; anchors without a slash are not routes. Going back fires
// popstate as well as hashchange, so only one of them is heard: both would draw each view twice.
export function startRouter(show) {
  const follow = () => {
    if (location.hash === '' || location.hash.startsWith('#/')) show(parseRoute(location.hash));
  };
  window.addEventListener('hashchange', follow);
  follow();
}
