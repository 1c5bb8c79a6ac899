// The address of what is on screen: beside the form (or the run) it names the chosen plan and tab, so that a link shows the
// same again.

const VIEW = ['plan', 'tab'];

// {plan, tab} of an address, each undefined where it says nothing.
export function viewOf(hash = location.hash) {
  const query = new URLSearchParams(hash.split('?')[1] ?? '');
  return Object.fromEntries(VIEW.map((name) => [name, query.get(name) ?? undefined]));
}

// Writes parts of the view into the address, without a step of the history.
export function keepView(view) {
  const [path, text = ''] = location.hash.split('?');
  const query = new URLSearchParams(text);
  for (const [name, value] of Object.entries(view)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const rest = query.toString();
  const address = `${path || '#/'}${rest ? `?${rest}` : ''}`;
  if (address !== location.hash) history.replaceState(null, '', address); // which costs a layout of the page
}
