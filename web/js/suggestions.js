// The suggestions in a hint of the daemon, as values that a button can put into the field. Pure.

const MOST = 4;

// "did you mean `a` or `b`?", "nearest slices of tpu7x: 4x4x4 (64 chips) 4x4x8 (128 chips)", "1000000, the nearest legal value"
export function suggestionsOf(hint) {
  const text = String(hint ?? '');
  if (/did you mean/i.test(text)) {
    const quoted = [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1]);
    return (quoted.length ? quoted : [...text.matchAll(/did you mean ([^\s?`]+)\?/gi)].map((match) => match[1])).slice(0, MOST);
  }
  const renamed = /^use ([a-z][a-z0-9_]+)$/.exec(text);
  if (renamed) return [renamed[1]];
  if (/^nearest slices/i.test(text)) return [...text.matchAll(/\b\d+x\d+(?:x\d+)?\b/g)].map(([shape]) => shape).slice(0, MOST);
  const legal = /^([^\s,]+), the nearest legal value/.exec(text);
  return legal ? [legal[1]] : [];
}

// The text of a settings field with one key renamed, or its value replaced; null where the key does not stand there.
export function mendSettings(text, key, suggestion, isKey) {
  const escaped = key.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const pattern = new RegExp(`(^|[\\s"'{,])(${escaped})("?\\s*[=:]\\s*)("[^"]*"|[^\\s,}]+)`, 'm');
  if (!pattern.test(text)) return null;
  return text.replace(pattern, (all, before, name, sign, value) =>
    isKey ? `${before}${suggestion}${sign}${value}` : `${before}${name}${sign}${suggestion}`,
  );
}
