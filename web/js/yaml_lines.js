// YAML as MaxText's files have it, line by line as key=value, so that one reader serves both. Pure.

const SETTING = /^(\s*)([A-Za-z_][A-Za-z0-9_.]*):(?:\s+(.*?))?\s*$/;
const SPACED = /^\s*(?:--)?([A-Za-z_][A-Za-z0-9_.]*)(?:\s+=\s*|=\s+)((['"]).*\3|[[{].*|[^\s=\\]+)\s*$/;
const BARE = /^(-?\d+(\.\d+)?|true|false|null)$/;
const BLOCK_TEXT = /^[|>][+-]?$/;

const indentOf = (line) => /^\s*/.exec(line)[0].length;
const quoted = (value) => (/^(['"]).*\1$|^[[{]/.test(value) || !/\s/.test(value) ? value : `"${value}"`);

function openBrackets(text) {
  const count = (letters) => [...text].filter((letter) => letters.includes(letter)).length;
  return count('[{') - count(']}');
}

// The line behind the value of the key in line `at`: a list in brackets, or what stands below the key.
function endOfValue(lines, at, given) {
  let end = at + 1;
  if (/^[[{]/.test(given)) {
    while (end < lines.length && openBrackets([given, ...lines.slice(at + 1, end)].join('\n')) > 0) end += 1;
  } else if (given === '' || BLOCK_TEXT.test(given)) {
    const own = indentOf(lines[at]);
    const isBelow = (line) => line.trim() === '' || indentOf(line) > own || (indentOf(line) === own && /^\s*-(\s|$)/.test(line));
    while (end < lines.length && isBelow(lines[end])) end += 1;
  }
  return end;
}

// "['silu', 'linear']" as JSON; null where it is more than that.
function flowAsJson(text) {
  for (const tried of [text, text.replaceAll("'", '"')]) {
    try {
      return JSON.stringify(JSON.parse(tried));
    } catch {
      // another way to write it, or no JSON
    }
  }
  return null;
}

// "- silu" lines as JSON; null where an item is more than a word.
function itemsAsJson(lines) {
  const items = lines.map((line) => /^\s*-\s+(?:(['"])(.*)\1|([^\s'"[{&*-][^:]*?))\s*$/.exec(line));
  if (!items.every(Boolean)) return null;
  return `[${items.map(([, , text, bare]) => (bare && BARE.test(bare) ? bare : JSON.stringify(text ?? bare))).join(',')}]`;
}

// The value of a key as text for one line; null where it cannot be.
function valueOf(given, below) {
  const lines = below.filter((line) => line.trim() !== '');
  if (/^[[{]/.test(given)) return flowAsJson([given, ...lines].join(' '));
  if (BLOCK_TEXT.test(given)) return null;
  if (given !== '') return quoted(given);
  return lines.length ? itemsAsJson(lines) : 'null';
}

// {text: key=value lines, as many as were given, passedOver: keys whose list or mapping has no place in one line}.
export function yamlToAssignments(text) {
  const lines = text.split('\n');
  const passedOver = [];
  for (let at = 0; at < lines.length; at += 1) {
    if (/^(---|\.\.\.)\s*$/.test(lines[at])) lines[at] = '';
    const spaced = SPACED.exec(lines[at]);
    const setting = SETTING.exec(lines[at]);
    if (spaced) lines[at] = `${spaced[1]}=${spaced[2]}`;
    if (spaced || !setting) continue;
    const [, , key, given = ''] = setting;
    const end = endOfValue(lines, at, given);
    const value = valueOf(given, lines.slice(at + 1, end));
    if (value === null) passedOver.push(key);
    lines[at] = value === null ? '' : `${key}=${value}`;
    lines.fill('', at + 1, end);
  }
  return { text: lines.join('\n'), passedOver };
}
