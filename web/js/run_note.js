// Lines below an answer: by which calibration it is corrected, and where it was stored, or that it was not.

import { h } from './dom.js';

const OF_A_PROJECT = 'calibration/'; // how the engine names one that is not the published fit

// A project's calibration makes other numbers of the same question.
export function calibrationNote({ project }, { engine }) {
  if (!engine?.calibration?.startsWith(OF_A_PROJECT)) return null;
  const address = `#/accuracy${project ? `?${new URLSearchParams({ project })}` : ''}`;
  const whose = project ? `project ${project}` : 'the project of the access token';
  return h('p', { class: 'soft' }, 'Under the ', h('a', { href: address }, `calibration of ${whose}`), ': times and memory are those of the published fit times its factors for the chip.');
}

export function runNote(request, answer) {
  if (answer.run_id)
    return h(
      'p',
      { class: 'soft' },
      'Stored as run ',
      h('a', { href: `#/runs/${encodeURIComponent(answer.run_id)}` }, answer.run_id),
      '.',
    );
  if (request.store && !answer.stored)
    return h('p', { class: 'soft' }, 'Not stored: the daemon has no database at the moment.');
  return null;
}
