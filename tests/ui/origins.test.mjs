import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { browse, open, proxy, serve } from './browser.mjs';

// A document of another origin, and a browser that resolves rebound.example to this machine.
let evil;
let browser;
const stop = [];
const bases = {};
before(async () => {
  evil = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<title>evil</title><form method="post"></form>'));
  evil.listen(0, '127.0.0.1');
  await once(evil, 'listening');
  browser = await browse('--host-resolver-rules=MAP rebound.example 127.0.0.1');
  const [guarded, open] = [await serve(), await serve({ PERDURE_UNGUARDED: '1' })];
  const proxied = await proxy(open.base);
  Object.assign(bases, { 'the listener': guarded.base, 'the proxy': proxied.base });
  stop.push(guarded.stop, proxied.stop, open.stop);
});
after(async () => { await browser?.close(); evil?.close(); stop.forEach((end) => end()); });

const status = async (url) => (await fetch(url)).status;
const stateOf = async (base, id) => (await fetch(`${base}/v1/instances/${id}?pending=false`)).json();

for (const [from, host] of [['another port', '127.0.0.1'], ['another site', 'localhost']]) {
  for (const at of ['the listener', 'the proxy']) {
    test(`a document of ${from} cannot read or change anything through ${at}`, async () => {
      const before = { 'order-8': await stateOf(bases[at], 'order-8'), 'charge-31': await stateOf(bases[at], 'charge-31') };
      const page = await browser.newPage();
      await page.goto(`http://${host}:${evil.address().port}/`);
      const read = await page.evaluate(async (base) => {
        const send = (path, init) => fetch(base + path, { mode: 'no-cors', ...init }).then((r) => r.type, String);
        const types = [
          await send('/v1/instances/charge-31/cancel', { method: 'POST' }),
          await send('/v1/instances/order-8/terminate', { method: 'POST', body: new Blob(['{"message":"not yours"}']) }),
          await send('/v1/orchestrations/ship', { method: 'POST', body: new Blob(['{"instanceId":"by-evil"}']) }),
          await send('/v1/orchestrations/ship', { method: 'POST', body: '{"instanceId":"by-evil"}' }),
        ];
        const cors = (init) => fetch(`${base}/v1/orchestrations/ship`, init).then((r) => r.text(), () => '');
        const read = await cors({}) + await cors({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"instanceId":"by-evil"}' });
        return [types, read];
      }, bases[at]);
      assert.deepEqual(read, [['opaque', 'opaque', 'opaque', 'opaque'], '']);
      await page.evaluate((action) => { document.forms[0].action = action; document.forms[0].submit(); }, `${bases[at]}/v1/instances/order-8/cancel`);
      await page.waitForURL(/cancel$/);
      assert.match(await page.locator('body').innerText(), /forbidden_origin/);
      assert.equal(await status(`${bases[at]}/v1/instances/by-evil`), 404);
      for (const id of ['order-8', 'charge-31']) assert.deepEqual(await stateOf(bases[at], id), before[id]);
      await page.close();
    });
  }
}

for (const at of ['the listener', 'the proxy']) {
  test(`a document cannot read anything through ${at} after DNS rebinding`, async () => {
    const page = await browser.newPage();
    const rebound = bases[at].replace('127.0.0.1', 'rebound.example');
    for (const path of ['/v1/instances', '/ui']) {
      const response = await page.goto(rebound + path);
      assert.equal(response.status(), 421);
      assert.match(await response.text(), /forbidden_host/);
    }
    await page.close();
  });

  test(`the web UI reads and changes instances through ${at}`, async () => {
    const { page, wrong, close } = await open(browser, bases[at], '?instance=order-8');
    await page.locator('.timeline .said').first().waitFor();
    const cancelled = page.waitForResponse((r) => r.url().endsWith('/v1/instances/order-8/cancel'));
    await page.getByRole('button', { name: 'Cancel …', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: /^Cancel/ }).last().click();
    assert.equal((await cancelled).status(), 202);
    assert.deepEqual(wrong, []);
    await close();
  });
}
