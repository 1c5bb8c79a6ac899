// Pages against the stand-in daemon: one browser for a test file, a fresh daemon and page for each test, and after each test
// the console must be free of errors and no request may have left the host.

import assert from 'node:assert/strict';
import { after, afterEach, before } from 'node:test';
import { launch, openPage } from './browser.mjs';
import { startFixture } from './fixture.mjs';

// Called once per test file; usual: the options of each page, such as its path. Returns {open, daemon}: open(answers, options)
// gives a page, daemon() the stand-in that serves it.
export function pages(usual = {}) {
  let browser;
  let fixture;
  let opened;

  before(async () => {
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
  });
  afterEach(async () => {
    const { complaints = [], foreign = [] } = opened ?? {};
    await opened?.close();
    await fixture?.stop();
    opened = fixture = null;
    assert.deepEqual(complaints, [], 'the console stays free of errors');
    assert.deepEqual(foreign, [], 'no request leaves the host');
  });

  const open = async (answers = {}, options = {}) => {
    fixture = await startFixture(answers);
    opened = await openPage(browser, fixture.origin, { ...usual, ...options });
    const { ready } = { ...usual, ...options };
    if (ready) await opened.page.waitForSelector(ready);
    return opened.page;
  };
  return { open, daemon: () => fixture };
}
