// Real Chromium for the page tests, without the windows around the page, which cost half of the time: every page records console
// errors, page errors and requests that leave the host.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const EXECUTABLE = process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell';

export async function launch() {
  if (!existsSync(EXECUTABLE)) throw new Error(`${EXECUTABLE} is missing: install the package chromium-headless-shell`);
  return chromium.launch({
    executablePath: EXECUTABLE,
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
      '--no-first-run',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

// {page, complaints[], foreign[], close()}; prepare(page) comes before its first request. Failed API answers are not complaints: pages must show those themselves.
export async function openPage(browser, origin, { scheme = 'light', width = 1280, height = 900, path = '/', prepare } = {}) {
  const context = await browser.newContext({
    colorScheme: scheme,
    viewport: { width, height },
    acceptDownloads: true,
  });
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
  const page = await context.newPage();
  const complaints = [];
  const foreign = [];
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    const { protocol, origin: to } = new URL(request.url());
    if (to !== origin && protocol !== 'blob:' && protocol !== 'data:') foreign.push(request.url());
  });
  page.on('response', (response) => {
    if (response.status() >= 400 && !new URL(response.url()).pathname.startsWith('/v1/'))
      complaints.push(`${response.status()} ${response.url()}`);
  });
  await prepare?.(page);
  await page.goto(origin + path);
  await page
    .waitForSelector('#models option, #error-summary:not([hidden])', { state: 'attached', timeout: 10000 })
    .catch(() => {});
  return { page, complaints, foreign, close: () => context.close() };
}

// The page's own address opened afresh. Not page.reload(): that may overtake an address just written by the page.
export async function reopen(page) {
  const address = await page.evaluate(() => window.location.href);
  await page.goto('about:blank');
  await page.goto(address);
}

// Opens a tab of the plan in full and waits until it is shown.
export async function openTab(page, name) {
  await page.getByRole('tab', { name, exact: true }).click();
  await page.getByRole('tabpanel', { name, exact: true }).waitFor();
}

// Waits until each picture in sight is drawn, or says that it cannot be.
export async function drawn(page) {
  await page.waitForFunction(() =>
    [...document.querySelectorAll('.picture-place[aria-busy="true"]')].every((place) => !place.checkVisibility()),
  );
}

// Opens every tab of the plan in full, one after the other, and everything folded in it, and calls check() each time.
export async function everyTab(page, check) {
  const list = page.getByRole('tab');
  for (let i = 0; i < Math.max(1, await list.count()); i += 1) {
    if (await list.count()) await list.nth(i).click();
    await page.locator('details').evaluateAll((all) =>
      all.forEach((part) => {
        part.open = true;
      }),
    );
    await drawn(page);
    await check();
  }
}

// Violations as readable lines; CSP forbids injected script elements, so axe comes in as an evaluated script, once for a document.
export async function axe(page) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations.map(
    (violation) =>
      `${violation.id}: ${violation.help}: ${violation.nodes.map((node) => `${node.target.join(' ')} ${node.any.map((check) => check.message).join(' ')}`).join(' | ')}`,
  );
}
