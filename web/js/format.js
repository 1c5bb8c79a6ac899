// Numbers as people read them. GiB and percent exist only here, at the edge; the API speaks bytes and fractions.

const GIB = 1024 ** 3;
const MISSING = '–';

function known(value) {
  return typeof value === 'number' && Number.isFinite(value);
}

// Making a formatter costs a hundred times what using it does. sign: 'negative' or 'exceptZero', both of the number as shown.
const formatters = new Map();
function format(value, least, most, sign = 'negative', rounding = 'halfExpand') {
  const key = `${least} ${most} ${sign} ${rounding}`;
  if (!formatters.has(key))
    formatters.set(key, new Intl.NumberFormat('en-US', { minimumFractionDigits: least, maximumFractionDigits: most, signDisplay: sign, roundingMode: rounding }));
  return formatters.get(key).format(value);
}

function fixed(value, digits) {
  return format(value, digits, digits);
}

// The size that a number has with so many digits: 999.96 of four is 1000, which belongs to the next unit.
const shownAs = (value, significant) => Number(Math.abs(value).toPrecision(significant));

// Digits after the point so that about `significant` digits show.
function digitsFor(value, significant) {
  const magnitude = value === 0 ? 0 : Math.floor(Math.log10(shownAs(value, significant)));
  return Math.min(6, Math.max(0, significant - 1 - magnitude));
}

function secondsUnit(value) {
  const size = shownAs(value, 4);
  if (size >= 1 || size === 0) return { scale: 1, unit: 's' };
  if (size >= 1e-3) return { scale: 1e3, unit: 'ms' };
  return { scale: 1e6, unit: 'µs' };
}

export function seconds(value) {
  if (!known(value)) return MISSING;
  const { scale, unit } = secondsUnit(value);
  return `${fixed(value * scale, digitsFor(value * scale, 4))} ${unit}`;
}

// In the unit that fits `reference`, so that a column reads in one unit: 0.350 s beside 6.800 s.
export function secondsLike(value, reference) {
  if (!known(value)) return MISSING;
  const { scale, unit } = secondsUnit(known(reference) ? reference : value);
  return `${fixed(value * scale, digitsFor(reference * scale, 4))} ${unit}`;
}

// Both ends in the unit that fits `reference`, the value between them: "10.95–12.89 s".
export function secondsRange(low, high, reference = high) {
  if (!known(low) || !known(high) || !known(reference)) return MISSING;
  const { scale, unit } = secondsUnit(reference);
  const digits = digitsFor(reference * scale, 4);
  return `${fixed(low * scale, digits)}–${fixed(high * scale, digits)} ${unit}`;
}

export function microseconds(value) {
  return known(value) ? seconds(value * 1e-6) : MISSING;
}

// Halves go to the even digit, as in the texts of the daemon: 31.25 is 31.2 in both.
export function gib(bytes) {
  if (!known(bytes)) return MISSING;
  const value = bytes / GIB;
  if (value !== 0 && Math.abs(value) < 0.1) return `${fixed(bytes / 1024 ** 2, 1)} MiB`;
  const digits = Math.abs(value) >= 1000 ? 0 : 1;
  return `${format(value, digits, digits, 'negative', 'halfEven')} GiB`;
}

// Rows of one table in one unit, however small one of them is.
export function gibLike(bytes) {
  return known(bytes) ? `${fixed(bytes / GIB, 2)} GiB` : MISSING;
}

export function percent(frac, digits = 1) {
  return known(frac) ? `${fixed(frac * 100, digits)} %` : MISSING;
}

// Never more certain than it is: down to the tenth of a percent, and nothing is sure.
export function probability(frac) {
  if (!known(frac)) return MISSING;
  if (frac >= 0.999) return 'more than 99.9 %';
  return frac < 0.001 ? 'less than 0.1 %' : percent(Math.floor(frac * 1000) / 1000);
}

export function signedPercent(frac) {
  return known(frac) ? `${format(frac * 100, 1, 1, 'exceptZero')} %` : MISSING;
}

export function count(value) {
  return known(value) ? format(value, 0, 3) : MISSING;
}

export function rounded(value) {
  return known(value) ? fixed(value, digitsFor(value, 4)) : MISSING;
}

// 70.6 B parameters, 512 k tokens.
export function compact(value) {
  if (!known(value)) return MISSING;
  for (const [scale, unit] of [
    [1e12, 'T'],
    [1e9, 'B'],
    [1e6, 'M'],
    [1e3, 'k'],
  ]) {
    if (shownAs(value, 3) >= scale) return `${fixed(value / scale, digitsFor(value / scale, 3))} ${unit}`;
  }
  return count(value);
}

export function bandwidth(bytesPerSecond) {
  return known(bytesPerSecond) ? `${rounded(bytesPerSecond / 1e9)} GB/s` : MISSING;
}

export function usd(value) {
  if (!known(value)) return MISSING;
  const size = Math.abs(value);
  return `$${fixed(value, size < 1 ? Math.max(4, digitsFor(value, 2)) : size < 10000 ? 2 : 0)}`;
}

// 0.4 days read as hours.
export function days(value) {
  if (!known(value)) return MISSING;
  return value < 1 ? `${fixed(value * 24, digitsFor(value * 24, 3))} h` : `${fixed(value, digitsFor(value, 3))} days`;
}

export function energy(kwh) {
  if (!known(kwh)) return MISSING;
  return kwh >= 1000 ? `${fixed(kwh / 1000, digitsFor(kwh / 1000, 3))} MWh` : `${fixed(kwh, digitsFor(kwh, 3))} kWh`;
}

export function dateTime(text) {
  const date = new Date(text);
  return Number.isNaN(date.getTime())
    ? String(text ?? MISSING)
    : date.toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
}

const WORDS = {
  mxu: 'MXU',
  vpu: 'VPU',
  hbm: 'HBM',
  ici: 'ICI',
  dcn: 'DCN',
  pcie: 'PCIe',
  latency: 'latency',
  fwd: 'forward',
  bwd: 'backward',
  moe: 'MoE',
  mla: 'MLA',
  mtp: 'MTP',
  fsdp: 'FSDP',
  dq: 'dq',
  dkv: 'dkv',
};

// "fsdp_all_gather" -> "FSDP all gather"
export function words(name) {
  return String(name ?? '')
    .split('_')
    .map((word) => WORDS[word] ?? word)
    .join(' ');
}

const RESOURCES = {
  mxu: 'MXU (matrix unit)',
  vpu: 'VPU (vector unit)',
  hbm: 'HBM bandwidth',
  ici: 'ICI links',
  dcn: 'data-centre network',
  pcie: 'host link (PCIe)',
  latency: 'latency',
};

export function resource(name) {
  return RESOURCES[name] ?? words(name);
}

export function plural(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// "1 sequence per device"
export const sequences = (number) => plural(number, 'sequence', 'sequences');

// "2nd"
export function ordinal(number) {
  const isTeen = Math.floor(number / 10) % 10 === 1;
  return `${number}${(isTeen ? null : { 1: 'st', 2: 'nd', 3: 'rd' }[number % 10]) ?? 'th'}`;
}
