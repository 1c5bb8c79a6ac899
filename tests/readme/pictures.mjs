// pictures.mjs ORIGIN: draws the pictures of README.md anew, from a daemon at ORIGIN that has a database, in the Chromium of the
// web tests. Not part of any check: a browser of another version draws other bytes.
import { launch, openPage, openTab } from '../web/browser.mjs';

const ORIGIN = process.argv[2] ?? 'http://127.0.0.1:8080';
const FOLDER = new URL('./pictures/', import.meta.url).pathname;
const JOB = '/#/?model=llama3.1-70b&chip=tpu7x&topology=4x4x4&seq_len=8192&batch=2&plan=1';
const AXES = { y: 'remat_policy=full, minimal, save_qkv_proj, save_out_proj', x: 'per_device_batch_size=1, 2, 4, 8' };

async function sweep() {
    const grid = {
        base: { model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4' }, config: { max_target_length: 8192 } },
        axes: {
            '/config/remat_policy': ['full', 'minimal', 'save_qkv_proj', 'save_out_proj'],
            '/config/per_device_batch_size': [1, 2, 4, 8],
        },
    };
    const response = await fetch(`${ORIGIN}/v1/sweeps`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ kind: 'estimate', label: 'batch and remat', grid }),
    });
    return (await response.json()).sweep_id;
}

const browser = await launch();
async function picture(name, path, { ready, height = 860, width = 1280, scheme = 'light', prepare = async () => {} }) {
    const { page, close } = await openPage(browser, ORIGIN, { width, height, scheme, path });
    await page.waitForSelector(ready);
    await prepare(page);
    await page.mouse.move(0, 0);
    await page.screenshot({ path: `${FOLDER}${name}.png` });
    await close();
}
await picture('plans', JOB, { ready: '#ranked' });
await picture('time', JOB, {
    ready: '#ranked',
    height: 700,
    scheme: 'dark',
    prepare: async (page) => {
        await openTab(page, 'Time');
        await page.locator('.plan-head').evaluate((head) => head.scrollIntoView());
    },
});
await picture('sweep', `/#/sweeps/${await sweep()}?${new URLSearchParams(AXES)}`, { ready: 'text=16 of 16', height: 420 });
await browser.close();
