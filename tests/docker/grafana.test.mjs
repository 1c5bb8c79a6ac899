// The dashboard and what Grafana is provisioned with, without Grafana: read by the types that it publishes of itself
// (grafana.ts), the expressions by the check of Prometheus' own editor.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(join(here, '../api/package.json'));
const ts = require('typescript');
const { parse } = require('yaml');
const { EditorState } = require('@codemirror/state');
const { promQLLanguage } = require('@prometheus-io/codemirror-promql');
const { Parser } = require('@prometheus-io/codemirror-promql/dist/cjs/parser/index.js');

const read = (path) => readFileSync(join(here, '../../docker', path), 'utf8');
const board = JSON.parse(read('monitoring/grafana/advisor.json'));
const datasources = parse(read('monitoring/grafana/datasource.yaml'));
const providers = parse(read('monitoring/grafana/dashboards.yaml'));
const { services } = parse(read('compose.monitoring.yaml'));

// [[type of grafana.ts, value], ...]: of each, what TypeScript says against it.
function complaints(values) {
  const sources = new Map(values.map(([type, value], i) => [join(here, `value-${i}.ts`),
    `import type { ${type} } from './grafana';\nexport default ${JSON.stringify(value)} satisfies ${type};\n`]));
  const options = { noEmit: true, strict: true, types: [], target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler };
  const host = ts.createCompilerHost(options);
  const ofDisk = { ...host };
  host.fileExists = (file) => sources.has(file) || ofDisk.fileExists(file);
  host.readFile = (file) => sources.get(file) ?? ofDisk.readFile(file);
  const program = ts.createProgram([...sources.keys()], options, host);
  const said = (file) => program.getSemanticDiagnostics(program.getSourceFile(file))
    .map((one) => ts.flattenDiagnosticMessageText(one.messageText, '\n'));
  assert.deepEqual(said(join(here, 'grafana.ts')), []); // a type that is not found would take anything
  return [...sources.keys()].map((file) => said(file).join('\n'));
}

test('dashboard and provisioning are of Grafana\'s types, and what is misspelt is not', () => {
  const panel = (change) => (copy) => change(copy.panels[3]);
  const refused = [
    ['Dashboard', board, (copy) => { copy.refrsh = '10s'; }, /"refrsh"' does not exist/],
    ['Dashboard', board, (copy) => { copy.graphTooltip = 3; }, /'3' is not assignable/],
    ['Dashboard', board, (copy) => { copy.time.until = 'now'; }, /"until"' does not exist/],
    ['Dashboard', board, (copy) => { copy.templating.list.push({ name: 'pool', type: 'qeury' }); }, /'"qeury"' is not assignable/],
    ['Dashboard', board, panel((one) => { one.type = 'timeserie'; }), /'"timeserie"' is not assignable to type '"timeseries"'/],
    ['Dashboard', board, panel((one) => { one.tilte = 'Requests'; }), /"tilte"' does not exist/],
    ['Dashboard', board, panel((one) => { delete one.datasource; }), /'datasource' is missing/],
    ['Dashboard', board, panel((one) => { delete one.datasource.uid; }), /'uid' is missing/],
    ['Dashboard', board, panel((one) => { one.gridPos.width = 12; }), /"width"' does not exist/],
    ['Dashboard', board, panel((one) => { one.options.legned = one.options.legend; }), /"legned"' does not exist/],
    ['Dashboard', board, panel((one) => { one.options.legend.placment = 'right'; }), /"placment"' does not exist/],
    ['Dashboard', board, panel((one) => { one.options.legend.displayMode = 'lines'; }), /'"lines"' is not assignable/],
    ['Dashboard', board, panel((one) => { one.options.tooltip.mode = 'all'; }), /'"all"' is not assignable/],
    ['Dashboard', board, panel((one) => { one.fieldConfig.defaults.minimum = 0; }), /"minimum"' does not exist/],
    ['Dashboard', board, panel((one) => { one.fieldConfig.defaults.unit = 'reqs'; }), /'"reqs"' is not assignable/],
    ['Dashboard', board, panel((one) => { one.fieldConfig.defaults.custom = { lineWith: 2 }; }), /"lineWith"' does not exist/],
    ['Dashboard', board, panel((one) => { one.fieldConfig.defaults.custom = { drawStyle: 'dots' }; }), /'"dots"' is not assignable/],
    ['Dashboard', board, panel((one) => { one.fieldConfig.overrides.push({ matcher: { id: 'byName' }, property: [] }); }), /"property"' does not exist/],
    ['Dashboard', board, panel((one) => { one.targets[0].legendFromat = '{{pool}}'; }), /"legendFromat"' does not exist/],
    ['Dashboard', board, panel((one) => { one.targets[0].format = 'series'; }), /'"series"' is not assignable/],
    ['Dashboard', board, panel((one) => { delete one.targets[0].refId; }), /'refId' is missing/],
    ['Datasources', datasources, (copy) => { copy.datasources[0].isdefault = true; }, /"isdefault"' does not exist/],
    ['Datasources', datasources, (copy) => { copy.datasources[0].access = 'server'; }, /'"server"' is not assignable/],
    ['Providers', providers, (copy) => { copy.providers[0].options.paths = '/'; }, /"paths"' does not exist/],
    ['Providers', providers, (copy) => { copy.provider = []; }, /"provider"' does not exist/],
  ].map(([type, value, change, why]) => {
    const copy = structuredClone(value);
    change(copy);
    return [type, copy, why];
  });
  const said = complaints([['Dashboard', board], ['Datasources', datasources], ['Providers', providers], ...refused]);
  assert.deepEqual(said.splice(0, 3), ['', '', '']);
  said.forEach((one, i) => assert.match(one, refused[i][2]));
});

test('the types are those of the Grafana that is started', () => {
  const { version } = require('@grafana/schema/package.json');
  assert.ok(services.grafana.image.endsWith(`:${version}}`), `${services.grafana.image} and ${version}`);
  assert.equal(board.schemaVersion, require('@grafana/schema').defaultDashboard.schemaVersion);
});

test('the dashboard is found, asks the provisioned source, and that asks Prometheus', () => {
  const mounted = new Map(services.grafana.volumes.map((one) => [basename(one.split(':')[0]), one.split(':')[1]]));
  assert.equal(providers.providers[0].options.path, dirname(mounted.get('advisor.json')));
  assert.equal(services.grafana.environment.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH, mounted.get('advisor.json'));
  assert.equal(dirname(mounted.get('dashboards.yaml')), '/etc/grafana/provisioning/dashboards');
  assert.equal(dirname(mounted.get('datasource.yaml')), '/etc/grafana/provisioning/datasources');
  const [{ type, uid, url }] = datasources.datasources;
  assert.ok(services[new URL(url).hostname], url);
  for (const panel of board.panels) assert.deepEqual(panel.datasource, { type, uid }, panel.title);
});

// Variables in a text that are neither Grafana's own nor the dashboard's.
const unknown = (text) => [...text.matchAll(/\$\{?(\w+)/g)].map(([, name]) => name)
  .filter((name) => !name.startsWith('__') && !board.templating.list.some((one) => one.name === name));

// What is wrong with an expression, once its variables have values.
function wrong(expr) {
  const text = expr.replace(/\$(__rate_interval|__interval|__range)\b/g, '5m').replace(/\$(?!__)(\w+|\{\w+(:\w+)?\})/g, 'value');
  const tree = promQLLanguage('PromQL').parser.parse(text);
  const gaps = []; // what the check of meaning passes over: a parenthesis without its other half
  tree.iterate({ enter: (node) => { if (node.type.isError) gaps.push(`no PromQL at ${node.from}`); } });
  const parser = Object.assign(new Parser(EditorState.create({ doc: text })), { tree }); // an editor's own tree may be unfinished
  parser.analyze();
  return [...unknown(expr), ...parser.getDiagnostics().map((one) => one.message), ...gaps];
}

test('every expression is PromQL, and every variable is defined', () => {
  assert.deepEqual(unknown(JSON.stringify(board)), []);
  for (const { title, targets } of board.panels) for (const { expr } of targets) assert.deepEqual(wrong(expr), [], `${title}: ${expr}`);
  assert.deepEqual(wrong('sum by (pool) (rate(x_total[$__rate_interval]))'), []);
  for (const expr of ['sum(rate(x_total[1m])', 'sum(rate(x_total))', 'rat(x_total[1m])', 'histogram_quantile(sum(x))', 'sum by pool (x)', 'rate(x[$__interva])', 'x{pool="$pool"}', ''])
    assert.notDeepEqual(wrong(expr), [], expr);
});
