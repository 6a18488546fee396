// Tests of the stream of events that an open instance subscribes to.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { browse, open, serve } from './browser.mjs';

let server;
let browser;
before(async () => { server = await serve(); browser = await browse('--js-flags=--expose-gc'); });
after(async () => { await browser?.close(); server?.stop(); });

// A page that a failed test leaves open would have a stream in the next test.
let opened = [];
afterEach(async () => {
  await Promise.all(opened.map(({ close }) => close()));
  opened = [];
  await post('/test/buffered/false');
  await openStreams(0);
});

const post = async (path, body = {}) => {
  const response = await fetch(`${server.base}${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
};
const add = (id, kind, count = 1) => post(`/test/events/${id}`, { kind, count });
const streams = async () => (await fetch(`${server.base}/test/streams`)).json();

// until polls the streams of the server until they satisfy a condition.
async function until(what, satisfied) {
  for (let tries = 0; tries < 240; tries++) {
    const now = await streams();
    if (satisfied(now)) return now;
    await new Promise((done) => { setTimeout(done, 50); });
  }
  return assert.fail(`${what}: ${JSON.stringify(await streams())}`);
}
const openStreams = (n) => until(`${n} open streams`, (s) => s.open === n);

// watch starts an instance and opens its events. asked lists the requests of its history and of its stream.
async function watch(id, prepare = () => {}) {
  await post('/v1/orchestrations/fulfil', { instanceId: id });
  await add(id, 'TurnStarted');
  const { page, wrong, close } = await open(browser, server.base, '');
  opened.push({ close });
  await page.locator('.instances .row').first().waitFor();
  const asked = { history: [], stream: [] };
  page.on('request', (r) => { for (const [name, list] of Object.entries(asked)) if (new RegExp(`/${id}/(events/)?${name}`).test(r.url())) list.push({ at: Date.now(), url: r.url(), from: r.headers()['last-event-id'] }); });
  await prepare(page);
  await page.goto(`${server.base}/ui?instance=${id}&tab=events`);
  const shows = (n) => page.getByRole('tab', { name: `Events (${n.toLocaleString('en-US')})` }).waitFor({ timeout: 60_000 }); // tolerates a busy machine
  await shows(2);
  return { page, wrong, asked, shows };
}

test('the events of an open instance arrive by the stream, and the history is not read again', async (t) => {
  const { page, wrong, asked, shows } = await watch('live-1');
  assert.match((await openStreams(1)).lastEventIds.at(-1), /^x\d+\.2$/);
  await add('live-1', 'SideEffectRecorded');
  await shows(3);
  for (let n = 4; n < 6; n++) {
    await page.waitForResponse((r) => r.url().includes('live-1?pending=false')); // the status of the event before: no poll is due
    if (n === 4) asked.history.length = 0;
    const began = Date.now();
    await add('live-1', 'SideEffectRecorded');
    await shows(n);
    t.diagnostic(`an event is shown after ${Date.now() - began} ms`);
  }
  await add('live-1', 'OrchestrationCompleted');
  await page.locator('.hero .chip.Completed').waitFor();
  await openStreams(0);
  assert.equal(asked.history.length, 0, JSON.stringify(asked.history));
  assert.equal(asked.stream.length, 1, JSON.stringify(asked.stream));
  assert.deepEqual(wrong, []);
});

test('a stream that ends is resumed after its last event', async () => {
  const { page, shows } = await watch('live-2');
  await openStreams(1);
  for (let n = 3; n < 6; n++) {
    await add('live-2', 'SideEffectRecorded');
    await shows(n);
    await post('/test/cut');
    await until('the next stream', (s) => s.lastEventIds.at(-1).endsWith(`.${n}`) && s.open === 1);
  }
  await add('live-2', 'SideEffectRecorded');
  await shows(6);
  assert.equal(await page.locator('.events .row:visible').count(), 6);
});

test('a continue-as-new shows and follows the next execution', async () => {
  const { shows } = await watch('live-3');
  await openStreams(1);
  await add('live-3', 'OrchestrationContinuedAsNew');
  await until('a stream of the next execution', (s) => s.open === 1 && s.lastEventIds.at(-1).endsWith('.1'));
  await add('live-3', 'TurnStarted');
  await shows(2);
});

test('only the visible view has a stream, and only one', async () => {
  const { page, shows } = await watch('live-4');
  await openStreams(1);
  const hide = (hidden) => page.evaluate((on) => {
    Object.defineProperty(document, 'hidden', { value: on, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await hide(true);
  await openStreams(0);
  await add('live-4', 'SideEffectRecorded');
  await hide(false);
  await shows(3);
  await openStreams(1);
  for (let n = 0; n < 10; n++) await hide(n % 2 === 0);
  await openStreams(1);

  const live = page.getByRole('button', { name: 'Updating' });
  await live.click();
  await openStreams(0);
  await live.click();
  await openStreams(1);

  await page.getByRole('link', { name: 'Instances', exact: true }).click();
  await openStreams(0);
  for (let n = 0; n < 4; n++) { await page.goBack(); await page.goForward(); }
  await page.goBack();
  const before = await openStreams(1);
  await add('live-4', 'SideEffectRecorded');
  await shows(4);
  assert.equal((await streams()).lastEventIds.length, before.lastEventIds.length, 'no other stream was opened');
});

test('without a stream, events are polled, and the pause between two attempts grows', async () => {
  let refused = true;
  const { page, asked, shows } = await watch('live-5', (p) => p.route(/live-5\/events\/stream/, (r) => (refused ? r.fulfill({ status: 403, contentType: 'application/json', body: '{"message":"Forbidden"}' }) : r.continue())));
  await add('live-5', 'SideEffectRecorded');
  await shows(3);
  while (asked.stream.length < 3) await page.waitForRequest(/live-5\/events\/stream/);
  const [first, second, third] = asked.stream.map(({ at }) => at);
  assert.ok(second - first > 950 && third - second > 1950, `attempts after ${second - first} and ${third - second} ms`);
  refused = false;
  await openStreams(1);
});

test('an event that both the stream and the history have is shown once', async () => {
  const old = { id: 2, kind: 'TurnStarted', time: new Date().toISOString(), version: '1.0.0' };
  const repeat = `id: x.2\nevent: TurnStarted\ndata: ${JSON.stringify(old)}\n\n`;
  const answers = [];
  let release;
  const held = new Promise((done) => { release = done; });
  const { page, asked, shows } = await watch('live-9', async (p) => {
    await p.route(/live-9\/events\/stream/, (r) => {
      const answer = answers.shift();
      return answer === 'real' ? r.continue() : r.fulfill({ status: answer ? 200 : 403, contentType: 'text/event-stream', body: answer });
    });
    await p.route(/live-9\/history.*after/, async (r) => { await held; await r.continue(); });
  });
  while (asked.history.length < 2) await page.waitForRequest(/live-9\/history/); // a poll reads the history, and waits
  answers.push(repeat, 'real');
  for (let n = 0; n < 2; n++) await page.getByRole('button', { name: 'Updating' }).click(); // ends the pause
  await openStreams(1);
  await add('live-9', 'SideEffectRecorded');
  await shows(3);
  const late = page.waitForResponse(/live-9\/history/);
  release();
  assert.equal((await (await late).json()).items[0].id, 3);
  await page.waitForResponse((r) => r.url().includes('live-9?pending=false')); // the history is shown
  await add('live-9', 'SideEffectRecorded');
  await page.locator('.events .row', { hasText: '#4' }).waitFor();
  await shows(4);
});

test('behind a gateway that buffers responses, one long poll follows another', async () => {
  await post('/test/buffered/true');
  const { asked, shows } = await watch('live-6');
  for (let n = 3; n < 7; n++) {
    await openStreams(1);
    await add('live-6', 'SideEffectRecorded');
    await shows(n);
  }
  await until('the fifth long poll', (s) => s.lastEventIds.at(-1).endsWith('.6'));
  assert.equal(asked.history.filter(({ url }) => !url.includes('after')).length, 1);
  assert.deepEqual(asked.stream.map(({ from }) => from.slice(from.indexOf('.'))), ['.2', '.3', '.4', '.5', '.6']);
});

test('if a proxy withholds the stream, long polls replace it', async () => {
  const { page, asked, shows } = await watch('live-7', async (p) => {
    await p.clock.install();
    await p.route(/live-7\/events\/stream$/, () => {}); // no response, ever
  });
  while (asked.stream.length === 0) await page.waitForRequest(/live-7\/events\/stream$/);
  const polled = page.waitForRequest(/live-7\/events\/stream\?wait=20s$/);
  await page.clock.fastForward(45_000);
  await polled;
  await openStreams(1);
  await add('live-7', 'SideEffectRecorded');
  await shows(3);
});

test('50,000 events by the stream need no more memory than by pages of the history', async (t) => {
  const { page, asked, shows } = await watch('live-8');
  await openStreams(1);
  const heap = async () => { await page.evaluate(() => globalThis.gc()); return page.evaluate(() => performance.memory.usedJSHeapSize); };
  await add('live-8', 'SideEffectRecorded', 49_998);
  await shows(50_000);
  const streamed = await heap();
  assert.ok(asked.history.length <= 2, JSON.stringify(asked.history));
  assert.ok(await page.locator('.events .row').count() < 120);
  await page.reload();
  await shows(50_000);
  const read = await heap();
  t.diagnostic(`50,000 events: ${Math.round(streamed / 1e6)} MB by the stream, ${Math.round(read / 1e6)} MB by pages`);
  assert.ok(streamed < 1.25 * read + 5e6, `${streamed} and ${read} bytes`);
});
