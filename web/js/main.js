// Starts the page: the router chooses the view, the catalog fills the form.

import { arriveAtTab } from './address.js';
import { loadCatalog } from './catalog.js';
import { showCompare } from './compare.js';
import { byId, h, loading } from './dom.js';
import { clearErrors } from './errors.js';
import { failedPage, missingPage } from './failure.js';
import { connectForm, openLink, returnToForm, showFormFailure, useCatalog, writeState } from './form.js';
import { connectKernels, openKernels } from './kernel_form.js';
import { queryToState } from './permalink.js';
import { preloadPictures } from './pictures/panel.js';
import { startRouter } from './router.js';
import { showRun, showRuns } from './runs.js';
import { connectTheme } from './theme.js';

const TITLES = {
  plan: 'TPU Advisor',
  kernels: 'Kernels – TPU Advisor',
  runs: 'Runs – TPU Advisor',
  run: 'Run – TPU Advisor',
  compare: 'Comparison – TPU Advisor',
  accuracy: 'Accuracy – TPU Advisor',
  sweeps: 'Sweeps – TPU Advisor',
  sweep: 'Sweep – TPU Advisor',
  missing: 'No such page – TPU Advisor',
};

// Each visit fills a place of its own, so an answer that arrives after the reader has moved on is not seen.
async function showOther(route) {
  const name = TITLES[route.view].replace(/ – .*/, '');
  const place = h('div', null, h('div', { class: 'results' }, h('h1', { class: 'loading' }, name), loading()));
  const views = {
    runs: () => showRuns(place, route.query),
    run: () => showRun(place, route.id),
    compare: () => showCompare(place, route.runs),
    sweeps: () => import('./sweeps.js').then(({ showSweeps }) => showSweeps(place, route.query)),
    sweep: () => import('./sweeps.js').then(({ showSweep }) => showSweep(place, route.id, route.query)),
    accuracy: () => import('./accuracy.js').then(({ showAccuracy }) => showAccuracy(place, route.query)),
    missing: () => place.replaceChildren(missingPage(route.path)),
  };
  byId('view-other').replaceChildren(place);
  try {
    await views[route.view]();
  } catch (error) {
    place.replaceChildren(failedPage(name, error));
  }
  if (!place.isConnected || arriveAtTab(place)) return;
  byId('view-other').focus({ preventScroll: true });
  window.scrollTo({ top: 0, behavior: 'instant' }); // with the header in sight
}

const PARENTS = { run: 'runs', compare: 'runs', sweep: 'sweeps' };
const RESULTS = { plan: 'results', kernels: 'k-results' };

function show(route) {
  const { view } = route;
  const other = !(view in RESULTS);
  document.title = TITLES[view];
  for (const name of Object.keys(RESULTS)) byId(`view-${name}`).hidden = name !== view;
  byId('view-other').hidden = !other;
  byId('skip').hidden = other;
  for (const name of [...Object.keys(RESULTS), 'runs', 'sweeps', 'accuracy']) {
    if (name === view || name === PARENTS[view]) byId(`nav-${name}`).setAttribute('aria-current', 'page');
    else byId(`nav-${name}`).removeAttribute('aria-current');
  }
  if (other) showOther(route);
  else if (view === 'kernels') openKernels(route.query);
  else if (route.query) openLink(route.query, ready);
  else returnToForm();
}

async function fillCatalog() {
  try {
    const catalog = await loadCatalog();
    useCatalog(catalog);
    if (catalog.engine?.version) byId('engine').textContent = byId('engine').title = `engine ${catalog.engine.version}`;
  } catch (error) {
    showFormFailure(error);
  }
}

connectTheme();
connectForm();
connectKernels();
writeState(queryToState(''));
const ready = fillCatalog();
startRouter(show);
ready.then(preloadPictures);
byId('token').addEventListener('change', async () => {
  clearErrors(byId('form'));
  await fillCatalog();
});
byId('skip').addEventListener('click', () => {
  const shown = Object.keys(RESULTS).find((view) => !byId(`view-${view}`).hidden);
  byId(RESULTS[shown]).focus();
});
