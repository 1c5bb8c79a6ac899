// scale.mjs [ROWS]: every documented filter and order of GET /v1/runs, alone and together, on many runs: each page must come
// from an index and touch a bounded number of buffers, also where nothing matches. The statements are the daemon's own:
// PostgreSQL explains what it was really asked (auto_explain). Needs CLUSTER_URL and CLUSTER_LOG, see scale.sh.
import { readFileSync } from 'node:fs';
import { freshDatabase, sql, startDaemon, run, sleep } from '../api/daemon.mjs';

const rows = Number(process.argv[2] ?? 100000);
const url = freshDatabase('scale');
const migrated = await run(['migrate', '--database-url', url]);
if (migrated.status !== 0) throw new Error(migrated.err);

// Uneven on purpose: half of the runs are of one project; one has only the oldest, one only the slowest runs, one has three.
console.log(`${rows} runs are made`);
const indexes = sql('scale', "SELECT pg_get_indexdef(indexrelid) || ';' FROM pg_index WHERE indrelid = 'runs'::regclass AND NOT indisprimary");
const names = sql('scale', "SELECT string_agg(indexrelid::regclass::text, ', ') FROM pg_index WHERE indrelid = 'runs'::regclass AND NOT indisprimary");
sql('scale', `SET session_replication_role = replica; DROP INDEX ${names};
  INSERT INTO runs (id, created_at, kind, project, label, git_ref, model, chip, topology, step_time_s, hbm_bytes_per_device, fits, engine_version, catalog_hash, request, response, tags, deleted_at)
  SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, now() - (${rows} - i) * interval '20 s', CASE WHEN i % 20 = 0 THEN 'kernel' WHEN i % 3 = 0 THEN 'advise' ELSE 'estimate' END,
    CASE WHEN i <= ${rows} / 100 THEN 'old' WHEN i % ${Math.floor(rows / 3)} = 1 THEN 'three' WHEN i % 97 = 0 THEN 'slow' WHEN i % 2 = 0 THEN 'big' ELSE 'p' || i % 41 END,
    'label-' || i % 997, md5((i / 10)::text), 'model-' || i % 31, 'chip-' || i % 5, '4x4',
    CASE WHEN i % 20 <> 0 THEN CASE WHEN i % 97 = 0 THEN 1000 + random() ELSE round((10 * random())::numeric, 4) END END,
    CASE WHEN i % 20 <> 0 THEN 1e9 + 9e10 * random() END, true, 'v', 'h', '{}', '{}',
    CASE WHEN i % ${Math.floor(rows / 3)} = 2 THEN '{golden}' WHEN i % 100 = 3 THEN '{release,checked}' WHEN i % 10 = 3 THEN '{nightly}' ELSE '{}' END::text[],
    CASE WHEN i % 100 = 7 THEN now() - i * interval '1 s' END
  FROM generate_series(1, ${rows}) i`);
sql('scale', `SET maintenance_work_mem = '256MB'; ${indexes.replaceAll('\n', ' ')}`);
sql('scale', 'VACUUM ANALYZE runs');
sql('scale', `ALTER DATABASE scale SET session_preload_libraries = 'auto_explain'; ALTER DATABASE scale SET auto_explain.log_min_duration = 0;
  ALTER DATABASE scale SET auto_explain.log_analyze = on; ALTER DATABASE scale SET auto_explain.log_buffers = on;
  ALTER DATABASE scale SET auto_explain.log_timing = off; ALTER DATABASE scale SET auto_explain.log_format = 'json'`);

const daemon = await startDaemon({ database: url, args: ['--sweep-workers', '0'] });
const read = () => readFileSync(process.env.CLUSTER_LOG, 'utf8');
async function explained(query) {
  const from = read().length;
  const response = await daemon.fetch(`/v1/runs?${query}`);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${query}: ${text}`);
  for (let i = 0; i < 100; i++, await sleep(20)) {
    for (const [, plan] of read().slice(from).matchAll(/plan:\n(\t\{[\s\S]*?\n\t\})/g)) {
      const document = JSON.parse(plan);
      if (!document['Query Text'].includes('$12::int')) continue;
      return { page: JSON.parse(text), plan: document.Plan };
    }
  }
  throw new Error(`${query}: no plan in the log`);
}
const nodes = (plan) => [plan, ...(plan.Plans ?? []).flatMap(nodes)];

const some = { project: ['big', 'old', 'slow', 'three', 'none'], label: ['label-7', 'none'], git_ref: ['c4ca4238a0b923820dcc509a6f75849b', 'none'], model: ['model-3', 'none'], chip: ['chip-1', 'none'], kind: ['kernel', 'advise'] };
const sorts = ['created_at', 'step_time_s', 'hbm_bytes_per_device'].flatMap((name) => [name, `-${name}`]);
const cases = [];
for (const sort of sorts) {
  cases.push([`sort=${sort}`, 400]);
  for (const [name, values] of Object.entries(some)) for (const value of values) cases.push([`${name}=${value}&sort=${sort}`, 400]);
}
for (const query of ['since=2999-01-01', 'since=2000-01-01', 'project=big&since=2999-01-01', 'deleted=true', 'project=three&label=label-7', 'project=three&model=model-3'])
  cases.push([query, 400]);
// Words and tags: the index gives all that match, which are then put in order: bounded by what matches, or by the page.
for (const query of ['q=golden', 'q=nosuchword', 'q=model', 'q=c4ca42', 'q=three', 'tags=golden', 'tags=none', 'tags=golden&sort=step_time_s', 'tags=nightly', 'project=three&q=model', 'q=three+golden'])
  cases.push([query, 4000]);

const pagesOfHeap = Number(sql('scale', "SELECT pg_relation_size('runs') / 8192"));
let failed = 0;
let worst = { buffers: 0 };
async function judge(query, most) {
  const { plan, page } = await explained(query);
  const buffers = plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
  const walks = nodes(plan).filter((node) => node['Node Type'] === 'Seq Scan');
  if (buffers > worst.buffers) worst = { buffers, query };
  if (walks.length === 0 && buffers <= most) return page;
  failed++;
  console.log(`FAILED: ${query}: ${buffers} buffers of at most ${most} by ${nodes(plan).map((node) => `${node['Node Type']} ${node['Index Name'] ?? ''}`).join(' < ')}`);
  return page;
}
for (const [query, most] of cases) {
  const page = await judge(query, most);
  // The second page begins where the first ended. Its bound is one the planner guesses: of a project whose numbers are unlike
  // all others' it may read all the rows, which are its own and no more.
  if (page.next_cursor && most === 400) await judge(`${query}&cursor=${page.next_cursor}`, query.includes('project=slow') ? most + rows / 97 : most);
}
await daemon.stop();
const size = sql('scale', "SELECT pg_size_pretty(pg_indexes_size('runs')) || ' of indexes, ' || pg_size_pretty(pg_table_size('runs')) || ' of rows'");
console.log(`scale: ${cases.length - failed} of ${cases.length} questions on ${rows} runs stay in bounds; the most buffers: ${worst.buffers} of ${pagesOfHeap} (${worst.query}); ${size}`);
process.exit(failed ? 1 : 0);
