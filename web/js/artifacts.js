// The files the daemon makes from a plan: to download or to copy. Of a stored run by its id, else of the answer on screen.

import { getText, post, postForText } from './api.js';
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

const path = (source, name, rank) => `/v1/${source}artifacts/${encodeURIComponent(name)}?rank=${rank}`;

// {rank, load(name)}: the files of plan `rank` of a stored run.
export function filesOfRun({ id, rank }) {
  return { rank, load: (name) => getText(path(`runs/${encodeURIComponent(id)}/`, name, rank)) };
}

const BESIDE = new Set(['mesh', 'time_parts']);
const numbersOf = (estimate) => Object.fromEntries(Object.entries(estimate).filter(([name, value]) => BESIDE.has(name) || typeof value !== 'object'));

// What files are made from: the plan's settings, reasons and numbers; of the others what the table of plans has. Pure.
export function answerForFiles({ engine, model, cluster, ranked }, rank) {
  const slim = (plan) =>
    plan.rank === rank
      ? { ...plan, estimate: numbersOf(plan.estimate) }
      : { rank: plan.rank, tie_group: plan.tie_group, config: plan.config, estimate: { ...numbersOf(plan.estimate), time_parts: [] } };
  return { engine, model, cluster, ranked: ranked.map(slim) };
}

// The same of an answer that is not stored, an advice or an estimate.
export function filesOfAnswer(answer, rank = 1) {
  const body = answer.ranked ? answerForFiles(answer, rank) : answer;
  return { rank, load: (name) => postForText(path('', name, rank), body) };
}

// The same of one's own configuration, which stands beside an advice: it is estimated by itself first.
export function filesOfConfig(request) {
  return { rank: 'mine', load: async (name) => postForText(path('', name, 1), await post('/v1/estimate', request)) };
}

export function artifactsTable({ rank, load }) {
  return table(
    rank === 'mine' ? 'Files of my configuration' : `Files of plan ${rank}`,
    [{ title: 'File' }, { title: 'Take it' }],
    FILES.map(([name, what]) => {
      const file = () => load(name);
      return [
        [h('code', { class: 'nowrap' }, name), h('span', { class: 'second' }, what)],
        h(
          'span',
          { class: 'buttons' },
          copyButton('Copy', file, `Copy: ${name}`),
          saveButton('Download', name, file, 'text/plain', `Download: ${name}`),
        ),
      ];
    }),
  );
}
