// How long the reader waits: from a click to the picture, from a slider to its answer, both painted. Run by itself (make
// web-bench; ORIGIN names the daemon) it prints them, in milliseconds of this machine.

import { fileURLToPath } from 'node:url';
import { drawn, launch, openPage } from './browser.mjs';

export const JOB = '/#/?model=llama3.1-70b&chip=tpu7x&topology=4x4x4&seq_len=8192&batch=2';

// Each gives {painted, fetch, bare, requests, scripts}: milliseconds from the act to the frame that shows its answer; how much of
// that the daemon and the way to it took; what the browser needs to show the same elements once more, by which a busy machine is
// told from a slow page; and how many requests and scripts it took.
export function clickToPicture(page) {
  return measure(page, { place: '#results', shown: '.picture-trade_off svg .front', path: '/v1/advise', act: '#submit' });
}

// The slider of that name in the open What-if goes to its start or its end, whichever is the other.
export function sliderToAnswer(page, name) {
  return measure(page, { place: '.whatif-result', shown: '.whatif-bars', path: '/v1/estimate', slider: name });
}

function measure(page, options) {
  return page.evaluate(async ({ place: selector, shown, path, act, slider }) => {
    const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    const place = document.querySelector(selector);
    const old = place.querySelector(shown);
    const input = slider && [...document.querySelectorAll('.slider')].find((row) => row.textContent.includes(slider)).querySelector('input');
    performance.clearResourceTimings();
    const begin = performance.now();
    const here = new Promise((resolve) => {
      const seen = () => place.querySelector(shown) && place.querySelector(shown) !== old;
      const observer = new MutationObserver(() => {
        if (!seen()) return;
        observer.disconnect();
        resolve();
      });
      observer.observe(place, { subtree: true, childList: true });
    });
    if (act) document.querySelector(act).click();
    else {
      input.value = input.value === input.min ? input.max : input.min;
      input.dispatchEvent(new Event('input', { bubbles: true }));
    }
    await here;
    await painted();
    const end = performance.now();
    const asked = performance.getEntriesByType('resource').filter((entry) => new URL(entry.name).pathname === path);
    const others = performance.getEntriesByType('resource').filter((entry) => new URL(entry.name).pathname.endsWith('.js'));
    const copy = document.createElement('div');
    copy.className = place.className;
    const html = place.innerHTML;
    const again = performance.now();
    copy.innerHTML = html;
    place.after(copy);
    await painted();
    const bare = performance.now() - again;
    copy.remove();
    return { painted: end - begin, fetch: asked.at(-1).duration, bare, requests: asked.length, scripts: others.length };
  }, options);
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

// A page whose first view is complete, pictures' chunk included: it is loaded when the page is idle, or after two seconds.
export async function readyPage(browser, origin) {
  const opened = await openPage(browser, origin, { path: JOB });
  const chunk = await opened.page.waitForFunction(() => performance.getEntriesByType('resource').find(({ name }) => /\/all-\w+\.js$/.test(name))?.name);
  await opened.page.evaluate((address) => import(address), await chunk.jsonValue());
  await opened.page.waitForLoadState('networkidle');
  return opened;
}

export async function openWhatIf(page) {
  await page.getByRole('tab', { name: 'What if', exact: true }).click();
  await page.locator('.picture-place-whatif[aria-busy="false"]').waitFor();
  await drawn(page);
}

async function print(origin) {
  const browser = await launch();
  const line = (what, all) => {
    const of = (name) => median(all.map((one) => one[name])).toFixed(0);
    console.log(`${what}: ${of('painted')} ms (of which the daemon ${of('fetch')} ms; the same elements once more: ${of('bare')} ms)`);
  };
  const clicks = [];
  const slides = [];
  for (let i = 0; i < 7; i += 1) {
    const { page, close } = await readyPage(browser, origin);
    clicks.push(await clickToPicture(page));
    await openWhatIf(page);
    for (const name of ['HBM bandwidth', 'MXU peak', 'Sequence length']) slides.push(await sliderToAnswer(page, name));
    await close();
  }
  line('click to picture, asked for the first time', clicks.slice(0, 1));
  line('click to picture, asked before', clicks.slice(1));
  line('slider to answer', slides);
  await browser.close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await print(process.env.ORIGIN);
