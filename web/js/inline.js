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
const PROSE = /^(a|all|an|attention|collectives|each|embedding|every|expert|more|no|only|the|these|this|weights|with|without)\b(?![-_=])/;

// A message of the daemon as a sentence: with a capital and a full stop. Pure.
export function sentenceOf(text) {
  const said = String(text ?? '').trim();
  return `${PROSE.test(said) ? said.charAt(0).toUpperCase() + said.slice(1) : said}${!said || /[.!?:]$/.test(said) ? '' : '.'}`;
}
