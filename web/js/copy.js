// Text to take away: copy to the clipboard, or save as a file.

import { announce, h } from './dom.js';

async function toClipboard(text) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = h('textarea', { class: 'visually-hidden', 'aria-hidden': 'true' });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error('the browser refused');
}

// The button says for two seconds what happened.
function flash(button, text) {
  const usual = button.dataset.usual ?? button.textContent;
  button.dataset.usual = usual;
  button.textContent = text;
  announce(text);
  setTimeout(() => {
    button.textContent = usual;
  }, 2000);
}

export async function copyFrom(button, text) {
  try {
    await toClipboard(text);
    flash(button, 'Copied');
  } catch {
    flash(button, 'Copying was refused; select the text instead');
  }
}

export function codeBlock(title, text) {
  const button = h('button', { type: 'button', class: 'small copy', 'aria-label': `Copy: ${title}` }, 'Copy');
  button.addEventListener('click', () => copyFrom(button, text));
  return h(
    'div',
    { class: 'code' },
    h('div', { class: 'panel-head' }, h('h4', null, title), h('p', { class: 'actions' }, button)),
    h('pre', { tabindex: '0', role: 'region', 'aria-label': title }, text),
  );
}

export function saveAs(name, text, type = 'application/json') {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = h('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// A button that saves what load() gives or promises; a failure to load is said on the button.
export function saveButton(text, name, load, type) {
  const button = h('button', { type: 'button', class: 'small' }, text);
  button.addEventListener('click', async () => {
    try {
      saveAs(name, await load(), type);
    } catch (error) {
      flash(button, error.message);
    }
  });
  return button;
}
