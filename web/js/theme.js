// Light, dark, or as the system has it: a switch in the head of the page, kept for this browser.

import { announce, byId } from './dom.js';

const KEY = 'tpu-advisor-theme';
const NAMES = ['auto', 'light', 'dark'];
const SHOWN = { auto: 'Auto', light: 'Light', dark: 'Dark' };

function stored() {
  try {
    return localStorage.getItem(KEY) ?? 'auto';
  } catch {
    return 'auto'; // storage is switched off
  }
}

function apply(name) {
  const root = document.documentElement;
  if (name === 'auto') delete root.dataset.theme;
  else root.dataset.theme = name;
  byId('theme').textContent = `Theme: ${SHOWN[name]}`;
}

export function connectTheme() {
  let current = NAMES.includes(stored()) ? stored() : 'auto';
  apply(current);
  byId('theme').addEventListener('click', () => {
    current = NAMES[(NAMES.indexOf(current) + 1) % NAMES.length];
    try {
      localStorage.setItem(KEY, current);
    } catch {
      // It then holds for this page only.
    }
    apply(current);
    announce(`Theme: ${SHOWN[current]}`);
  });
}
