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

// Where on screen the open tab of a plan is, for the page that shows the same plan next; null: at its top.
let tabAt = null;

const openTabOf = (place) => place?.querySelector('.tab-panel.current');

export function leaveTab(place) {
  tabAt = openTabOf(place)?.getBoundingClientRect().top ?? null;
}

// Brings the tab in `place` to where the earlier one was left, and the focus to it; false where there is nothing to do.
export function arriveAtTab(place) {
  const panel = openTabOf(place);
  const top = tabAt;
  tabAt = null;
  if (top === null || !panel) return false;
  document.getElementById(panel.id.replace('-panel-', '-tab-'))?.focus({ preventScroll: true });
  window.scrollBy({ top: panel.getBoundingClientRect().top - top, behavior: 'instant' });
  return true;
}
