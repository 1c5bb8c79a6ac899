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

const usualOf = new WeakMap(); // button -> {text, label} while it says something else

// The button says for two seconds what happened.
function flash(button, text) {
  const usual = usualOf.get(button) ?? { text: button.textContent, label: button.getAttribute('aria-label') };
  usualOf.set(button, usual);
  button.textContent = text;
  button.removeAttribute('aria-label');
  announce(text);
  setTimeout(() => {
    button.textContent = usual.text;
    if (usual.label) button.setAttribute('aria-label', usual.label);
    usualOf.delete(button);
  }, 2000);
}

// text may be a promise, as of a file that the daemon is asked for.
export async function copyFrom(button, text) {
  let known;
  try {
    known = await text;
  } catch (error) {
    flash(button, error.message);
    return;
  }
  try {
    await toClipboard(known);
    flash(button, 'Copied');
  } catch {
    flash(button, 'Copying was refused; select the text instead');
  }
}

// A button that copies what load() gives or promises.
export function copyButton(text, load, label) {
  const button = h('button', { type: 'button', class: 'small copy', 'aria-label': label }, text);
  button.addEventListener('click', () => copyFrom(button, load()));
  return button;
}

export function codeBlock(title, text, heading = 'h4') {
  return h(
    'div',
    { class: 'code' },
    h(
      'div',
      { class: 'panel-head' },
      h(heading, null, title),
      h(
        'p',
        { class: 'actions' },
        copyButton('Copy', () => text, `Copy: ${title}`),
      ),
    ),
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
export function saveButton(text, name, load, type, label) {
  const button = h('button', { type: 'button', class: 'small', 'aria-label': label }, text);
  button.addEventListener('click', async () => {
    try {
      saveAs(name, await load(), type);
    } catch (error) {
      flash(button, error.message);
    }
  });
  return button;
}
