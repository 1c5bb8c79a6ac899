// Tags of a stored run: shown as links to all runs that have them, and changed.

import { Problem, getTagged, patchIf } from './api.js';
import { connectAsk } from './ask.js';
import { announce, h } from './dom.js';
import { errorSummary } from './errors.js';

export function tagLinks(tags) {
  return (tags ?? []).map((tag) => h('a', { class: 'tag', href: `#/runs?${new URLSearchParams({ tags: tag })}`, title: `Runs tagged ${tag}` }, tag));
}

// "a, b" as a list without repeats. Pure.
export function tagsIn(text) {
  return [...new Set(text.split(',').map((tag) => tag.trim()).filter(Boolean))];
}

const listed = (tags) => (tags ?? []).join(', ');

const readAgain = async (read, path, signal) => {
  const { body, etag } = await getTagged(path, signal);
  return Object.assign(read, { etag, tags: body.tags });
};

// Sets the tags if they are still those that were read: {etag, tags}. Else what they are by now is told, and is what was read.
async function setTags(path, body, signal, read) {
  const before = listed(read.tags);
  const set = () => patchIf(read.etag, path, body, signal);
  try {
    await set().catch(async (error) => {
      if (error.status !== 412 || listed((await readAgain(read, path, signal)).tags) !== before) throw error;
      await set(); // another part of the run has changed
    });
  } catch (error) {
    if (error.status !== 412) throw error;
    const detail = `Somebody has changed the tags since this page was opened: ${listed(read.tags) || 'there are none'}.`;
    throw new Problem({ status: 412, title: 'The tags are others by now', errors: [{ pointer: '/tags', detail, hint: 'Enter what they shall be, and set them again.' }] });
  }
  return readAgain(read, path, signal);
}

// etag: of the run as it was read.
export function tagsForm(run, etag) {
  const read = { etag, tags: run.tags };
  const shown = h('p', { class: 'tags', tabindex: '-1', role: 'status' }, tagLinks(run.tags));
  const input = h('input', { type: 'text', id: 'run-tags', autocomplete: 'off', value: listed(run.tags) });
  const form = h(
    'form',
    { class: 'inline-form', novalidate: true, 'aria-label': 'Tags of this run' },
    errorSummary('run-tags-problem'),
    h('div', { class: 'field' }, h('label', { for: 'run-tags' }, 'Tags, with commas between'), input),
    h('button', { type: 'submit' }),
  );
  const ask = connectAsk({
    form,
    results: shown,
    build: () => ({
      path: `/v1/runs/${encodeURIComponent(run.run_id)}`,
      body: { tags: tagsIn(input.value) },
      errors: [],
      locate: () => ({ field: 'run-tags', below: '' }),
      send: (path, body, signal) => setTags(path, body, signal, read),
    }),
    label: () => 'Set the tags',
    show: (body, answer) => {
      input.value = answer.tags.join(', ');
      shown.replaceChildren(...tagLinks(answer.tags));
      announce(answer.tags.length ? `Tagged ${answer.tags.join(', ')}` : 'No tags');
    },
  });
  ask.relabel();
  return [shown, h('details', null, h('summary', null, 'Change the tags'), form)];
}
