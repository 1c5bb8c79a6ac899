// A panel whose picture is loaded when it is first shown: heading and room at once, the picture when the chunk and its data are here.

import { h } from '../dom.js';
import { failure } from '../failure.js';

const load = () => import('./all.js');

// Loads the chunk of the pictures while the reader fills the form, so that a click does not wait for it.
export function preloadPictures() {
  const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(work, 200));
  whenIdle(() => load().catch(() => {}), { timeout: 2000 }); // a picture that is asked for says what is wrong
}

// kind: a name of all.js; its show(input) gives the picture's elements, or a promise of them. Null where there is nothing to draw.
// heading: the element of the title, by where the panel stands.
export function picturePanel(kind, title, input, heading = 'h3') {
  const place = h('div', { class: `picture-place picture-place-${kind}` });
  const fill = async () => {
    place.setAttribute('aria-busy', 'true');
    delete place.dataset.failed;
    try {
      const pictures = await load();
      const shown = [await pictures[kind](input)].flat().filter(Boolean);
      const note = shown.length ? await pictures.otherToday(input) : null;
      place.replaceChildren(...[note].filter(Boolean), ...(shown.length ? shown : [h('p', { class: 'soft' }, 'Not known: this answer holds no numbers to draw.')]));
      pictures.drawFresh();
    } catch (error) {
      place.replaceChildren(failure(error), h('p', null, h('button', { type: 'button', class: 'small', onclick: fill }, 'Try again')));
      place.dataset.failed = 'true';
    }
    place.setAttribute('aria-busy', 'false');
  };
  place.addEventListener('retry', fill);
  fill();
  return h('section', { class: `panel picture-panel picture-${kind}` }, h(heading, null, title), place);
}

// A picture of one plan, which has to be complete enough to be estimated again.
export function planPicture(kind, title, plan) {
  return plan.job?.model && plan.config ? picturePanel(kind, title, plan) : null;
}

// My configuration and the plan, with what each changed setting saves; where the settings could be put in order.
export function changesPicture({ changes_from_baseline: changes, gain_from_baseline_frac: gain, baseline, title }) {
  if (!Number.isFinite(gain) || !baseline?.estimate || !changes?.some((change) => change.order > 0)) return null;
  const from = baseline.estimate;
  const name = title.split(':')[0];
  return picturePanel('waterfall', 'From my configuration to this plan', { kind: 'changes', name, changes, gain, from });
}
