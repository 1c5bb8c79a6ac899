// A change that cannot be undone is asked for twice, on the button itself: the second press does it, and leaving the button forgets the first.

import { announce } from './dom.js';

// act(): what is done at the second press; sure: what the button says until then.
export function askTwice(button, sure, act) {
  const usual = { text: button.textContent, label: button.getAttribute('aria-label') };
  let isAsked = false;
  const forget = () => {
    isAsked = false;
    button.textContent = usual.text;
    if (usual.label) button.setAttribute('aria-label', usual.label);
  };
  button.addEventListener('blur', forget);
  button.addEventListener('keydown', (event) => event.key === 'Escape' && forget());
  button.addEventListener('click', () => {
    if (isAsked) return act(button);
    isAsked = true;
    button.textContent = sure;
    button.removeAttribute('aria-label');
    announce(`${sure}?`);
    return null;
  });
  return button;
}
