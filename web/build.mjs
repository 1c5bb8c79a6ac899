// build.mjs OUT: bundles the form into OUT, which is embedded in the program. Names of bundled files carry their digest, so
// browsers keep them for good; index.html, which names them, is asked for anew. What the first view does not need lies in
// chunks of its own, loaded by import(). Takes a quarter of a second and no network.

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { publishedKey } from './js/pictures/published_key.js';
import { byChip } from './js/published.js';

const WEB = fileURLToPath(new URL('.', import.meta.url));
const out = process.argv[2];
if (!out) throw new Error('build.mjs OUT: the folder to write is missing');

await rm(out, { recursive: true, force: true });
await mkdir(join(out, 'assets'), { recursive: true });

// Formulas of the ledger, "| T-matmul | … |" in the engine's page, for those who ask what a part's formula is.
const explained = await readFile(join(WEB, '../engine/README.md'), 'utf8');
const formulas = Object.fromEntries([...explained.matchAll(/^\| (T-[a-z]*) \| (.*) \|$/gm)].map(([, id, text]) => [id, text]));

// The tables of a page of results as far as `end`, {head[], rows[][]}.
const cells = (line) => line.slice(1, -1).split('|').map((cell) => cell.trim());
async function tablesOf(path, end) {
  const [page] = (await readFile(join(WEB, path), 'utf8')).split(end);
  return page
    .split(/\n{2,}/)
    .map((block) => block.split('\n').filter((line) => line.startsWith('|')))
    .filter((lines) => lines.length > 2)
    .map(([head, , ...rows]) => ({ head: cells(head), rows: rows.map(cells) }));
}

// How far off the predictions of published steps are, and of the memory that the compiler counts.
const published = await tablesOf('../tests/accuracy/report.md', '## Fitted constants');
const compiled = (await tablesOf('../tests/compile/report.md', '## Worst rows')).map(byChip);

// The fastest published tile of each shape; timings that contradict themselves and changed kernels are left out.
const timings = JSON.parse(await readFile(join(WEB, '../tests/data/kernel_timings.json'), 'utf8'));
const tiles = {};
for (const { chip, kernel, tile, source, time_ms_median: ms, commit_date: date, m, k, n, ...row } of timings) {
  if (!tile || !kernel || !(ms > 0) || ['suspect', 'modified_kernel', 'mask_extra', 'dtypes', 'lhs_spec'].some((name) => name in row)) continue;
  const shape = kernel.startsWith('linear_xent') ? { tokens: m, emb_dim: k, vocab: n } : m ? { m, k, n, num_groups: row.num_groups } : Object.fromEntries(['batch', 'q_heads', 'kv_heads', 'q_len', 'kv_len', 'head_dim_qk', 'head_dim_v'].map((name) => [name, row[name]]).concat([['causal', row.causal === true]]));
  const key = publishedKey(chip === 'v7x' ? 'tpu7x' : chip, kernel, shape);
  if (key && !(tiles[key]?.time_us <= ms * 1000)) tiles[key] = { tile, time_us: ms * 1000, source, date };
}

// import('published-tiles') gives {key: {tile, time_us, source, date}}, in a chunk of its own.
const publishedTiles = {
  name: 'published-tiles',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^published-tiles$/ }, ({ path }) => ({ path, namespace: 'made' }));
    onLoad({ filter: /^published-tiles$/, namespace: 'made' }, () => ({ contents: JSON.stringify({ tiles }), loader: 'json' }));
  },
};

const { metafile } = await build({
  absWorkingDir: WEB,
  entryPoints: ['js/main.js', 'css/page.css'],
  bundle: true,
  splitting: true,
  format: 'esm',
  target: ['chrome109', 'firefox115', 'safari16.4'],
  minify: true,
  legalComments: 'none',
  define: { FORMULAS: JSON.stringify(formulas), PUBLISHED: JSON.stringify(published), COMPILED: JSON.stringify(compiled) },
  outdir: join(process.cwd(), out, 'assets'),
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  metafile: true,
  plugins: [publishedTiles],
  logLevel: 'warning',
});

const made = Object.entries(metafile.outputs).map(([path, output]) => ({ name: basename(path), ...output }));
const chunkOf = (source) => {
  const found = made.find((output) => output.entryPoint === source);
  if (!found) throw new Error(`build.mjs: ${source} was not bundled`);
  return found;
};
const loadedAtOnce = (chunk) =>
  chunk.imports.filter((part) => part.kind === 'import-statement').map((part) => basename(part.path));

// The page names the bundle, and at once the chunks that the bundle needs, so that they are not found one after another.
const script = chunkOf('js/main.js');
const style = chunkOf('css/page.css');
const page = (await readFile(join(WEB, 'index.html'), 'utf8'))
  .replace('href="css/page.css"', `href="assets/${style.name}"`)
  .replace(
    '<script type="module" src="js/main.js"></script>',
    [...loadedAtOnce(script).map((name) => `<link rel="modulepreload" href="assets/${name}">`)]
      .concat(`<script type="module" src="assets/${script.name}"></script>`)
      .join('\n  '),
  );
if (page.includes('"css/') || page.includes('"js/')) throw new Error('build.mjs: index.html still names a source');
await writeFile(join(out, 'index.html'), page);
await writeFile(join(out, 'icon.svg'), await readFile(join(WEB, 'icon.svg')));

// The licences of what is bundled go with it.
const packages = new Set(
  Object.keys(metafile.inputs).flatMap((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1] ?? []),
);
const licences = await Promise.all(
  [...packages].sort().map(async (name) => {
    const folder = join(WEB, 'node_modules', name);
    const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    const files = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'license'].map((file) =>
      readFile(join(folder, file), 'utf8').catch(() => ''),
    );
    const text = (await Promise.all(files)).find(Boolean) ?? `${license}\n`;
    return `${name} ${version}\n\n${text}`;
  }),
);
await writeFile(join(out, 'licences.txt'), licences.join('\n----\n\n') || 'The form contains no code of others.\n');
