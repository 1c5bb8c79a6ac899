// Tags of a stored run: shown as links to all runs that have them, and changed.

import { patch } from './api.js';
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

export function tagsForm(run) {
  const shown = h('p', { class: 'tags', tabindex: '-1', role: 'status' }, tagLinks(run.tags));
  const input = h('input', { type: 'text', id: 'run-tags', autocomplete: 'off', value: (run.tags ?? []).join(', ') });
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
      send: patch,
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
