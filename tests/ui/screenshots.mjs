// Takes the pictures of docs/operate/web-ui.md: node screenshots.mjs DIR.

import { join } from 'node:path';
import { browse, open, serve } from './browser.mjs';

const dir = process.argv[2];
const server = await serve();
const browser = await browse();
const shots = {
  hub: { path: '?hub', ready: '.columns table', then: async (page) => { await page.locator('.count', { hasText: '1,000+' }).waitFor(); await page.getByText('printLabel of').waitFor(); }, how: { height: 860 } },
  list: {
    path: '?q=order* tag:region%3Deu', ready: '.instances .row',
    then: async (page) => { await page.locator('.count', { hasText: '1,000+' }).waitFor(); for (const n of [1, 3]) await page.locator('.instances .row input').nth(n).check(); },
  },
  schedules: { path: '?schedules', ready: '.schedules .row', then: (page) => page.locator('.schedules .row').first().click(), how: { height: 480 } },
  entities: { path: '?entities=stock', ready: '.entities .row', then: async (page) => { await page.locator('.entities .row').first().click(); await page.locator('aside.detail pre.json').waitFor(); }, how: { height: 420 } },
  timeline: { path: '?instance=order-7', ready: '.timeline .said.off', how: { height: 820 } },
  'timeline-dark': { path: '?instance=order-8', ready: '.timeline .said.warn', how: { dark: true, height: 640 } },
  blocked: { path: '?instance=order-9', ready: '.sides', how: { height: 700 } },
  cancellations: { path: '?instance=order-7&tab=cancellations', ready: '.cancels .row', then: (page) => page.locator('.cancels .row').first().click(), how: { height: 820 } },
  'dead-letters': { path: '?dead&reason=', ready: '.letters .row', then: async (page) => { await page.locator('.groups li', { hasText: 'charge-0' }).waitFor(); await page.locator('.letters .row').first().click(); await page.locator('aside.detail pre.json').waitFor(); }, how: { height: 760 } },
  phone: { path: '?instance=order-7', ready: '.timeline .said.off', how: { width: 390, height: 844 } },
};
for (const [name, { path, ready, how = {}, then }] of Object.entries(shots)) {
  const { page, close } = await open(browser, server.base, path, { width: 1280, height: 640, ...how });
  await page.locator(ready).first().waitFor();
  await then?.(page);
  await page.mouse.move(0, 0);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.screenshot({ path: join(dir, `${name}.png`) });
  await close();
}
await browser.close();
server.stop();
