// The ways to run several daemons, without a container engine: manifests by the schemas of Kubernetes, files that are named
// are there, settings are the daemon's, and every series that the dashboard draws is one that the daemon gives.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { startDaemon, until } from '../api/daemon.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const { parse } = createRequire(join(root, 'tests/api/package.json'))('yaml');
const read = (path) => readFileSync(join(root, 'docker', path), 'utf8');
const kinds = { Deployment: 'apps/v1', Service: 'v1', PodDisruptionBudget: 'policy/v1', HorizontalPodAutoscaler: 'autoscaling/v2' };
const kustomization = parse(read('kustomize/kustomization.yaml'));
const manifests = kustomization.resources.map((name) => parse(read(`kustomize/${name}`), { merge: true }));
const deployment = manifests.find((one) => one.kind === 'Deployment');
const settings = new Set(execFileSync(join(root, 'build/tpu-advisor'), ['serve', '--help'], { encoding: 'utf8' }).match(/^ +--[a-z-]+/gm)
  .map((flag) => `TPU_ADVISOR_${flag.trim().slice(2).toUpperCase().replaceAll('-', '_')}`));

test('every manifest is what its schema says', async () => {
  assert.deepEqual(manifests.map((one) => one.kind).sort(), Object.keys(kinds).sort());
  for (const manifest of manifests) {
    assert.equal(manifest.apiVersion, kinds[manifest.kind]);
    const module = await import(pathToFileURL(join(root, `tests/api/node_modules/kubernetes-models/${manifest.apiVersion}/index.js`)));
    new module[manifest.kind](manifest).validate();
    const broken = structuredClone(manifest);
    broken.spec = { ...broken.spec, minReplicas: 'few', replicas: 'few', ports: 'all', minAvailable: {} };
    assert.throws(() => new module[manifest.kind](broken).validate(), manifest.kind);
  }
});

test('selectors find the pods, probes the daemon, and pods have no rights', () => {
  const { template, selector } = deployment.spec;
  for (const labels of [selector.matchLabels, manifests.find((one) => one.kind === 'Service').spec.selector])
    for (const [name, value] of Object.entries(labels)) assert.equal(template.metadata.labels[name], value);
  const containers = [...template.spec.containers, ...template.spec.initContainers];
  for (const container of containers) {
    assert.equal(container.securityContext.readOnlyRootFilesystem, true);
    assert.equal(container.image, kustomization.images[0].name);
    for (const { name } of container.env) assert.ok(settings.has(name), name);
  }
  assert.equal(template.spec.enableServiceLinks, false); // the Service is called tpu-advisor: its variables look like settings
  const drain = Number(template.spec.containers[0].env.find((one) => one.name === 'TPU_ADVISOR_DRAIN_DELAY').value) + 20;
  assert.ok(template.spec.terminationGracePeriodSeconds > drain);
});

test('compose with a proxy and with monitoring is valid, and names files that are there', () => {
  for (const extra of [['compose.proxy.yaml'], ['compose.monitoring.yaml', '--profile', 'monitoring'], ['compose.tokens.yaml', '-f', 'docker/compose.proxy.yaml']]) {
    const text = execFileSync('docker-compose', ['-f', 'docker/compose.yaml', '-f', `docker/${extra[0]}`, ...extra.slice(1), 'config'],
      { cwd: root, encoding: 'utf8', env: { ...process.env, TPU_ADVISOR_PORT: '8081-8083' } });
    const config = parse(text);
    for (const [name, service] of Object.entries(config.services)) for (const volume of service.volumes ?? []) {
      const source = typeof volume === 'string' ? volume.split(':')[0] : volume.source;
      if (source.startsWith('/')) assert.ok(existsSync(source), `${name}: ${source}`);
    }
    for (const name of Object.keys(config.services.advisor.environment)) assert.ok(settings.has(name.replace(/_FILE$/, '')) || settings.has(name), name);
  }
});

test('the proxy waits longer than the daemon answers and takes what the daemon takes', () => {
  const text = read('proxy/advisor.inc');
  assert.match(text, /client_max_body_size 1m;/);
  assert.ok(Number(text.match(/proxy_read_timeout (\d+)s/)[1]) > 30);
  for (const conf of ['plain.conf', 'tls.conf']) {
    const lines = (read(`proxy/${conf}`) + text + read('proxy/locations.inc')).replace(/#.*/g, '');
    assert.equal(lines.split('{').length, lines.split('}').length, conf);
    for (const line of lines.split('\n').map((one) => one.trim()).filter(Boolean)) assert.match(line, /[;{}]$/, line);
  }
});

test('the proxy follows replicas by name, asks another only of what may be asked twice, and leaves a 503 to the client', () => {
  const text = read('proxy/advisor.inc').replace(/#.*/g, '');
  const lookUp_ms = 1000 * Number(text.match(/resolver 127\.0\.0\.11 valid=(\d+)s/)[1]);
  assert.ok(4 * Number(text.match(/proxy_connect_timeout (\d+)ms/)[1]) < lookUp_ms, 'a request that meets a dead replica is passed on');
  assert.match(text, /server advisor:8080 resolve /);
  assert.ok(Number(text.match(/keepalive_timeout (\d+)s/)[1]) < 15, 'before --idle-timeout');
  assert.match(text, /proxy_next_upstream error timeout;/);
  const [keyed, once] = read('proxy/locations.inc').split('location @once');
  assert.match(keyed, /proxy_next_upstream error timeout non_idempotent;/);
  assert.doesNotMatch(once, /proxy_next_upstream/);
  for (const conf of ['plain.conf', 'tls.conf']) assert.match(read(`proxy/${conf}`), /include \/etc\/nginx\/locations\.inc;/);
});

test('the dashboard draws series that there are', async () => {
  const daemon = await startDaemon();
  await (await daemon.fetch('/v1/catalog/chips')).text();
  const text = await until('it is counted, which is after it is answered', async () => {
    const metrics = await (await daemon.fetch('/metrics')).text();
    return metrics.includes('route="/v1/catalog/{collection}"') && metrics;
  });
  await daemon.stop();
  const board = JSON.parse(read('monitoring/grafana/advisor.json'));
  assert.equal(new Set(board.panels.map((panel) => panel.id)).size, board.panels.length);
  for (const { title, targets } of board.panels) for (const { expr } of targets) {
    // Their labels too; Prometheus gives each series its instance, and takes an unknown label without a word.
    const labels = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) => list.split(/, */)).concat([...expr.matchAll(/([a-z]+)=~?"/g)].map(([, label]) => label));
    for (const [name] of expr.matchAll(/tpu_advisor_[a-z_]+/g)) {
      assert.match(text, new RegExp(`^${name}(\\{| )`, 'm'), `${title}: ${name}`);
      for (const label of labels) if (label !== 'instance') assert.match(text, new RegExp(`^${name}\\{(.*,)?${label}="`, 'm'), `${title}: ${label} of ${name}`);
    }
  }
});
