#!/usr/bin/env python3
"""clusters.py: XPK's dry run, the JobSet schema and bash over every cluster of the catalog."""
import json
import os
import pathlib
import re
import subprocess
import sys

import jsonschema
import yaml
from eco import ROOT, Part, Shell, artifact, keep

VARIABLES = {'CLUSTER': 'c', 'CLUSTER_NAME': 'c', 'WORKLOAD': 'job', 'WORKLOAD_NAME': 'job', 'DOCKER_IMAGE': 'image:1',
             'WORKLOAD_IMAGE': 'image:1', 'PROJECT_ID': 'p', 'ZONE': 'us-central1-a', 'STEPS': '7',
             'DATASET_TYPE': 'hf', 'EXTRA_ARGS': 'profiler=xplane'}
REACHES = ['steps=7', 'dataset_type=hf', 'profiler=xplane', 'enable_checkpointing=false', 'run_name=job']
# The flags of `gcluster job submit` (Cluster Toolkit's reference) that the script may use.
GCLUSTER = {'--project', '--cluster', '--location', '--queue', '--name', '--image', '--priority', '--restarts',
            '--compute-type', '--topology', '--num-slices', '--gke-disable-parallel-containers', '--command'}


def answer_of(row, slices):
    name, chip, topology, devices, chips, hosts, _ = row
    return {'model': {'name': 'llama3.1-8b'},
            'cluster': {'chip': chip, 'topology': topology, 'accelerator': name, 'slices': slices,
                        'devices': devices * slices, 'chips': chips * slices, 'hosts': hosts * slices},
            'config': {'model_name': 'llama3.1-8b', 'per_device_batch_size': 1, 'mlp_activations': ['silu', 'linear']},
            'xla_flags': ['--xla_a=true', '--xla_b=1'], 'step_time_s': 1, 'engine': {'version': 'eco'}}


def closed(schema):
    """The schema as the API server takes it with strict validation: no member that it does not name."""
    if isinstance(schema, dict):
        open_ended = schema.get('x-kubernetes-preserve-unknown-fields') or 'additionalProperties' in schema
        made = {key: closed(value) for key, value in schema.items()}
        if 'properties' in schema and not open_ended:
            made['additionalProperties'] = False
        return made
    return [closed(item) for item in schema] if isinstance(schema, list) else schema


def jobset_schema(path):
    versions = yaml.safe_load(open(path))['spec']['versions']
    schema = closed(next(v for v in versions if v['name'] == 'v1alpha2')['schema']['openAPIV3Schema'])
    schema['properties']['metadata'] = {'type': 'object'}  # checked by the API server's own types
    return jsonschema.Draft202012Validator(schema)


def run(text, folder, path, **more):
    env = {'PATH': path, 'HOME': str(folder), **VARIABLES, 'BASE_OUTPUT_DIRECTORY': 'gs://b/c', **more}
    script = folder / 'script.sh'
    script.write_text(text)
    return lambda *arguments: subprocess.run(['bash', str(script), *arguments], cwd=folder, env=env,
                                             capture_output=True, text=True, check=False)


def manifest_of(output):
    found = re.search(r'content: \n(.*?)\n\n\[XPK\]', output, re.S)
    return yaml.safe_load(found.group(1)) if found else None


def check_xpk(part, folder, case, answer, path):
    done = run(artifact('xpk.sh', answer), folder, path)('--dry-run', '--skip-validation')
    cluster = answer['cluster']
    if done.returncode == 2 and 'XPK has no type' in done.stderr:
        return part.count('slices that XPK has no type for, said by the script')
    try:
        manifest = manifest_of(done.stdout)
    except yaml.YAMLError as error:
        return part.disagree(f'xpk {case}', error)
    if not manifest:
        return part.disagree(f'xpk {case}', done.stdout[-300:] + done.stderr[-300:])
    part.count("manifests of XPK's dry run")
    job = manifest['spec']['replicatedJobs'][0]
    pod = job['template']['spec']['template']['spec']
    container = pod['containers'][0]
    script = container['command'][-1]
    if pod['nodeSelector']['cloud.google.com/gke-tpu-topology'] != cluster['topology']:
        part.disagree(f'xpk {case}', f'topology {pod["nodeSelector"]}')
    if job['replicas'] != cluster['slices']:
        part.disagree(f'xpk {case}', f'{job["replicas"]} slices')
    for word in REACHES:
        if word not in script:
            part.disagree(f'xpk {case}', f'{word} does not reach the command')
    if subprocess.run(['bash', '-n'], input=script, text=True, capture_output=True, check=False).returncode:
        part.disagree(f'xpk {case}', 'the command is no shell')


def check_jobset(part, shell, schema, case, answer):
    text = artifact('jobset.yaml', answer)
    for name in ('WORKLOAD', 'DOCKER_IMAGE', 'BASE_OUTPUT_DIRECTORY', 'STEPS', 'DATASET_TYPE', 'EXTRA_ARGS'):
        text = text.replace('${%s}' % name, {**VARIABLES, 'BASE_OUTPUT_DIRECTORY': 'gs://b/c'}[name])
    manifest = yaml.safe_load(text)
    for error in schema.iter_errors(manifest):
        part.disagree(f'jobset {case}', f'{error.json_path}: {error.message}')
    part.count('JobSets against the schema')
    pod = manifest['spec']['replicatedJobs'][0]['template']['spec']['template']['spec']
    container = pod['containers'][0]
    env = {item['name']: item['value'] for item in container['env']}
    started = shell.start(container['args'][0], **env)
    for word in REACHES:
        if word not in started.get('argv', []):
            part.disagree(f'jobset {case}', f'{word} does not reach the command: {started}')


def check_gcluster(part, folder, shell, case, answer):
    stub = folder / 'bin' / 'gcluster'
    stub.parent.mkdir(exist_ok=True)
    stub.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\0" "$a"; done\n')
    stub.chmod(0o755)
    done = run(artifact('gcluster.sh', answer), folder, f'{stub.parent}:{os.environ["PATH"]}')()
    words = done.stdout.split('\0')
    flags = {word for word in words if word.startswith('--')}
    if words[:2] != ['job', 'submit'] or flags - GCLUSTER:
        return part.disagree(f'gcluster {case}', f'{words[:2]} {sorted(flags - GCLUSTER)} {done.stderr[-200:]}')
    part.count('commands of gcluster.sh')
    started = shell.start(words[words.index('--command') + 1])
    for word in REACHES:
        if word not in started.get('argv', []):
            part.disagree(f'gcluster {case}', f'{word} does not reach the command: {started}')


def record():
    """XPK's names of every slice of the catalog, for the part of the test that needs no network."""
    from xpk.core.system_characteristics import AcceleratorType, UserFacingNameToSystemCharacteristics as systems
    rows = json.load(open(ROOT / 'engine/catalog/data/topologies.json'))['rows']
    labels = {'tpu7x': 'tpu7x', 'v6e': 'tpu-v6e-slice', 'v5p': 'tpu-v5p-slice', 'v5e': 'tpu-v5-lite-podslice',
              'v4': 'tpu-v4-podslice'}
    names = {f'{row[1]}-{row[2]}': [name for name, system in systems.items()
                                    if system.accelerator_type == AcceleratorType.TPU and system.topology == row[2]
                                    and system.gke_accelerator == labels[row[1]]] for row in rows}
    keep('xpk_types', names)


def main():
    record()
    part = Part('clusters', "XPK's dry run, the JobSet schema and gcluster's flags over every cluster")
    schema = jobset_schema(sys.argv[1])
    shell = Shell()
    rows = json.load(open(ROOT / 'engine/catalog/data/topologies.json'))['rows']
    tools = str(pathlib.Path(sys.executable).parent)
    for number, row in enumerate(rows):
        answer = answer_of(row, 1 + number % 2)
        check_xpk(part, shell.path, row[0], answer, f'{tools}:{os.environ["PATH"]}')
        check_jobset(part, shell, schema, row[0], answer)
        check_gcluster(part, shell.path, shell, row[0], answer)
    part.close()


if __name__ == '__main__':
    main()
