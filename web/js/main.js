// Starts the page: the router chooses the view, the catalog fills the form.

import { loadCatalog } from './catalog.js';
import { showCompare } from './compare.js';
import { byId, h } from './dom.js';
import { clearErrors } from './errors.js';
import { connectForm, showFormFailure, useCatalog, writeState } from './form.js';
import { queryToState } from './permalink.js';
import { startRouter } from './router.js';
import { failure, showRun, showRuns } from './runs.js';

const TITLES = {
  plan: 'TPU Advisor',
  runs: 'Runs – TPU Advisor',
  run: 'Run – TPU Advisor',
  compare: 'Comparison – TPU Advisor',
};

// Each visit fills a place of its own, so an answer that arrives after the reader has moved on is not seen.
async function showOther(route) {
  const place = h('div');
  const views = {
    runs: () => showRuns(place, route.query),
    run: () => showRun(place, route.id),
    compare: () => showCompare(place, route.runs),
  };
  byId('view-other').replaceChildren(place);
  try {
    await views[route.view]();
  } catch (error) {
    place.replaceChildren(failure(error));
  }
  if (place.isConnected) byId('view-other').focus();
}

function show(route) {
  const plan = route.view === 'plan';
  document.title = TITLES[route.view];
  byId('view-plan').hidden = !plan;
  byId('view-other').hidden = plan;
  byId('skip').hidden = !plan;
  for (const [id, current] of [
    ['nav-plan', plan],
    ['nav-runs', !plan],
  ]) {
    if (current) byId(id).setAttribute('aria-current', 'page');
    else byId(id).removeAttribute('aria-current');
  }
  if (!plan) showOther(route);
  else if (route.query) writeState(queryToState(route.query));
}

async function fillCatalog() {
  try {
    const catalog = await loadCatalog();
    useCatalog(catalog);
    if (catalog.engine?.version) byId('engine').textContent = `engine ${catalog.engine.version}`;
  } catch (error) {
    showFormFailure(error);
  }
}

connectForm();
writeState(queryToState(''));
startRouter(show);
byId('token').addEventListener('change', async () => {
  clearErrors(byId('form'));
  await fillCatalog();
});
byId('skip').addEventListener('click', () => byId('results').focus());
fillCatalog();
