// update.mjs [--check]: writes the generated parts of README.md, between `<!-- begin: NAME -->` and `<!-- end: NAME -->`,
// from the program and the committed accuracy report. With --check it writes nothing and fails when a part is out of date.
// Run from the top of the checkout: `make readme`, and `make lint` for the check.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const program = process.env.PROGRAM ?? 'build/tpu-advisor';

// JSON as a reader would write it: what fits stays on one line, short members share lines.
function pretty(value, depth = 0, width = 110) {
    const flat = JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ');
    if (typeof value !== 'object' || value === null || flat.length + depth <= width) return flat;
    const inside = depth + 2;
    const entries = Array.isArray(value)
        ? value.map((item) => pretty(item, inside, width))
        : Object.entries(value).map(([key, item]) => `"${key}": ${pretty(item, inside + (typeof item === 'object' ? 0 : key.length), width)}`);
    const lines = [];
    for (const [index, entry] of entries.entries()) {
        const text = entry + (index + 1 < entries.length ? ',' : '');
        const last = lines.at(-1);
        const joins = last && !/[\n{[]/.test(last + text) && inside + last.length + 1 + text.length <= width;
        if (joins) lines[lines.length - 1] = `${last} ${text}`;
        else lines.push(text);
    }
    const [open, close] = Array.isArray(value) ? '[]' : '{}';
    return `${open}\n${lines.map((line) => ' '.repeat(inside) + line).join('\n')}\n${' '.repeat(depth)}${close}`;
}

// Members named in `names`, in that order; a missing one is a mistake here or in the contract.
function pick(object, names) {
    return Object.fromEntries(names.map((name) => {
        if (!(name in object)) throw new Error(`the answer has no member ${name}`);
        const value = object[name];
        return [name, typeof value === 'number' ? Number(value.toPrecision(4)) : value];
    }));
}

function exchange() {
    const request = readFileSync('tests/readme/request.json', 'utf8').trim();
    const answer = JSON.parse(execFileSync(program, ['advise', 'tests/readme/request.json'], { maxBuffer: 1 << 26 }));
    const best = answer.ranked[0];
    const parts = best.estimate.time_parts
        .toSorted((a, b) => b.exposed_seconds - a.exposed_seconds).slice(0, 4)
        .map((part) => pick(part, ['name', 'exposed_seconds', 'resource']));
    const shown = {
        rank: best.rank,
        config: best.config,
        xla_flags: best.xla_flags.length > 2 ? [...best.xla_flags.slice(0, 2), `… ${best.xla_flags.length - 2} more`] : best.xla_flags,
        estimate: {
            ...pick(best.estimate, ['step_time_s', 'step_time_low_s', 'step_time_high_s', 'tokens_per_s_per_chip', 'mfu_frac',
                'fit_verdict', 'hbm_bytes_per_device', 'hbm_limit_bytes_per_device', 'bound', 'confidence']),
            time_parts: [...parts, `… ${best.estimate.time_parts.length - parts.length} more`],
        },
        why: [...best.why.slice(0, 3), `… ${best.why.length - 3} more`],
    };
    const search = pick(answer.search, ['considered', 'illegal', 'pruned', 'out_of_memory', 'evaluated', 'exhaustive']);
    return [
        '```sh',
        "curl -s http://127.0.0.1:8080/v1/advise -H 'Content-Type: application/json' -d '" + request + "'",
        '```',
        '',
        `The best of the ${answer.ranked.length} ranked plans, shortened (left out: ${answer.ranked.length - 1} plans, most flags, reasons and time parts, and`,
        'the memory parts, mesh, kernels and advice; numbers rounded to four digits):',
        '',
        '```json',
        pretty({ ranked: [shown], search }),
        '```',
    ].join('\n');
}

// The step that docker/ci-examples/github.yml runs.
function ci() {
    const lines = readFileSync('docker/ci-examples/github.yml', 'utf8').split('\n');
    const start = lines.findIndex((line) => line.trim() === 'run: |') + 1;
    const indent = lines[start].match(/^ */)[0].length;
    const length = lines.slice(start).findIndex((line) => line.match(/^ */)[0].length < indent);
    return ['```sh', ...lines.slice(start, start + length).map((line) => line.slice(indent)), '```'].join('\n');
}

// A published run beside what the compiler and the program say of it.
function levels() {
    const id = 'v7x-llama3.1-70b-8k-bf16-64c-2025-12-18';
    const row = (file) => JSON.parse(readFileSync(file, 'utf8')).find((one) => one.id === id);
    const measured = row('tests/accuracy/e2e.json'), { compiled } = row('tests/compile/truth/recipes.json');
    const predicted = JSON.parse(execFileSync(program, ['estimate', '-'], { input: JSON.stringify(measured.request), encoding: 'utf8' }));
    const between = (name, low, high, unit, digits) => `${(predicted[name] / unit).toFixed(digits)} ${unit > 1 ? 'GB' : 's'}, 90 % within `
        + `${(predicted[low] / unit).toFixed(digits)} to ${(predicted[high] / unit).toFixed(digits)}`;
    const gb = (bytes) => (bytes / 1e9).toFixed(1);
    return [
        `One job through all three levels: the published recipe of llama3.1-70b on 64 chips of tpu7x (8,192 tokens, bf16; row`,
        `\`${id}\` of \`tests/accuracy/e2e.json\`):`,
        '',
        '| | predicted (`estimate`, milliseconds) | compiled (`verify`, minutes) | measured (published) |',
        '| --- | --- | --- | --- |',
        `| step time | ${between('step_time_s', 'step_time_low_s', 'step_time_high_s', 1, 2)} | | ${measured.judged_step_time_s.toFixed(2)} s |`,
        `| HBM per device | ${between('hbm_bytes_per_device', 'hbm_low_bytes_per_device', 'hbm_high_bytes_per_device', 1e9, 1)} `
            + `| ${gb(compiled.need_bytes_per_device)} GB of ${gb(predicted.hbm_limit_bytes_per_device)}: ${compiled.verdict} | it ran |`,
    ].join('\n');
}

// From tests/accuracy/report.md: what its columns mean, and its rows by chip with their sum.
function accuracy() {
    const lines = readFileSync('tests/accuracy/report.md', 'utf8').split('\n');
    const table = (name) => {
        const start = lines.findIndex((line) => line.startsWith(`| ${name} |`));
        if (start < 0) throw new Error(`tests/accuracy/report.md has no table "${name}"`);
        const end = lines.findIndex((line, at) => at > start && !line.startsWith('|'));
        return lines.slice(start, end);
    };
    const meaning = lines.filter((line) => /^(Errors|"Left out"|[0-9]+ of [0-9]+ rows)/.test(line));
    return [...lines.filter((line) => line.startsWith('Generated by')).map((line) => line.replace(/^.*do not edit\. */, '')),
        ...meaning, '', ...table('chip'), ...table('all').slice(2)].join('\n');
}

// From tests/compile/report.md: compiled steps by chip with their sum, and plans as they were predicted first.
function memory() {
    const lines = readFileSync('tests/compile/report.md', 'utf8').split('\n');
    const rows = lines.filter((line) => /^\| (by|chip|all) \|/.test(line) && !line.includes('models that people train'));
    const cells = rows.map((line) => line.split('|').slice(2, -1).map((cell) => cell.trim()));
    const named = [['chip', ...cells[0].slice(1)], ...cells.slice(2), cells[1]].map((row) => `| ${row.join(' | ')} |`);
    const begin = lines.indexOf('## As predicted before it was compiled');
    const end = lines.findIndex((line, at) => at > begin && line.startsWith('## '));
    if (begin < 0 || cells.length < 4) throw new Error('tests/compile/report.md has changed its form');
    const [head, ...rest] = named;
    return [head, `| --- ${'| --: '.repeat(cells[0].length - 1)}|`, ...rest, '', ...lines.slice(begin + 2, end)].join('\n').trimEnd();
}

// `tpu-advisor serve --help`, as a table: its lines are "  --name  help [default]".
function settings() {
    const help = execFileSync(program, ['serve', '--help'], { encoding: 'utf8' });
    const rows = [...help.matchAll(/^ +--([a-z-]+) +(.*) \[(.*)\]$/gm)];
    if (rows.length < 10) throw new Error('serve --help has changed its form');
    return ['| flag | default | what |', '| --- | --- | --- |',
        ...rows.map(([, name, what, preset]) => `| \`--${name}\` | ${preset ? `\`${preset}\`` : 'none'} | ${what} |`)].join('\n');
}

const parts = { exchange, ci, levels, accuracy, memory, settings };
const before = readFileSync('README.md', 'utf8');
let after = before;
for (const [name, make] of Object.entries(parts)) {
    const pattern = new RegExp(`(<!-- begin: ${name} -->\n)[^]*?(<!-- end: ${name} -->)`);
    if (!pattern.test(after)) throw new Error(`README.md has no part ${name}`);
    after = after.replace(pattern, (_, begin, end) => `${begin}${make()}\n${end}`);
}
if (!process.argv.includes('--check')) {
    writeFileSync('README.md', after);
} else if (after !== before) {
    console.log('lint: README.md is out of date; run `make readme` and look at what changed');
    process.exit(1);
} else {
    console.log('lint: the generated parts of README.md are current');
}
