// The files the daemon makes from a stored plan: to download or to copy.

import { getText } from './api.js';
import { copyButton, saveButton } from './copy.js';
import { h, table } from './dom.js';

const FILES = [
  ['maxtext.sh', 'starts the training on every host of the slice'],
  ['maxtext.yml', 'the settings as a MaxText configuration file'],
  ['libtpu.env', 'the XLA flags as an environment file'],
  ['xpk.sh', 'submits the job to a cluster with XPK'],
  ['gcluster.sh', 'submits the job to a cluster with Cluster Toolkit'],
  ['jobset.yaml', 'submits the job to GKE as a JobSet'],
  ['verify.sh', 'has XLA compile the step and check its memory, without a TPU'],
  ['report.md', 'the plan and its reasons to read and to review'],
  ['trace.json', 'what keeps each lane of the step busy, for Perfetto'],
  ['ranked.csv', 'all ranked plans as a spreadsheet'],
];

export function artifactPath(run, name) {
  return `/v1/runs/${encodeURIComponent(run.id)}/artifacts/${name}?rank=${run.rank}`;
}

// run: {id, rank}, the stored run and which of its plans.
export function artifactsTable(run) {
  return table(
    `Files of plan ${run.rank}`,
    [{ title: 'File' }, { title: 'What it is for' }, { title: 'Take it' }],
    FILES.map(([name, what]) => {
      const load = () => getText(artifactPath(run, name));
      return [
        h('code', null, name),
        what,
        h(
          'span',
          { class: 'buttons' },
          copyButton('Copy', load, `Copy: ${name}`),
          saveButton('Download', name, load, 'text/plain', `Download: ${name}`),
        ),
      ];
    }),
  );
}
