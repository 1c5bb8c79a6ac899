// MaxText settings as people paste them: key=value lines, a shell command, YAML lines or a JSON object.
// Reading never guesses: what it cannot read comes back as an error with its line number.

import { yamlToAssignments } from './yaml_lines.js';

const KEY = /^[A-Za-z_][A-Za-z0-9_.]*$/;

// "8" -> 8, "true" -> true, "'bf16'" -> "bf16", "[1,2]" -> [1, 2]; anything else is a string.
export function parseValue(text) {
  const value = text.trim();
  if (value === 'True' || value === 'true') return true;
  if (value === 'False' || value === 'false') return false;
  if (value === 'None' || value === 'null' || value === '~') return null;
  if (/^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(value)) return Number(value);
  const bare = unquote(value); // quotes may be the shell's: '["silu", "linear"]' is a list
  if (/^[[{]/.test(bare)) {
    try {
      return JSON.parse(bare);
    } catch {
      return bare;
    }
  }
  return bare;
}

// Splits at white space outside quotes and brackets; every word knows its line.
function splitWords(text) {
  const found = [];
  let word = '';
  let quote = '';
  let depth = 0;
  let line = 1;
  const finish = () => {
    if (word !== '' && word !== '\\') found.push({ word, line });
    word = '';
  };
  let escaped = false;
  for (const letter of text) {
    const isText = escaped && (letter === '"' || letter === "'");
    escaped = letter === '\\' && !quote;
    if (isText) {
      word += letter;
    } else if (quote) {
      word += letter;
      if (letter === quote) quote = '';
    } else if (letter === '\n' || ((letter === ' ' || letter === '\t' || letter === '\r') && depth === 0)) {
      finish();
      depth = 0;
    } else {
      if (letter === '"' || letter === "'") quote = letter;
      else if (letter === '[' || letter === '{') depth += 1;
      else if (letter === ']' || letter === '}') depth = Math.max(0, depth - 1);
      word += letter;
    }
    if (letter === '\n') line += 1;
  }
  finish();
  return found;
}

// A # in quotes is text. A quote that other lines close, or an apostrophe, protects nothing.
function withoutComment(line) {
  let quote = '';
  for (let at = 0; at < line.length; at += 1) {
    const [before, letter] = [line[at - 1] ?? ' ', line[at]];
    if (quote) quote = letter === quote ? '' : quote;
    else if (/['"]/.test(letter) && /[\s=:,'"[{(]/.test(before)) quote = letter;
    else if (letter === '#' && /\s/.test(before)) return line.slice(0, at);
  }
  return quote ? line.replace(/(^|\s)#.*$/, '') : line;
}

const stripComments = (text) => text.split('\n').map(withoutComment).join('\n');

// Within single quotes a shell's '\'' is an apostrophe.
function unquote(text) {
  return text.replace(/^(['"])(.*)\1$/s, (_, quote, inner) => (quote === "'" ? inner.replaceAll("'\\''", "'") : inner));
}

function parseJsonObject(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { value: {}, flags: [], passedOver: [], errors: [{ detail: `This is not valid JSON: ${error.message}.` }] };
  }
  return { value, flags: [], passedOver: [], errors: [] };
}

// Returns {value: {key: value}, flags: [XLA flags found in it], passedOver: [keys of YAML that are lists or mappings], errors: [{detail, hint}]}.
export function parseConfig(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith('{')) return parseJsonObject(trimmed);
  const value = {};
  const flags = [];
  const errors = [];
  const lineOf = {};
  const bare = stripComments(trimmed);
  const isCommand = /(^|\s)(python3?|xpk|bash)\s|\.py(\s|$)|\s-m\s/.test(bare);
  const { text: lines, passedOver } = yamlToAssignments(bare);
  for (const { word: given, line } of splitWords(lines)) {
    const word = isCommand ? given : given.replace(/^--(?!xla_)/, ''); // of a command they are another program's
    const split = word.indexOf('=');
    const key = split > 0 ? word.slice(0, split) : '';
    if (key === 'LIBTPU_INIT_ARGS' || key === 'XLA_FLAGS') {
      flags.push(...parseFlags(unquote(word.slice(split + 1))));
    } else if (split > 0 && KEY.test(key)) {
      if (key in lineOf) {
        errors.push({
          detail: `${key} is given twice, in lines ${lineOf[key]} and ${line}.`,
          hint: 'Keep one of them.',
        });
      }
      lineOf[key] = line;
      value[key] = parseValue(word.slice(split + 1));
    } else if (word.startsWith('--xla_')) {
      flags.push(word);
    } else if (!isCommand && word !== 'export') {
      errors.push({
        detail: `Line ${line}: “${word}” is not key=value.`,
        hint: 'Write one setting per line, for example ici_fsdp_parallelism=64.',
      });
    }
  }
  return { value, flags, passedOver, errors };
}

// What is said of keys that are lists or mappings; '' where there are none.
export const passedOverText = (keys) => (keys.length ? `Passed over, as lists and mappings are not modelled: ${keys.join(', ')}.` : '');

// XLA flags from an array, one string as in LIBTPU_INIT_ARGS, or one per line.
export function parseFlags(text) {
  const bare = stripComments(text)
    .replace(/(export\s+)?LIBTPU_INIT_ARGS=/g, ' ')
    .replace(/["'\\]/g, ' ');
  return bare.split(/\s+/).filter(Boolean);
}

function shellValue(value) {
  if (value === null) return 'null';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const isSafe = /^[A-Za-z0-9_.,:/@%+-]+$/.test(text) && (typeof value !== 'string' || parseValue(text) === value);
  return isSafe ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function configToLines(config) {
  return Object.entries(config ?? {})
    .map(([key, value]) => `${key}=${shellValue(value)}`)
    .join('\n');
}

// A command for a shell; run name and output folder are the reader's own.
export function configToCommand(config, flags) {
  const settings = Object.entries(config ?? {}).map(([key, value]) => `  ${key}=${shellValue(value)}`);
  const environment = flags?.length ? `LIBTPU_INIT_ARGS="${flags.join(' ')}" \\\n` : '';
  const start = 'python3 -m maxtext.trainers.pre_train.train maxtext/configs/base.yml';
  return `${environment}${[start, ...settings].join(' \\\n')}`;
}
