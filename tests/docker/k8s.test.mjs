// The Kubernetes manifests by the schemas that Kubernetes publishes for its objects, and by what the program takes.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const require = createRequire(join(root, 'tests/api/package.json'));
const { parseAllDocuments } = require('yaml');
const { Job } = await import(pathToFileURL(join(root, 'tests/api/node_modules/kubernetes-models/batch/v1/index.js')));
const folder = join(root, 'docker/k8s');
const manifests = readdirSync(folder).flatMap((name) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')).map((one) => one.toJS()));

test('each manifest is a Job that the schema takes', () => {
  assert.ok(manifests.length > 0);
  for (const manifest of manifests) {
    assert.equal(`${manifest.apiVersion} ${manifest.kind}`, 'batch/v1 Job');
    new Job(manifest).validate();
  }
});

test('and a broken one it does not', () => {
  for (const breakIt of [(job) => { job.spec.parallelism = 'many'; }, (job) => { delete job.spec.template; }, (job) => { delete job.spec.template.spec.containers[0].name; }]) {
    const job = structuredClone(manifests[0]);
    breakIt(job);
    assert.throws(() => new Job(job).validate());
  }
});

test('pods run without rights, and their volumes are there', () => {
  for (const { spec: { template: { spec } } } of manifests) {
    assert.equal(spec.securityContext.runAsNonRoot, true);
    assert.equal(spec.enableServiceLinks, false); // variables of a Service called tpu-advisor look like settings
    for (const container of spec.containers) {
      assert.equal(container.securityContext.readOnlyRootFilesystem, true);
      for (const mount of container.volumeMounts) assert.ok(spec.volumes.some((volume) => volume.name === mount.name), mount.name);
    }
  }
});

test('the program takes the arguments', () => {
  for (const { spec: { template: { spec } } } of manifests)
    for (const { args } of spec.containers) {
      const said = execFileSync(join(root, 'build/tpu-advisor'), [...args, '--print-config'], { encoding: 'utf8', env: {} });
      assert.match(said, /until_empty = true/);
    }
});
