// What the API calls its members, in the words of the page: a reader of the form has never seen a request. Pure.

// The entries of the form by their names; the same words as in index.html, which a test holds them to.
export const LABELS = Object.freeze({
  model: 'Model name',
  chip: 'Chip',
  slices: 'Slices',
  topology: 'Slice topology',
  seq_len: 'Sequence length',
  batch: 'Batch',
  quantization: 'Number format of matrix products',
  token_budget: 'Whole training',
  objective: 'Best by',
  top_k: 'Plans to show',
  fit_probability: 'Probability to fit',
  pins: 'MaxText keys every plan must keep',
  config: 'MaxText configuration',
  xla_flags: 'XLA flags',
  price: 'Price',
  project: 'Project',
  label: 'Label',
});

const ENTRY_OF = {
  'cluster.price_usd_per_chip_hour': 'price',
  'cluster.slices': 'slices',
  'cluster.topology': 'topology',
  'workload.seq_len': 'seq_len',
  'workload.quantization': 'quantization',
  'workload.total_tokens': 'token_budget',
  'workload.token_budget': 'token_budget',
  'search.objective': 'objective',
  'search.top_k': 'top_k',
  'search.fit_probability': 'fit_probability',
};

const labelled = (path, sign) => `“${LABELS[ENTRY_OF[path]]}”${sign ? ' ' : ''}`;

// Whole sentences first: what they ask for is done elsewhere on the page.
const SAID = [
  [/^The request has members that are missing, unknown or wrong$/, 'Something that was entered needs a change'],
  [/GET \/v1\/catalog\/models lists them; own models are given as .*$/, 'the field lists them; a model of your own is pasted as config.json or as MaxText dims'],
  [/GET \/v1\/catalog\/\w+ lists them/g, 'the field lists them'],
  [/give cluster\.price_usd_per_chip_hour/g, 'give a price: “Price” under Options, or that of each machine'],
  [/PUT \/v1\/baselines\/\{project\}\/\{label\}( with a run_id)?/g, 'open a run and make it the baseline there'],
  [/POST \/v1\/calibrations fits the project's measurements again; activate what it makes/g, 'fit the project again on the page Accuracy, and activate that'],
  [/POST \/v1\/runs\/\{run_id\}\/measurements adds one/g, 'a stored plan takes one under Measured'],
  [/POST \/v1\/runs\/\{id\}\/restore brings it back/g, 'it can be restored'],
  [/leave it out, or say "any" for the formats that pay/g, 'choose “bf16 (no quantization)”, or “any the chip supports” for the formats that pay'],
  [/machines times top_k (\d+)/g, 'machines times $1 plans to show'],
  [/\bthe request['’]s (?=model|cluster|number of slices|MFU)/g, 'the form’s '],
  [/a (run|sweep|verification) id is a UUID/g, 'the link is cut off or was changed: the id of a $1 has 32 digits and letters from a to f, in five groups'],
  [/or say "allow_unlike": \["\w+"\]/g, 'or tick the box that allows it'],
  [/the workload already says (\w+)/g, 'the workload of the form already says $1'],
  [/\b((?:cluster|workload|search)\.[a-z_]+)(=?)/g, (all, path, sign) => (path in ENTRY_OF ? labelled(path, sign) : all)],
  [/(^|[^-\w.`])(seq_len|tokens_per_step|global_batch_sequences)=(\d+)/g, (all, before, name, value) => `${before}${inWords(name, value)}`],
];

const inWords = (name, value) =>
  ({ seq_len: `a sequence length of ${value}`, tokens_per_step: `a batch of ${value} tokens per step`, global_batch_sequences: `a batch of ${value} sequences` })[name];

// A text of the daemon in the words of the page.
export function spoken(text) {
  return SAID.reduce((all, [pattern, words]) => all.replace(pattern, words), String(text ?? ''));
}

// The same of an error at an entry: the name of its member becomes the entry's label.
export function spokenAt(text, member, label) {
  const said = spoken(text);
  if (!member || !label || member === label) return said;
  const name = `\`${member}\``;
  const start = said.startsWith(name) ? `${label}${said.slice(name.length)}` : said;
  return start.replaceAll(name, `“${label}”`);
}

// What a remark on a request is about, as the page names it: {place, key}, each '' where the remark itself is enough. Pointers below
// "/config" are keys of settings.
export function placeOf(pointer) {
  const parts = (pointer ?? '').split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = parts.at(-1) ?? '';
  const key = /^\d+$/.test(last) ? '' : last;
  if (parts[0] === 'baseline') return { place: 'My configuration', key: parts[1] === 'config' && parts.length > 2 ? key : '' };
  if (parts[0] === 'pins') return { place: 'Pinned settings', key: parts.length > 1 ? key : '' };
  if (parts[0] === 'config') return { place: '', key: parts.length > 1 ? key : '' };
  if (parts[0] === 'model') return { place: LABELS.model, key: parts.length > 1 ? key : '' };
  const entry = ENTRY_OF[parts.slice(0, 2).join('.')] ?? (parts[0] in LABELS ? parts[0] : null);
  if (entry) return { place: LABELS[entry], key: '' };
  return { place: '', key };
}
