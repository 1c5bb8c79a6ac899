// What all items of a sweep share: its job, and the settings and flags that are not swept.

import { configToLines } from './config_text.js';
import { codeBlock } from './copy.js';
import { h } from './dom.js';
import { clusterText, modelText } from './plan_text.js';

const keyOf = (pointer) => pointer.split('/').at(-1).replaceAll('~1', '/').replaceAll('~0', '~');

// request: of one item; pointers: the members in which the items differ. {title, project, settings, flags}, each '' where it is not shared. Pure.
export function sharedOf({ model, cluster, clusters, project, config, xla_flags: flags }, pointers) {
  const isSwept = (part) => pointers.some((pointer) => pointer === `/${part}` || pointer.startsWith(`/${part}/`));
  const named = [
    model && !isSwept('model') ? modelText(model) : null,
    cluster && !clusters && !isSwept('cluster') ? clusterText(cluster) : null,
  ];
  const swept = pointers.filter((pointer) => pointer.startsWith('/config/')).map(keyOf);
  const kept = Object.entries(config ?? {}).filter(([key]) => !swept.includes(key));
  return {
    title: named.filter(Boolean).join(' on '),
    project: project && !isSwept('project') ? project : '',
    settings: isSwept('config') && !swept.length ? '' : configToLines(Object.fromEntries(kept)),
    flags: isSwept('xla_flags') ? '' : [flags ?? []].flat().join('\n'),
  };
}

// Null where nothing of it is shared.
export function sharedPanel({ settings, flags }) {
  if (!settings && !flags) return null;
  return h(
    'details',
    null,
    h('summary', null, 'Settings that all items share'),
    h('div', { class: 'settings' }, settings ? codeBlock('MaxText settings', settings, 'h2') : null, flags ? codeBlock('LIBTPU_INIT_ARGS', flags, 'h2') : null),
  );
}
