// pictures.mjs ORIGIN: draws the pictures of README.md anew, from a daemon at ORIGIN that has a database, in the Chromium of the
// web tests. Not part of any check: a browser of another version draws other bytes.
import { drawn, launch, openPage, openTab } from '../web/browser.mjs';

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
// part: the element to show, the whole view without one.
async function picture(name, path, { ready, part, height = 860, width = 1280, scheme = 'light', prepare = async () => {} }) {
    const { page, close } = await openPage(browser, ORIGIN, { width, height, scheme, path });
    await page.waitForSelector(ready);
    await prepare(page);
    await drawn(page);
    await page.mouse.move(0, 0);
    await page.evaluate(() => {
        for (const head of document.querySelectorAll('.plan-head')) head.style.position = 'static'; // it would cover a part
        window.scrollTo(0, 0);
    });
    await (part ? page.locator(part) : page).screenshot({ path: `${FOLDER}${name}.png` });
    await close();
}
const MINE = `${JOB}&config=remat_policy%3Dfull`;
const tab = (name) => ({ ready: '#ranked', prepare: (page) => openTab(page, name) });
await picture('plans', JOB, { ready: '#ranked', height: 700 });
await picture('trade-off', JOB, { ready: '#ranked', part: '.picture-trade_off' });
await picture('time', JOB, { ...tab('Time'), part: '.picture-layer_time', scheme: 'dark' });
await picture('mesh', JOB, { ...tab('Mesh'), part: '.picture-torus' });
await picture('waterfall', MINE, { ready: '#ranked', part: '.picture-waterfall' });
// A shape of a published tuning sweep, so that the winner's mark is in the picture.
const SWEPT = 'chip=tpu7x&shape.batch=2&shape.q_heads=16&shape.kv_heads=16&shape.q_len=8192';
await picture('tiles', `/#/kernels?${SWEPT}`, {
    ready: '#k-shape input',
    part: '.picture-tiles',
    prepare: async (page) => {
        await page.click('#k-submit');
        await page.waitForSelector('.picture-tiles svg .heat-mark:text("▲")', { state: 'attached' }); // else the shape is not a swept one
    },
});
await picture('sweep', `/#/sweeps/${await sweep()}?${new URLSearchParams(AXES)}`, { ready: 'text=16 of 16', height: 420 });
await browser.close();
