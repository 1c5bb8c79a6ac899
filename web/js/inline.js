// Text of the daemon in which names stand between backticks: they become code, the marks go, and members of a request are called what
// the page calls them.

import { h } from './dom.js';
import { spoken } from './labels.js';

export function inline(text) {
  return spoken(text)
    .split('`')
    .map((part, index, all) => (index % 2 === 1 && index < all.length - 1 ? h('code', null, part) : part))
    .filter((part) => part !== '');
}

// The same where only text can stand, such as a title.
export function plain(text) {
  return spoken(text).replaceAll('`', '');
}

// Words that begin a sentence and are no names of settings, which keep their small letter.
const PROSE =
  /^(a|add|all|an|ask|attention|chips|choose|collectives|compare|did|each|embedding|every|expert|give|keep|leave|make|more|move|nearest|no|one|only|open|pin|say|start|take|the|these|this|use|weights|with|without|write)\b(?![-_=])/;

// A message of the daemon as a sentence: with a capital and a full stop. Pure.
export function sentenceOf(text) {
  const said = spoken(text).trim();
  return `${PROSE.test(said) ? said.charAt(0).toUpperCase() + said.slice(1) : said}${!said || /[.!?:]$/.test(said) ? '' : '.'}`;
}
