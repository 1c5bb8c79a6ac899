// Numbers as people type them: "8,192", "8 192" and "8_192" are one. Pure.

const GROUPS = /^[+-]?\d{1,3}(,\d{3})+(?=\.|$)/;

// NaN for what is no number. A comma that parts no thousands is none: "2,5" is not 25.
export function typedNumber(text) {
  const bare = text.trim().replaceAll(/[ _]/g, '');
  return bare === '' ? NaN : Number(bare.replace(GROUPS, (digits) => digits.replaceAll(',', '')));
}
