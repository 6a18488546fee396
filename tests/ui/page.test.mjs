import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { browse, open, serve, violations } from './browser.mjs';

let server;
let browser;
before(async () => { server = await serve(); browser = await browse(); });
after(async () => { await browser?.close(); server?.stop(); });

const view = (path, how) => open(browser, server.base, path, how);
const views = {
  list: ['', '.instances .row a.id'], timeline: ['?instance=order-7', '.timeline .said.off'], events: ['?instance=order-7&tab=events', '.events .row'],
  pending: ['?instance=order-8&tab=pending', '.pending .row'], cancellations: ['?instance=order-7&tab=cancellations', '.cancels .row'], family: ['?instance=ship-order-7&tab=family', '.tree a'],
  data: ['?instance=order-7&tab=data', '#panel pre.json'], blocked: ['?instance=order-9', '.sides'], paused: ['?instance=order-10', '#paused'], failed: ['?instance=charge-31', '.hero .note.bad'], letters: ['?dead', '.letters .row'],
  compact: ['?instance=order-7&tab=events&compact', '.events .row'], hub: ['?hub', '.columns table'], schedules: ['?schedules', '.schedules .row'], entities: ['?entities', '.entities .row'], wrong: ['?q=staus:failed', '.search .wrong'],
  purged: ['?instance=nobody', '.note.bad'], executions: ['?instance=poller&tab=family', '.tree a'], paging: ['?q=status:terminated', '.instances .row'],
};

// more chooses an action of the menu for rare and destructive ones.
async function more(page, name) {
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('button', { name, exact: true }).click();
}

// Every view works with a screen reader, in dark mode and on a phone.
for (const [name, how] of Object.entries({ light: {}, dark: { dark: true }, phone: { width: 390, height: 844 } })) {
  test(`every view, ${name}: no axe violations, no browser errors, no horizontal overflow`, async () => {
    for (const [what, [path, ready]] of Object.entries(views)) {
      const { page, wrong, close } = await view(path, how);
      await page.locator(ready).first().waitFor();
      assert.deepEqual(await violations(page), [], `${what}, ${name}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${what}, ${name}: ${wide} px too wide`);
      if (what === 'timeline') {
        await page.locator('.timeline .row').nth(4).click();
        await page.locator('aside.detail .steps').waitFor();
        assert.deepEqual(await violations(page), [], `details, ${name}`);
        await page.getByRole('button', { name: 'More actions' }).click();
        assert.deepEqual(await violations(page), [], `menu, ${name}`);
        await page.getByRole('button', { name: 'Terminate …' }).click();
        await page.getByRole('dialog').waitFor();
        assert.deepEqual(await violations(page), [], `dialog, ${name}`);
      }
      if (what === 'list') {
        await page.getByRole('combobox').click();
        await page.getByRole('option').first().waitFor();
        assert.deepEqual(await violations(page), [], `suggestions, ${name}`);
        await page.keyboard.press('Escape');
        await page.locator('.instances .row input').first().check();
        await page.getByText('1 selected').waitFor();
        assert.deepEqual(await violations(page), [], `selection, ${name}`);
      }
      if (what === 'schedules' || what === 'entities') {
        await page.locator('.grid .row').first().click();
        await page.locator('aside.detail').waitFor();
        if (what === 'entities') await page.locator('aside.detail pre.json').waitFor();
        assert.deepEqual(await violations(page), [], `details of ${what}, ${name}`);
      }
      if (what === 'letters') {
        await page.locator('.letters .row').nth(2).click();
        await page.locator('aside.detail pre.json').waitFor();
        assert.deepEqual(await violations(page), [], `dead letter, ${name}`);
        await page.getByRole('button', { name: 'Redrive all …' }).click();
        await page.getByRole('button', { name: /^Redrive [\d,]+/ }).waitFor();
        assert.deepEqual(await violations(page), [], `dead letter dialog, ${name}`);
      }
      assert.deepEqual(wrong.filter((w) => !['purged', 'letters'].includes(what) || !w.includes('404')), [], `${what}, ${name}`); // instances that do not exist
      await close();
    }
  });
}

const search = (page) => page.getByRole('combobox', { name: 'Search instances' });
const queryIn = (page) => new URL(page.url()).searchParams.get('q');

test('the query is in the URL and survives reload and back navigation', async () => {
  const { page, wrong, close } = await view('');
  await page.locator('.instances .row').first().waitFor();
  await search(page).fill('name:charge tag:region=eu tag:customer=6 version:1.1.0');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.waitForURL(/name/);
  assert.equal(queryIn(page), 'name:charge tag:region=eu tag:customer=6 version:1.1.0');
  await page.getByText(/^\d+ matching instances?$/).waitFor();
  for (const row of await page.locator('.instances .row:visible').all()) {
    assert.match(await row.locator('.cell').nth(3).innerText(), /^charge$/);
    assert.match(await row.locator('.cell').nth(7).innerText(), /customer=6 region=eu/);
  }
  await page.reload();
  assert.equal(await search(page).inputValue(), 'name:charge tag:region=eu tag:customer=6 version:1.1.0');
  await page.getByRole('link', { name: /^▲?\s*Blocked/ }).click();
  await page.waitForURL(/status/);
  assert.equal(queryIn(page), 'status:blocked name:charge tag:region=eu tag:customer=6 version:1.1.0', 'a count keeps the other terms');
  await page.goBack();
  assert.equal(await search(page).inputValue(), 'name:charge tag:region=eu tag:customer=6 version:1.1.0');
  await page.goBack();
  await page.getByText('200 or more instances').waitFor();
  assert.deepEqual(wrong, []);
  await close();
});

test('the counts are bounded, and each one links to its instances', async () => {
  const { page, close } = await view('');
  const count = (name) => page.getByRole('navigation', { name: 'Instances by status' }).getByRole('link', { name });
  await count('Completed 1,000+').waitFor();
  await count('Blocked 1').waitFor();
  await count('Cancelling 0').waitFor();
  const failed = await count('Failed').innerText();
  await count('Failed').click();
  await page.waitForURL(/status/);
  assert.equal(queryIn(page), 'status:failed');
  assert.equal(await count('Failed').getAttribute('aria-current'), 'true');
  await page.locator('.instances .row').first().focus();
  await page.keyboard.press('End');
  await page.getByText(`${failed.match(/[\d,]+$/)[0]} matching instances`).waitFor();
  await close();
});

test('the search field completes terms with the keyboard and shows errors without a request', async () => {
  const { page, close } = await view('');
  await page.locator('.instances .row').first().waitFor();
  const asked = [];
  page.on('request', (r) => { if (/instances\?/.test(r.url())) asked.push(r.url()); });
  await page.getByRole('button', { name: 'Updating' }).click();
  await search(page).press('s');
  await page.getByRole('option', { name: /^status:/ }).waitFor();
  await page.keyboard.press('ArrowDown');
  assert.equal(await search(page).getAttribute('aria-activedescendant'), 'option-0');
  await page.keyboard.press('Enter');
  assert.equal(await search(page).inputValue(), 'status:');
  await page.keyboard.type('pau');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  assert.equal(await search(page).inputValue(), 'status:paused ');
  await page.keyboard.type('started:yesterday');
  await page.keyboard.press('Enter');
  await page.locator('.search .wrong', { hasText: '“yesterday” is not a time' }).waitFor();
  assert.equal(new URL(page.url()).search, '');
  await search(page).fill('status:paused started:<1d');
  assert.equal(await page.locator('.search .wrong').innerText(), '');
  await page.keyboard.press('Enter');
  await page.getByText('1 matching instance').waitFor();
  await search(page).fill('order-9');
  await page.keyboard.press('Enter');
  await page.locator('h1', { hasText: 'order-9' }).waitFor();
  assert.ok(asked.every((url) => !url.includes('yesterday')));
  await close();
});

test('a prefix selects loaded rows and disables actions on matching instances', async () => {
  const { page, close } = await view('?q=name:ship* order-099*');
  await page.locator('.instances .row').first().waitFor();
  for (const row of await page.locator('.instances .row:visible').all()) assert.match(await row.innerText(), /order-099\d\d[^]*ship/);
  assert.ok(await page.getByRole('button', { name: 'Cancel matching …' }).isDisabled());
  await close();
});

test('rows show relative times with the exact time as title, and the phases', async () => {
  const { page, close } = await view('?q=status:paused');
  const row = page.locator('.instances .row').first();
  await row.waitFor();
  assert.match(await row.locator('.cell').nth(5).innerText(), /^[3-5]\d min ago$/);
  assert.match(await row.locator('.cell').nth(5).getAttribute('title'), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(.*Z\)$/);
  assert.match(await row.locator('.cell').nth(6).getAttribute('title'), /^20 min.* running, \d\d min.* paused$/);
  await close();
});

test('selected instances are counted before an action, and skipped ones are named', async () => {
  const { page, close } = await view('');
  await page.locator('.instances .row', { hasText: 'order-8' }).waitFor();
  const sent = [];
  await page.route(/\/(cancel|pause)$/, (r) => { sent.push([new URL(r.request().url()).pathname, r.request().postDataJSON()]); return r.fulfill(sent.length === 1 ? json(503, { detail: 'the hub is busy' }) : json(202, {})); });
  await page.getByLabel('Select order-8', { exact: true }).check();
  await page.getByLabel('Select charge-31').check();
  await page.getByText('2 selected').waitFor();
  await page.getByRole('button', { name: 'Cancel 2 …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('1 instance to cancel, 1 skipped (ended)').waitFor();
  assert.deepEqual(sent, []);
  await dialog.getByLabel(/^Message/).fill('test');
  await dialog.getByRole('button', { name: 'Cancel 1 instance' }).click();
  await dialog.getByText('order-8: the hub is busy').waitFor();
  await dialog.getByRole('button', { name: 'Cancel 1 instance' }).click();
  await page.getByText('1 instance: cancellation requested').waitFor();
  assert.deepEqual(sent, [['/v1/instances/order-8/cancel', { message: 'test' }], ['/v1/instances/order-8/cancel', { message: 'test' }]]);
  assert.equal(await page.getByText('2 selected').count(), 0, 'the selection ends');

  await page.locator('.instances .row').first().focus();
  await page.keyboard.press(' ');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Shift+ ');
  await page.getByText('3 selected').waitFor();
  await page.getByRole('button', { name: 'Clear selection' }).click();
  await page.getByLabel('Select all loaded rows').check();
  await page.getByText(/^[2-9]\d\d selected/).waitFor();
  await close();
});

test('scrolling through 10,000 instances loads them in pages and renders only visible rows', async () => {
  const { page, close } = await view('');
  const grid = page.getByRole('grid', { name: 'Instances' });
  await grid.getByRole('row').nth(2).waitFor();
  await page.locator('.instances .row').first().focus();
  for (let rows = 0; rows < 10_001;) {
    await page.keyboard.press('End');
    await page.waitForFunction((before) => Number(document.querySelector('[role=grid]').getAttribute('aria-rowcount')) > before, rows || 201);
    rows = Number(await grid.getAttribute('aria-rowcount'));
  }
  await page.keyboard.press('End');
  await page.getByText(/^10,00\d instances$/).waitFor();
  assert.ok(await page.locator('.instances .row').count() < 120);
  assert.match(await page.locator('.instances .row:focus').innerText(), /schedule:sync/);
  await close();
});

test('the list shows a new instance without a reload', async () => {
  const { page, close } = await view('?name=ship');
  await page.locator('.instances .row').first().waitFor();
  const made = await fetch(`${server.base}/v1/orchestrations/ship`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"instanceId":"just-now"}' });
  assert.equal(made.status, 202);
  await page.locator('a.id', { hasText: 'just-now' }).waitFor({ timeout: 15_000 });
  await close();
});

test('a bulk purge shows a preview, creates a job with the filter and lists the job', async () => {
  const { page, close } = await view('?name=report&status=Completed&tag=region%3Dus'); // parameters of earlier releases
  await page.locator('.instances .row').first().waitFor();
  await more(page, 'Purge matching …');
  const dialog = page.getByRole('dialog');
  const button = dialog.getByRole('button', { name: /^Purge [\d,]+$/ });
  await button.waitFor();
  const [request] = await Promise.all([page.waitForRequest((r) => r.url().endsWith('/v1/jobs') && r.method() === 'POST'), button.click()]);
  const { startedBefore, ...filter } = request.postDataJSON().filter;
  assert.deepEqual([request.postDataJSON().operation, filter], ['purge', { name: 'report', statuses: ['Completed'], tags: { region: 'us' } }]);
  assert.ok(Date.parse(startedBefore) <= Date.now(), 'the job excludes instances that start after the preview');
  await page.locator('table.jobs td', { hasText: 'purge' }).first().waitFor();
  await close();
});

test('instance actions ask for confirmation and send nothing before it', async () => {
  const { page, close } = await view('?instance=order-8');
  const sent = [];
  page.on('request', (r) => { if (r.method() !== 'GET') sent.push(`${r.method()} ${new URL(r.url()).pathname} ${r.postData() || ''}`); });
  const act = (name) => page.getByRole('button', { name, exact: true }).click();
  await page.locator('.timeline .said').first().waitFor();
  for (const name of ['Cancel …', 'Terminate …', 'Purge …', 'Raise event …']) {
    const inMenu = ['Terminate …', 'Purge …'].includes(name);
    if (inMenu) await more(page, name); else await act(name);
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), inMenu ? 'More ▾' : name, 'the focus returns');
  }
  assert.deepEqual(sent, []);
  await act('Cancel …');
  await page.getByLabel(/^Message/).fill('the customer asked');
  await page.keyboard.press('Enter');
  await page.getByText('Cancellation requested').waitFor();
  await act('Raise event …');
  await page.getByLabel('Event name', { exact: true }).fill('a/b');
  await page.getByLabel(/^Data/).fill('{"a":');
  await page.getByRole('button', { name: 'Raise event', exact: true }).click();
  await page.getByText('The data is not JSON').waitFor();
  await page.getByLabel(/^Data/).fill('{"a":1}');
  await page.getByRole('button', { name: 'Raise event', exact: true }).click();
  await page.getByText('Event accepted').waitFor();
  await page.locator('.timeline .row', { hasText: 'printLabel' }).click();
  await page.getByRole('button', { name: 'Cancel activity …' }).click();
  await page.getByRole('button', { name: 'Cancel activity', exact: true }).click();
  await page.getByText('Cancellation requested').last().waitFor();
  assert.deepEqual(sent, ['POST /v1/instances/order-8/cancel {"message":"the customer asked"}', 'POST /v1/instances/order-8/events/~YS9i {"a":1}', 'POST /v1/instances/order-8/activities/4/cancel {"message":""}']);
  await close();
});

test('a pending child carries its own cause to its parent, with a link in the problem and in the rows', async () => {
  const { page, close } = await view('?schedules');
  let asked = 0;
  await page.route(/ship-order-7\?limit=20/, async (r) => {
    asked++;
    const s = await (await r.fetch()).json();
    Object.assign(s.pending.items[0], { noWorker: true, workerSeenAt: new Date(Date.now() - 7_260_000).toISOString() });
    return r.fulfill(json(200, s));
  });
  await page.goto(`${server.base}/ui?instance=order-7`);
  const problem = page.locator('.problems li', { hasText: 'ship #19' });
  await problem.waitFor();
  const cause = /no worker runs bookCourier \(queue default, last worker report (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d, 2 h ago\)/.source;
  assert.match(await problem.innerText(), new RegExp(`^⤷ ship #19 ${cause} · no deadline → ship-order-7$`));
  assert.match(await page.locator('.now-doing').innerText(), /, waiting for activity trackParcel and sub-orchestration ship, no deadline\.$/); // the problem has the cause
  const row = page.locator('.timeline .row', { hasText: 'ship-order-7' });
  assert.match(await row.locator('.said.bad').innerText(), new RegExp(`^${cause} → ship-order-7$`));
  await page.waitForResponse((r) => r.url().endsWith('order-7?pending=false'));
  assert.ok(asked < 3, `${asked} requests`);
  await page.getByRole('tab', { name: /^Pending/ }).click();
  await page.locator('.pending .row', { hasText: 'no worker runs bookCourier' }).getByRole('link', { name: 'ship-order-7' }).click();
  await page.locator('h1', { hasText: 'ship-order-7' }).waitFor();
  await close();
});

test('the cause of a child that waits for its own child is the cause of that child', async () => {
  const { page, close } = await view('?schedules');
  const since = new Date(Date.now() - 60_000).toISOString();
  const of = async (r, item) => {
    const s = await (await r.fetch({ url: `${server.base}/v1/instances/ship-order-7?limit=20` })).json();
    return r.fulfill(json(200, { ...s, pending: { total: 1, items: [{ id: 3, since, ...item }] } }));
  };
  await page.route(/ship-order-7\?limit=20/, (r) => of(r, { what: 'sub_orchestration', name: 'label', childId: 'deep-1' }));
  await page.route(/deep-1\?limit=20/, (r) => of(r, { what: 'activity', name: 'printLabel', queue: 'printers', noWorker: true }));
  await page.goto(`${server.base}/ui?instance=order-7`);
  const text = 'label #3 → deep-1: no worker runs printLabel (queue printers, no worker has ever reported)';
  await page.locator('.problems li', { hasText: `ship #19 ${text} · no deadline` }).waitFor();
  assert.equal(await page.locator('.timeline .row', { hasText: 'ship-order-7' }).locator('.said.bad').innerText(), `${text} → ship-order-7`);
  await close();
});

test('the header counts the problems and the slow activities that it does not list', async () => {
  const { page, close } = await view('?schedules');
  await page.route(/order-8\?limit=200/, async (r) => {
    const s = await (await r.fetch()).json();
    const { lastError, ...slow } = s.pending.items.find((p) => p.lastError);
    const since = new Date(Date.now() - 3_600_000).toISOString();
    s.pending.items = [...Array(5).fill({ ...slow, lastError }), ...Array(2).fill({ ...slow, since })];
    return r.fulfill(json(200, s));
  });
  await page.goto(`${server.base}/ui?instance=order-8`);
  await page.locator('.problems li', { hasText: 'more problem' }).waitFor();
  assert.deepEqual((await page.locator('.problems li').allInnerTexts()).slice(4), ['and 1 more problem: see Events, “Only failures”', 'and 2 more pending activities: see Pending']);
  await close();
});

test('an overdue attempt states since when, and a long status of a pending task wraps', async () => {
  const { page, close } = await view('?schedules');
  await page.route(/order-8\?limit=200/, async (r) => {
    const s = await (await r.fetch()).json();
    const [charge] = s.pending.items;
    charge.maxAttempts = 8;
    charge.nextTryAt = new Date(Date.now() - 120_000).toISOString();
    charge.lastError.message = `the bank did not answer in 10 s ${'and again '.repeat(9)}`;
    return r.fulfill(json(200, s));
  });
  await page.goto(`${server.base}/ui?instance=order-8&tab=pending`);
  assert.equal(await page.locator('.pending .row', { hasText: 'chargeCard' }).locator('.cell').nth(3).innerText(), '5 of 8');
  const cell = page.locator('.pending .row', { hasText: 'chargeCard' }).locator('.cell').nth(4);
  await cell.waitFor();
  assert.match(await cell.innerText(), /^attempt 5 due since (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d \(2 min ago\) · last error/);
  assert.ok(await cell.evaluate((el) => el.clientHeight >= 30 && el.scrollWidth <= el.clientWidth), 'the text has several lines');
  await close();
});

test('a cancelled instance shows who cancelled it, when and why, like a terminated one', async () => {
  const [{ instanceId }] = (await (await fetch(`${server.base}/v1/instances?status=Cancelled&limit=1`)).json()).items;
  const facts = (page) => page.locator('.facts').innerText();
  const { page, close } = await view(`?instance=${instanceId}`);
  await page.getByText('Reason', { exact: true }).waitFor();
  assert.match(await page.locator('.now-doing').innerText(), /^Cancelled after .* ago: “the customer asked”\.$/);
  assert.match(await facts(page), /Reason\s+the customer asked/);
  assert.doesNotMatch(await facts(page), /Cancelled by/, 'nothing is said about what is not recorded');
  assert.equal(await page.locator('.timeline .said').first().innerText(), 'cancelled: “the customer asked”');
  await page.getByRole('tab', { name: 'Cancellations', exact: true }).click();
  await page.getByText('The history has no request for the cancellation').waitFor();
  assert.equal(await page.getByRole('tab', { name: /^Cancellations/ }).innerText(), 'Cancellations', 'no count on a cancelled instance');
  await page.route(/\/history\?/, async (r) => {
    const h = await (await r.fetch()).json();
    const last = h.items.pop();
    h.items.push({ id: last.id, kind: 'CancelRequested', time: last.time, reason: 'requested', message: 'too slow', requestedBy: 'arn:aws:sts::123456789012:assumed-role/Operators/alice' }, { ...last, id: last.id + 1 });
    return r.fulfill(json(200, h));
  });
  await page.getByRole('tab', { name: 'Timeline' }).click();
  await page.reload();
  await page.getByText('Cancelled by', { exact: true }).waitFor();
  assert.match(await page.locator('.now-doing').innerText(), /, by alice: “too slow”\.$/);
  assert.match(await facts(page), /Cancelled by\s+alice\s+Cancel requested\s+\d{4}-[^]*Reason\s+too slow/);
  await close();

  const other = await view(`?instance=${encodeURIComponent('report/2026 <q3>')}`);
  await other.page.locator('.said.bad').first().waitFor();
  assert.match(await other.page.locator('.now-doing').innerText(), /^Terminated after .* ago, by alice: “not needed any more”\.$/);
  assert.match(await facts(other.page), /Terminated by\s+alice\s+Reason\s+not needed any more/);
  assert.equal(await other.page.locator('.said.bad').first().innerText(), 'terminated by alice: not needed any more');
  assert.equal(await other.page.locator('.hero .note.bad').count(), 0, 'the reason is not repeated');
  await other.close();
});

test('before the history has arrived, a view states no times and counts', async () => {
  const { page, close } = await view('');
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  await page.route(/\/history\?|events\/stream/, async (r) => { await held; return r.continue(); });
  await page.goto(`${server.base}/ui?instance=charge-31`);
  await page.getByRole('heading', { name: 'charge-31' }).waitFor();
  await page.locator('#panel').getByText('Loading …').waitFor();
  assert.equal(await page.locator('#tab-events').innerText(), 'Events');
  assert.equal(await page.locator('#panel .row').count(), 0);
  release();
  await page.locator('#panel .row').first().waitFor();
  assert.match(await page.locator('#tab-events').innerText(), /^Events \(\d+\)$/);
  await close();
});

test('the timeline has dates on an axis of more than a day, and a duration in each row', async () => {
  const { page, close } = await view('?instance=order-7');
  await page.locator('.timeline .said.off').first().waitFor();
  const ticks = await page.locator('.axis .tick').allInnerTexts();
  assert.ok(ticks.length > 1);
  for (const t of ticks) assert.match(t, /^\d\d-\d\d \d\d:\d\d:\d\d$/);
  const bad = await page.evaluate(() => {
    const axis = document.querySelector('.axis').getBoundingClientRect();
    const now = document.querySelector('.axis .now').getBoundingClientRect();
    return [...document.querySelectorAll('.axis .tick')].map((el) => el.getBoundingClientRect()).filter((b) => b.right > axis.right + 1 || b.left < axis.left - 1 || (b.right > now.left && b.left < now.right)).length;
  });
  assert.equal(bad, 0, 'no label is clipped or covers “now”');
  const took = async (name) => page.locator('.timeline .row', { has: page.locator('.what', { hasText: name }) }).locator('.took').innerText();
  assert.deepEqual([await took('quoteSlow'), await took('quoteFast')], ['6.0 s', '5.9 s']);
  await page.goto(`${server.base}/ui?instance=charge-31`);
  await page.locator('.timeline .row', { hasText: 'chargeCard' }).locator('.seg.tried').waitFor();
  assert.equal(await took('chargeCard'), '40 s');
  await page.getByText(/^40 s active, \d/).waitFor();
  assert.match(await page.locator('.facts').innerText(), /Created to end\s+\d+ s/);
  await page.goto(`${server.base}/ui?instance=order-8`);
  await page.locator('.timeline .said.bad').first().waitFor();
  assert.match(await took('printLabel'), /^\d+ min/);
  await close();
});

test('the timeline and the Cancellations tab show the steps of a cancellation', async () => {
  const { page, close } = await view('?instance=order-7');
  const row = page.locator('.timeline .row', { hasText: 'quoteSlow' });
  await row.locator('.said').filter({ hasText: 'stopped 1.5 s later' }).waitFor();
  assert.equal(await row.locator('.said').innerText(), 'Cancelled: lost a select; the worker saw it after 1.3 s and stopped 1.5 s later');
  assert.equal((await row.locator('.mark').allInnerTexts()).join(''), '◆◇■');
  assert.equal(await row.locator('.seg.unseen').count() + await row.locator('.seg.seen').count(), 2);
  const mail = page.locator('.timeline .row', { hasText: 'sendMail' });
  assert.match(await mail.getAttribute('aria-label'), /cancelled, .*Cancelled by alice: “the mail server hangs”; the worker saw it after 4.0 s and stopped 5.0 s later/);
  await page.getByRole('tab', { name: /^Cancellations \(4\)/ }).click();
  assert.match(await page.locator('.cancels .row').first().innerText(), /quoteOther.*Cancelled: lost a select; the worker saw it after 1.0 s and did not stop, so it was abandoned 15 s later/s, 'tasks that did not stop come first');
  await page.locator('.cancels .row', { hasText: 'sendMail' }).click();
  assert.match(await page.locator('aside.detail .steps').innerText(), /Cancelled[^]*by alice “the mail server hangs”[^]*Observed[^]*\+4.0 s[^]*Stopped[^]*\+5.0 s/);
  await close();
});

test('labels of the timeline never cover a bar', async () => {
  for (const how of [{}, { width: 390, height: 844 }]) {
    const { page, close } = await view('?instance=order-7', how);
    await page.locator('.timeline .said.off').first().waitFor();
    const covered = await page.evaluate(() => {
      const boxes = (row, what) => [...row.querySelectorAll(what)].map((el) => el.getBoundingClientRect());
      return [...document.querySelectorAll('.timeline .row')].some((row) => boxes(row, '.said, .what').some((a) => boxes(row, '.seg, .mark').some((b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)));
    });
    assert.equal(covered, false);
    await close();
  }
});

test('the header says what the instance is doing, and shows problems, input and output', async () => {
  const doing = async (id) => {
    const { page, close } = await view(`?instance=${id}`);
    await page.getByRole('tab', { name: /^Pending \(\d/ }).waitFor();
    await page.locator('.strip, .hero .note').first().waitFor({ state: 'attached' });
    const texts = [await page.locator('.now-doing').innerText(), (await page.locator('.problems').allInnerTexts()).join(), await page.locator('.strip').innerText()];
    await close();
    return texts;
  };
  const [waiting, problems] = await doing('order-8');
  assert.match(waiting, /^Running for \d\d min.*, waiting for the next attempt of chargeCard in \d+ min \(\d\d:\d\d:\d\d\), no deadline; no worker runs printLabel \(queue printers, no worker has ever reported\), 4 retries of chargeCard\.$/);
  assert.match(problems, /printLabel #4 waiting in queue printers.* · no deadline[^]*chargeCard #3 attempt 5 in \d+ min \(\d\d:\d\d:\d\d\) · last error timeout: the bank did not answer in 10 s · no deadline/);
  const [running, slow, values] = await doing('order-7');
  assert.equal(running, 'Running for 1 d 1 h, waiting for activity trackParcel and sub-orchestration ship, no deadline.');
  assert.match(slow, /ship #19 activity bookCourier sent to queue default (\d\d s|\d min) ago, still queued or running without a report( \(last worker report there .* ago\))? · no deadline[^]*▶ trackParcel #22 heartbeat .* ago · no deadline/);
  assert.match(values, /Input[^]*"order": 7[^]*Custom status[^]*"stage": "shipping"/);
  const [failed, failures] = await doing('charge-31');
  assert.match(failed, /^Failed after 4\d s, .* ago: ActivityError: activity chargeCard failed/);
  assert.match(failures, /chargeCard #3 failed after 4\d s and 3 attempts: DeclinedError: the card was declined/);
  assert.match((await doing('order-10'))[0], /^Paused for \d\d min.* by alice/);
  assert.match((await doing('order-9'))[0], /^Blocked for \d\d min.*: the code does not match the history\.$/);
});

test('the timeline separates waiting from running, collapses idle time and zooms with keys', async () => {
  const { page, close } = await view('?instance=order-7');
  await page.getByText(/active, 1 d idle, 1 idle period collapsed/).waitFor();
  assert.ok(await page.locator('.timeline .row', { hasText: 'packed' }).locator('.seg.wait').count());
  assert.ok(await page.locator('.nowline').count() > 5);
  assert.equal(await page.locator('.axis .skipped').innerText(), '⋯ 1 d');
  const width = () => page.locator('.timeline .row', { hasText: 'sendMail' }).locator('.seg.work').evaluate((el) => el.getBoundingClientRect().width);
  const folded = await width();
  await page.locator('.timeline .row').nth(3).focus();
  await page.keyboard.press('+');
  for (let n = 0; n < 3; n++) await page.keyboard.press('ArrowLeft'); // the bar moves to the left while the instance runs
  assert.ok(await width() > folded * 1.3);
  await page.keyboard.press('0');
  assert.ok(Math.abs(await width() - folded) < 4);
  await page.getByLabel('Collapse idle time').uncheck();
  assert.ok(await width() < folded / 5, 'an expanded day takes most of the width');
  await close();
});

test('pending activities show attempt, last error, next attempt and a queue without workers', async () => {
  const { page, close } = await view('?instance=order-8&tab=pending');
  await page.locator('.pending .row').first().waitFor();
  const rows = await page.locator('.pending .row:visible').allInnerTexts();
  assert.match(rows[0], /chargeCard[\s\S]*5[\s\S]*attempt 5 in \d+ min \(\d\d:\d\d:\d\d\) · last error timeout: the bank did not answer in 10 s · no deadline/);
  assert.match(rows[1], /printLabel[\s\S]*waiting in queue printers, no worker has ever reported · no deadline/);
  await close();
});

test('events are filtered by kind and text, and the download is a complete history', async () => {
  const { page, close } = await view('?instance=order-7&tab=events');
  const rowcount = () => page.locator('[role=grid][aria-label=Events]').getAttribute('aria-rowcount');
  await page.getByRole('tab', { name: 'Events (22)' }).waitFor();
  await page.locator('.events .row').nth(8).waitFor();
  assert.equal(await rowcount(), '23');
  for (const kind of ['Activities', 'Timers', 'Children', 'External events', 'Turns', 'Other']) await page.getByLabel(kind, { exact: true }).uncheck();
  assert.equal(await rowcount(), '4'); // two cancelled activities and one cancelled timer
  await page.getByLabel('Activities').check();
  await page.getByLabel('Search events').fill('sendmail');
  assert.equal(await rowcount(), '2');
  await page.getByRole('button', { name: 'Compact' }).click();
  assert.match(await page.locator('.events .row').first().innerText(), /activity[^]*sendMail[^]*Cancelled by alice/, 'a task has one row');
  await page.getByLabel('Search events').fill('');
  await page.getByLabel('Only failures').check();
  assert.match(await page.locator('.events .empty').innerText(), /No matching events/);
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download JSON' }).click()]);
  const doc = JSON.parse(await readFile(await file.path(), 'utf8'));
  assert.deepEqual([doc.format, doc.instanceId, doc.executions[0].events.length, Object.keys(doc.executions[0].events[1]).join()], ['perdure.history/1', 'order-7', 22, 'id,kind,time,version,buildId']);
  await close();
});

test('a blocked instance shows the history, the current code and the next step', async () => {
  const { page, close } = await view('?instance=order-9');
  assert.match(await page.locator('.sides > div').first().innerText(), /History, event #6[\s\S]*chargeCard/);
  assert.match(await page.locator('.sides > div').last().innerText(), /Current code[\s\S]*authoriseCard/);
  await page.getByText('Next step:').waitFor();
  await page.getByRole('button', { name: 'Show event #6' }).click();
  await page.locator('aside.detail', { hasText: 'ActivityScheduled' }).waitFor();
  await close();
});

test('a paused instance shows who paused it, when and why, and Pause and Resume ask for confirmation', async () => {
  const { page, close } = await view('?instance=order-10');
  const note = page.locator('#paused');
  await note.waitFor();
  assert.match(await note.innerText(), /Paused[^]*since .* by alice: the carrier asks to wait once more/);
  assert.equal(await page.locator('.chip.Paused').count(), 1);
  const pauses = page.locator('.timeline .row').first().locator('.seg.paused');
  await pauses.nth(1).waitFor({ state: 'attached' }); // a row can appear before its bars
  assert.equal(await pauses.count(), 2);
  assert.match(await page.locator('.timeline .row').first().innerText(), /paused by alice/);
  assert.equal(await page.locator('.seg.blocked').count(), 0);
  assert.equal(await page.getByRole('button', { name: 'Pause …' }).count(), 0);
  const sent = [];
  page.on('request', (r) => { if (r.method() === 'POST') sent.push(`${new URL(r.url()).pathname} ${r.postData()}`); });
  await page.getByRole('button', { name: 'Resume …' }).click();
  await page.getByRole('button', { name: 'Go back' }).click();
  assert.deepEqual(sent, []);
  await page.getByRole('button', { name: 'Resume …' }).click();
  await page.getByLabel('Message (stored in the history)').fill('he is back');
  await page.getByRole('button', { name: 'Resume instance' }).click();
  await page.getByText('Resume requested').waitFor();
  await close();

  const other = await view('?instance=order-8');
  other.page.on('request', (r) => { if (r.method() === 'POST') sent.push(`${new URL(r.url()).pathname} ${r.postData()}`); });
  await other.page.getByRole('button', { name: 'Pause …' }).click();
  await other.page.getByRole('button', { name: 'Pause instance' }).click();
  await other.page.getByText('Pause requested').waitFor();
  assert.deepEqual(sent, ['/v1/instances/order-10/resume {"message":"he is back"}', '/v1/instances/order-8/pause {"message":""}']);
  await other.close();
});

test('the Relationships tab shows the parents and loads the children', async () => {
  const { page, close } = await view('?instance=ship-order-7&tab=family');
  await page.locator('.tree').getByRole('link', { name: 'order-7', exact: true }).click();
  await page.getByRole('tab', { name: 'Relationships (1)' }).click();
  await page.getByRole('button', { name: 'Show children of ship-order-7' }).click();
  await page.getByText('no children').waitFor();
  await page.getByRole('link', { name: 'List children' }).click();
  await page.locator('.instances a.id', { hasText: 'ship-order-7' }).waitFor();
  assert.equal(queryIn(page), 'parent:order-7');
  await page.goto(`${server.base}/ui?instance=poller&tab=family`);
  await page.locator('.tree').getByRole('link', { name: 'execution 1' }).click();
  await page.waitForURL(/execution=/);
  await close();
});

test('the list, the tabs and the details work with the keyboard', async () => {
  const { page, close } = await view('?name=charge');
  await page.locator('.instances .row').first().waitFor();
  for (let n = 0; n < 40 && !(await page.evaluate(() => document.activeElement.matches('.instances .row'))); n++) await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  assert.match(await page.evaluate(() => document.activeElement.innerText), /charge-31/);
  await page.keyboard.press('Enter');
  await page.waitForURL(/instance=charge-31/);
  await page.locator('.timeline .row').nth(1).waitFor();
  await page.getByRole('tab', { name: 'Timeline' }).focus();
  await page.keyboard.press('ArrowRight');
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^Events/);
  await page.locator('.events .row').first().waitFor();
  await page.keyboard.press('ArrowLeft');
  for (let n = 0; n < 20 && !(await page.evaluate(() => document.activeElement.matches('.timeline .row'))); n++) await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.locator('aside.detail', { hasText: 'chargeCard' }).waitFor();
  assert.ok(await page.evaluate(() => document.activeElement.matches('aside.detail')), 'the details have the focus');
  await page.keyboard.press('Escape');
  assert.ok(await page.evaluate(() => document.activeElement.matches('.timeline .row')), 'the focus returns to the row');
  await close();
});

test('a refresh keeps the focus', async () => {
  const { page, close } = await view('?instance=order-7');
  const answered = () => page.waitForResponse((r) => r.url().endsWith('order-7?pending=false'));
  await page.locator('.timeline .said.off').first().waitFor();
  await page.locator('.timeline .row').nth(3).focus();
  await answered();
  await answered(); // the first response is rendered by now
  assert.match(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), /^activity quoteFast number 5/);
  await page.getByRole('tab', { name: /^Events/ }).click();
  await page.getByLabel('Search events').fill('quote');
  await answered();
  await answered();
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Search events');
  await close();
});

test('IDs with special characters open, and an unknown ID shows an error', async () => {
  const { page, close } = await view('?status=Terminated');
  await page.getByRole('link', { name: 'report/2026 <q3>' }).click();
  await page.getByRole('heading', { name: 'report/2026 <q3>' }).waitFor();
  await page.getByText('not needed any more').first().waitFor();
  await page.goto(`${server.base}/ui?instance=nobody`);
  await page.getByText('Instance or execution not found').waitFor();
  await page.getByRole('link', { name: 'All instances' }).waitFor();
  assert.equal(await page.getByRole('tab').count(), 0);
  assert.equal(await page.locator('.timeline').isVisible(), false);
  assert.ok(!/\d d \d/.test(await page.locator('main').innerText()), 'no duration since 1970');
  await close();
});

test('an earlier execution can be selected', async () => {
  const { page, close } = await view('?instance=poller');
  await page.getByLabel('Execution').focus();
  await page.getByRole('option', { name: /^execution 1,/ }).waitFor({ state: 'attached' });
  await page.getByLabel('Execution').selectOption({ index: 1 });
  await page.waitForURL(/execution=/);
  await page.getByRole('tab', { name: 'Events (3)' }).waitFor();
  await close();
});

const json = (status, body) => ({ status, contentType: 'application/json', body: JSON.stringify(body) });

test('a held Enter key confirms nothing, and a destructive dialog focuses its dismiss button', async () => {
  const { page, close } = await view('?instance=order-8');
  const sent = [];
  page.on('request', (r) => { if (r.method() !== 'GET') sent.push(r.url()); });
  await page.route(/\/(cancel|terminate)$/, (r) => r.fulfill(json(202, {})));
  await page.locator('.timeline .said').first().waitFor();
  for (const name of ['Cancel …', 'Terminate …']) {
    if (name === 'Terminate …') await page.getByRole('button', { name: 'More actions' }).press('Enter');
    await page.getByRole('button', { name, exact: true }).focus();
    for (let i = 0; i < 5; i++) await page.keyboard.down('Enter'); // all but the first are repeats
    await page.keyboard.up('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.waitForFunction(() => document.activeElement?.tagName === 'BUTTON'); // the focus returns, which would close a menu that opens before
  }
  await page.getByRole('button', { name: 'More actions' }).press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Terminate …', 'the menu moves the focus to its first action');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Go back');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.deepEqual(sent, []);
  await close();
});

test('a dialog cannot be closed during its request, and a sign-in response is shown as an error', async () => {
  const { page, close } = await view('?instance=order-8');
  await page.locator('.timeline .said').first().waitFor();
  let answer;
  await page.route(/\/terminate$/, (r) => new Promise((done) => { answer = () => { r.fulfill({ status: 200, contentType: 'text/html', body: '<html>sign in</html>' }); done(); }; }));
  await more(page, 'Terminate …');
  const [request] = await Promise.all([page.waitForRequest(/terminate$/), page.getByRole('button', { name: 'Terminate instance' }).click()]);
  assert.equal(request.method(), 'POST');
  const keep = page.getByRole('button', { name: 'Go back' });
  assert.ok(await keep.isDisabled());
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  assert.equal(await page.getByRole('dialog').count(), 1);
  answer();
  await page.locator('dialog .wrong', { hasText: 'The response is not from the API' }).waitFor();
  await keep.click();
  await close();
});

test('an event is sent unchanged, and a repeated request has the same idempotency key', async () => {
  const { page, close } = await view('?instance=order-8');
  await page.locator('.timeline .said').first().waitFor();
  const sent = [];
  await page.route(/\/events\/packed/, (r) => { sent.push([r.request().postData(), r.request().headers()['idempotency-key']]); return r.fulfill(sent.length === 1 ? json(504, { message: 'timed out' }) : json(202, {})); });
  await page.getByRole('button', { name: 'Raise event …' }).click();
  await page.getByLabel('Event name', { exact: true }).fill('packed');
  await page.getByLabel(/^Data/).fill('{"order": 9007199254740993}');
  await page.getByRole('button', { name: 'Raise event', exact: true }).click();
  await page.getByText('The gateway returned 504: timed out').waitFor(); // shows the gateway's message
  await page.getByRole('button', { name: 'Raise event', exact: true }).click();
  await page.getByText('Event accepted').waitFor();
  assert.deepEqual(sent.map(([data]) => data), ['{"order": 9007199254740993}', '{"order": 9007199254740993}']);
  assert.ok(sent[0][1]);
  assert.equal(sent[0][1], sent[1][1]);
  await close();
});

test('numbers in payloads are shown unchanged', async () => {
  await fetch(`${server.base}/v1/orchestrations/ship`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"instanceId":"long-numbers","input":{"id":9007199254740993,"b":1.0}}' });
  const { page, close } = await view('?instance=long-numbers&tab=data');
  assert.equal((await page.locator('#panel pre.json').first().innerText()).replace(/\s+/g, ''), '{"id":9007199254740993,"b":1.0}');
  await close();
});

test('long texts and lists of a payload are collapsed until they are expanded', async () => {
  const input = { text: 'x'.repeat(1000), list: Array.from({ length: 80 }, (_, i) => i) };
  await fetch(`${server.base}/v1/orchestrations/ship`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ instanceId: 'long-values', input }) });
  const { page, close } = await view('?instance=long-values&tab=data');
  const pre = page.locator('#panel pre.json').first();
  await pre.getByRole('button', { name: '… 30 more items' }).waitFor();
  assert.ok(!(await pre.innerText()).includes('79'));
  await pre.getByRole('button', { name: '… 30 more items' }).click();
  await pre.getByRole('button', { name: /^… 70\d more characters$/ }).click();
  assert.deepEqual(JSON.parse(await pre.innerText()), input);
  await page.getByRole('tab', { name: 'Timeline' }).click();
  const card = page.locator('.strip .value');
  await card.getByRole('button', { name: 'Expand Input' }).click();
  assert.equal(await card.getByRole('button', { name: 'Expand Input' }).getAttribute('aria-expanded'), 'true');
  await close();
});

test('the header updates after a status change and keeps the focus', async () => {
  const { page, close } = await view('?instance=order-8');
  await page.locator('.timeline .said').first().waitFor();
  const was = await (await fetch(`${server.base}/v1/instances/order-8?pending=false`)).json();
  await page.getByRole('button', { name: 'Query …', exact: true }).focus();
  await page.route(/order-8\?pending=false/, (r) => r.fulfill(json(200, { ...was, status: 'Cancelled', updatedAt: new Date().toISOString() })));
  await page.locator('.hero .chip.Cancelled').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Query …');
  await page.getByRole('button', { name: 'More actions' }).click();
  assert.equal(await page.getByRole('button', { name: 'Terminate …', exact: true }).count(), 0);
  await close();
});

test('loading a history continues after an error, and the download waits for the end', async () => {
  const { page, close } = await view('');
  await page.locator('.instances .row').first().waitFor();
  let failed = false;
  let well;
  const wellAgain = new Promise((done) => { well = done; });
  await page.route(/charge-31\/history/, async (r) => { if (!failed) { failed = true; return r.fulfill(json(429, { message: 'Too Many Requests' })); } await wellAgain; return r.continue(); });
  await page.goto(`${server.base}/ui?instance=charge-31&tab=events`);
  await page.locator('.note.bad', { hasText: 'Could not load the instance' }).waitFor();
  const save = page.getByRole('button', { name: 'Download JSON' });
  assert.ok(await save.isDisabled());
  well();
  await page.locator('.events .row').first().waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll('button')].some((b) => b.textContent === 'Download JSON' && !b.disabled));
  await close();
});

test('a search with few matches continues on request', async () => {
  const { page, close } = await view('');
  await page.locator('.instances .row').first().waitFor();
  let asked = 0;
  await page.route(/\/v1\/instances\?.*tag=rare/, (r) => r.fulfill(json(200, { items: [], nextCursor: new URL(r.request().url()).searchParams.get('limit') !== '200' ? undefined : `c${++asked}` })));
  await page.goto(`${server.base}/ui?tag=rare%3D1`);
  await page.getByRole('button', { name: 'Continue search' }).click();
  await page.getByRole('button', { name: 'Continue search' }).waitFor();
  assert.equal(asked, 20);
  await close();
});

const instance = (id, createdAt) => ({ instanceId: id, orchestration: 'many', version: '1.0.0', status: 'Completed', executionId: `x-${id}`, createdAt, updatedAt: createdAt, tags: {} });

test('the list includes all instances when more than a page start between two refreshes', async () => {
  const { page, close } = await view('');
  await page.locator('.instances .row').first().waitFor();
  const all = [instance('first', '2026-01-01T00:00:00Z')];
  await page.route(/\/v1\/instances\?.*name=many/, (r) => {
    const q = new URL(r.request().url()).searchParams;
    const from = Number(q.get('cursor') || 0);
    const items = all.filter((s) => !q.get('startedAfter') || s.createdAt >= q.get('startedAfter')).slice(from, from + Math.min(100, Number(q.get('limit'))));
    return r.fulfill(json(200, { items, nextCursor: from + 100 < all.length ? String(from + 100) : undefined }));
  });
  await page.goto(`${server.base}/ui?name=many`);
  await page.getByText('1 matching instance').waitFor();
  for (let n = 0; n < 350; n++) all.unshift(instance(`new-${n}`, `2026-01-01T00:0${1 + Math.floor(n / 60)}:${String(n % 60).padStart(2, '0')}Z`));
  await page.getByText('351 matching instances').waitFor({ timeout: 15_000 });

  // After a long absence the list does not load everything at once.
  const asked = [];
  page.on('request', (r) => { if (r.url().includes('name=many')) asked.push(r.url()); });
  for (let n = 0; n < 3000; n++) all.unshift(instance(`late-${n}`, new Date(Date.parse('2026-01-02T00:00:00Z') + n * 1000).toISOString()));
  await page.getByText('100 or more matching instances').waitFor({ timeout: 15_000 });
  assert.ok(asked.length < 15, `${asked.length} requests`);
  await page.getByRole('button', { name: 'Updating' }).click();
  await page.locator('.instances .row').first().focus();
  for (let rows = 101; rows < 3352;) {
    await page.keyboard.press('End');
    await page.waitForFunction((before) => Number(document.querySelector('[role=grid]').getAttribute('aria-rowcount')) > before, rows);
    rows = Number(await page.getByRole('grid').getAttribute('aria-rowcount'));
  }
  await page.getByText('3,351 matching instances').waitFor();
  await close();
});

test('bulk actions are disabled while the list has an error, and values with a space are quoted', async () => {
  const { page, close } = await view('?name=ship&name=charge');
  await page.locator('.search .wrong', { hasText: 'name is repeated' }).waitFor();
  const disabled = async (why) => {
    assert.ok(await page.getByRole('button', { name: 'Cancel matching …' }).isDisabled(), why);
    await page.getByRole('button', { name: 'More actions' }).click();
    for (const name of ['Terminate matching …', 'Purge matching …']) assert.ok(await page.getByRole('button', { name }).isDisabled(), `${name} ${why}`);
    await page.keyboard.press('Escape');
  };
  await disabled('repeated');
  await page.goto(`${server.base}/ui?tag=team%3Dtwo+words&tag=region%3Deu`);
  assert.equal(await search(page).inputValue(), 'tag:"team=two words" tag:region=eu');
  await page.getByRole('link', { name: /^✕?\s*Failed/ }).click();
  await page.waitForURL(/status/);
  assert.equal(queryIn(page), 'status:failed tag:"team=two words" tag:region=eu');
  await page.goto(`${server.base}/ui?q=name:ship`);
  await page.locator('.instances .row').first().waitFor();
  await page.locator('.actions button:enabled', { hasText: 'Cancel matching …' }).waitFor();
  await page.route(/\/v1\/instances\?/, (r) => r.fulfill(json(429, { message: 'Too Many Requests' })));
  await page.locator('.note.bad', { hasText: 'The gateway returned 429: Too Many Requests' }).waitFor({ timeout: 15_000 });
  await disabled('the list cannot be loaded');
  await close();
});

test('a job excludes instances that start after its preview, by the clock of the hub', async () => {
  const { page, close } = await view('?name=ship');
  await page.locator('.instances .row').first().waitFor();
  const sent = [];
  await page.route(/\/v1\/jobs$/, (r) => {
    if (r.request().method() !== 'POST') return r.fulfill(json(200, { items: [] }));
    sent.push(r.request().postDataJSON());
    return r.fulfill(sent.at(-1).dryRun ? json(200, { matched: 2, sample: ['a', 'b'], complete: true, startedBefore: '2020-02-02T02:02:02Z' }) : json(202, { jobId: 'j-1' }));
  });
  await more(page, 'Terminate matching …');
  await page.getByRole('button', { name: 'Terminate 2' }).click();
  await page.getByText('Job j-1 starts').waitFor();
  assert.deepEqual(sent, [{ operation: 'terminate', filter: { name: 'ship' }, dryRun: true }, { operation: 'terminate', filter: { name: 'ship', startedBefore: '2020-02-02T02:02:02Z' } }]);
  await page.goto(`${server.base}/ui`);
  await page.locator('.instances .row').first().waitFor();
  await more(page, 'Terminate all …');
  await page.getByRole('button', { name: 'Terminate 2' }).waitFor();
  assert.deepEqual(sent.at(-1), { operation: 'terminate', all: true, dryRun: true });
  await close();
});

test('stopping a job asks for confirmation, and back navigation closes a dialog', async () => {
  const { page, close } = await view('?name=ship');
  await page.locator('.instances .row').first().waitFor();
  let stopped = 0;
  const at = new Date().toISOString();
  await page.route(/\/v1\/jobs/, (r) => {
    if (r.request().method() === 'POST') { stopped++; return r.fulfill(json(200, {})); }
    return r.fulfill(json(200, { items: [{ jobId: 'j-1', operation: 'purge', state: 'Running', createdAt: at, updatedAt: at, matched: 9, done: 4, skipped: 0, failed: 0, errors: [] }] }));
  });
  await page.getByRole('button', { name: 'Jobs', exact: true }).click();
  const stop = page.getByRole('button', { name: 'Stop job j-1' });
  await stop.click();
  await page.getByText('4 of 9 instances are done').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(stopped, 0);
  await stop.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop job' }).click();
  await page.getByText('Job stopped').waitFor();
  assert.equal(stopped, 1);

  await page.goto(`${server.base}/ui?name=charge`);
  await page.getByRole('link', { name: 'charge-31', exact: true }).click();
  await page.locator('.timeline .row').nth(1).waitFor();
  await more(page, 'Purge …');
  await page.getByRole('dialog').waitFor();
  await page.goBack();
  await page.locator('.instances .row').first().waitFor();
  assert.equal(await page.getByRole('dialog').count(), 0);
  await close();
});

test('a purge names the incarnation that is shown', async () => {
  const { page, close } = await view('?instance=charge-31');
  await page.locator('.timeline .row').nth(1).waitFor();
  const seen = await (await fetch(`${server.base}/v1/instances/charge-31?pending=false`)).json();
  let asked;
  await page.route(/\/v1\/instances\/charge-31\?createdAt/, (r) => { asked = r.request(); return r.fulfill(json(404, { detail: 'there is no instance of this id', code: 'instance_not_found' })); });
  await more(page, 'Purge …');
  await page.getByRole('button', { name: 'Purge instance' }).click();
  await page.locator('dialog .wrong', { hasText: 'there is no instance of this id' }).waitFor();
  assert.equal(asked.method(), 'DELETE');
  assert.equal(new URL(asked.url()).searchParams.get('createdAt'), seen.createdAt);
  await close();
});

test('invalid times and years with five digits are reported and not sent', async () => {
  const asked = [];
  const { page, wrong, close } = await view('');
  page.on('request', (r) => { if (/v1.*started/.test(r.url())) asked.push(r.url()); });
  for (const bad of ['startedAfter=yesterday', 'startedBefore=12345-01-01T00:00:00', 'q=started:2h', 'q=started:>2026-13-01']) {
    await page.goto(`${server.base}/ui?${bad}`);
    await page.locator('.search .wrong', { hasText: 'is not a time' }).waitFor();
  }
  assert.deepEqual([asked, wrong], [[], []]);
  await close();
});

test('the hub overview links to what needs attention and computes on without dead letters', async () => {
  const { page, wrong, close } = await view('?hub');
  await page.getByRole('link', { name: /^Dead letters\s*1,23\d/ }).waitFor();
  await page.getByRole('link', { name: /^Blocked\s*1\s*code/ }).waitFor();
  await page.getByRole('region', { name: 'Versions of unfinished instances' }).locator('tr', { hasText: 'fulfil' }).getByRole('link', { name: '1.2.0' }).waitFor();
  await page.locator('section', { hasText: 'Blocked and paused' }).last().getByRole('link', { name: 'order-9' }).waitFor();
  await page.getByRole('heading', { name: 'Jobs of the last 7 days' }).waitFor();
  await page.getByRole('link', { name: /^Oldest work/ }).click();
  await page.waitForURL(/started/);
  assert.equal(queryIn(page), 'status:running started:>7d');
  assert.deepEqual(wrong, []);
  await page.route(/\/v1\/queues$/, (r) => r.fulfill(json(200, { queues: [{ queue: 'default', depth: 0 }] })));
  await page.goto(`${server.base}/ui?hub`);
  await page.getByRole('link', { name: /^Dead letters\s*—\s*this API has no access/ }).waitFor();
  await page.getByRole('link', { name: /^Blocked\s*1\s*code/ }).waitFor();
  await close();
});

test('the hub overview has the failures by orchestration, and the starts and the estimated cost of the last hour', async () => {
  const { page, wrong, close } = await view('?schedules');
  let hour;
  const priced = [];
  await page.route(/instances\?startedAfter=/, async (r) => { hour = (await (await r.fetch()).json()).items; return r.fulfill(json(200, { items: hour })); });
  await page.route(/cost=true$/, (r) => { priced.push(r.request().url()); return r.fulfill(json(200, { cost: { dollars: 0.002 } })); });
  await page.goto(`${server.base}/ui?hub`);
  const figure = (name) => page.locator('.figure', { has: page.getByText(name, { exact: true }) });
  await figure('Cost').getByText(/^of the last hour: about \$0\.\d+, estimated from 8 of \d+ instances$/).waitFor();
  const started = hour.filter((s) => !/^(perdure\.schedule|@)/.test(s.orchestration));
  const failed = started.filter((s) => s.status === 'Failed');
  const ended = started.filter((s) => ['Completed', 'Failed', 'Cancelled', 'Terminated'].includes(s.status));
  assert.equal(priced.length, 8, 'the sample is bounded');
  assert.equal(await figure('Started').innerText(), `Started\n${started.length}\nin the last hour: ${ended.length} have ended, ${failed.length} of them failed`);
  assert.equal(await figure('Cost').locator('.number').innerText(), `$${Number((0.002 * started.length).toPrecision(2))}`);
  const rows = page.getByRole('region', { name: 'Failures of the last day' }).locator('tbody tr');
  const counts = (await rows.locator('td:nth-child(2)').allInnerTexts()).map(Number);
  assert.deepEqual(counts, [...counts].sort((a, b) => b - a));
  assert.equal(counts.reduce((sum, n) => sum + n, 0), Number(await figure('Failed').locator('.number').innerText()));
  const name = await rows.first().locator('td').first().innerText();
  await rows.first().getByRole('link').first().click();
  await page.waitForURL(/q=/);
  assert.equal(queryIn(page), `status:failed name:${name} started:<1d`);
  assert.deepEqual(wrong, []);
  await close();
});

test('the cost of an hour omits purged instances, states a lower bound of a long list, and why it is unknown', async () => {
  const { page, close } = await view('?schedules');
  let more;
  let answer;
  await page.route(/instances\?startedAfter=/, async (r) => { const { items } = await (await r.fetch()).json(); return r.fulfill(json(200, { items, ...more })); });
  await page.route(/cost=true$/, (r) => r.fulfill(answer()));
  const cost = page.locator('.figure', { has: page.getByText('Cost', { exact: true }) });
  const opened = async (text) => { await page.goto(`${server.base}/ui?hub`); await cost.getByText(text).waitFor(); };
  let first = true;
  answer = () => { if (first) { first = false; return json(404, { detail: 'not found', code: 'not_found' }); } return json(200, { cost: { dollars: 0.00001 } }); };
  await opened(/^of the last hour: about \$0\.000\d+, estimated from 7 of \d+ instances$/);
  assert.equal(await cost.locator('.number').innerText(), '< $0.01');
  more = { nextCursor: 'x' };
  await opened(/^of the last hour: over \$0\.000\d+, estimated from 8 of \d+\+ instances$/);
  assert.match(await cost.locator('.number').innerText(), /^> \$0\.000\d+$/);
  answer = () => json(200, { cost: { unread: { code: 'timeout', detail: 'the history is too long' } } });
  await opened('of the last hour: the history is too long');
  assert.equal(await cost.locator('.number').innerText(), '?');
  assert.match(await page.locator('.figure', { has: page.getByText('Started', { exact: true }) }).innerText(), /in the last hour: \d+\+ have ended/);
  await close();
});

test('the hub overview states that there are no queues, and no cost while no instance of the last hour has ended', async () => {
  const { page, close } = await view('?schedules');
  await page.route(/\/v1\/queues$/, (r) => r.fulfill(json(200, { queues: [] })));
  await page.route(/instances\?startedAfter=/, (r) => r.fulfill(json(200, { items: [] })));
  await page.goto(`${server.base}/ui?hub`);
  await page.locator('.figure', { hasText: 'no instance has started and ended' }).getByText('$0', { exact: true }).waitFor();
  await page.getByRole('region', { name: 'Queues and workers' }).getByText('No queues.').waitFor();
  await close();
});

test('the hub overview begins with a verdict, and lists queues without workers first', async () => {
  const { page, wrong, close } = await view('?hub');
  const verdict = page.locator('.verdict', { hasText: 'printers' });
  await verdict.waitFor();
  assert.match(await verdict.innerText(), /^Not healthy: queue printers has 1 work item and no worker has ever reported · 1,23\d dead letters · 1 blocked instance$/);
  const card = page.getByRole('region', { name: 'Queues and workers' });
  await card.getByText('printLabel of order-8').waitFor();
  assert.match(await card.locator('tbody tr').first().innerText(), /^printers\s+1\s+never reported\s+—\s+printLabel of order-8/);
  const payments = card.locator('tbody tr', { hasText: 'payments' });
  assert.match(await payments.innerText(), /^payments\s+1\s+(now|\d+ \w+ ago)[^]*1,200[^]*not read/, 'listing hides dead letters, so it takes a click');
  await card.getByRole('button', { name: 'Read reasons' }).click();
  await payments.getByText('later: field deadline (200 of 200 read)').waitFor();
  await page.getByRole('link', { name: /^Oldest work\s*0/ }).waitFor(); // two schedules are 30 days old
  await page.getByRole('region', { name: 'Blocked and paused instances' }).getByText('nondeterminism: the code does not match the history').waitFor();
  const versions = page.getByRole('region', { name: 'Versions of unfinished instances' });
  await versions.getByText(/^Counts /).waitFor();
  const counted = (await versions.locator('p').innerText()).match(/[\d,]+/g).reduce((sum, n) => sum + Number(n.replace(',', '')), 0);
  const listed = (await versions.locator('tbody td:nth-child(3)').allInnerTexts()).reduce((sum, n) => sum + Number(n), 0);
  assert.ok(counted > 100, `${counted} instances`);
  assert.equal(listed, counted, 'the table has all instances that it says it counts');
  await page.getByRole('button', { name: 'Updating' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Live' }).count(), 0);
  assert.deepEqual(wrong, []);
  await verdict.getByRole('link', { name: /printers/ }).click();
  await page.locator('.pending .row', { hasText: 'printLabel' }).waitFor();
  await close();
});

test('the verdict is not “healthy” while something cannot be read, and every view has its mark', async () => {
  const { page, close } = await view('?schedules');
  const mark = page.locator('#health');
  await page.route(/\/v1\/instances\?/, (r) => r.fulfill(json(200, { items: [] })));
  await page.route(/\/v1\/queues$/, (r) => r.fulfill(json(503, { detail: 'the queues did not answer' })));
  await page.reload();
  await mark.getByText('Unknown').waitFor();
  assert.equal(await mark.getAttribute('title'), 'could not read the queues');
  await mark.click();
  await page.locator('.verdict', { hasText: 'Unknown: could not read the queues' }).waitFor();
  await page.getByRole('region', { name: 'Queues and workers' }).getByText('the queues did not answer').waitFor();
  await page.unroute(/\/v1\/queues$/);
  await page.route(/\/v1\/queues$/, (r) => r.fulfill(json(200, { queues: [{ queue: 'default', depth: 2, deadLetters: 0, worker: { buildId: 'b7', seenAt: new Date().toISOString() } }] })));
  await page.reload();
  await page.locator('.verdict.ok', { hasText: 'Healthy: no blocked instances, no dead letters, no work without a worker' }).waitFor();
  assert.match(await page.getByRole('region', { name: 'Queues and workers' }).locator('tbody tr').innerText(), /^default\s+2\s+now\s+b7\s+—\s+0\s+—/);
  assert.match(await mark.innerText(), /^✓\s+Hub:\s+Healthy$/);
  await close();
});

test('the mark of the verdict costs one request every 15 s, and needs two reads for a queue without a worker', async () => {
  const { page, close } = await view('');
  await page.locator('.instances .row').first().waitFor();
  const start = Date.now();
  await page.clock.install({ time: start });
  await page.clock.pauseAt(start + 3_600_000); // later than a slow machine needs for these calls
  await page.addInitScript(() => { // counts the responses that the page has read
    const { text } = Response.prototype;
    window.reads = 0;
    Response.prototype.text = async function read() { const body = await text.call(this); window.reads++; return body; };
  });
  const asked = [];
  let queues = [{ queue: 'default', depth: 0 }];
  await page.route(/\/v1\/(queues|instances\?status=Blocked&limit=100)$/, (r) => { const isQueues = r.request().url().endsWith('queues'); asked.push(isQueues ? 'queues' : 'blocked'); return r.fulfill(json(200, isQueues ? { queues } : { items: [] })); });
  await page.goto(`${server.base}/ui?schedules`);
  const word = (text) => page.locator('#health', { hasText: text }).waitFor();
  const reads = () => page.evaluate(() => window.reads);
  const after = async (ms, more) => {
    const n = asked.length;
    const before = await reads();
    await page.clock.runFor(ms);
    // The timer of the next request starts when the response of this one has been read.
    for (let tries = 0; more && tries < 600 && (asked.length < n + more || await reads() < before + more); tries++) await new Promise((done) => { setTimeout(done, 50); });
    return asked.slice(n);
  };
  await word('Healthy');
  assert.deepEqual(asked.sort(), ['blocked', 'queues']);
  assert.deepEqual(await after(14_000, 0), []);
  assert.equal((await after(1500, 1)).length, 1);
  assert.equal((await after(15_500, 1)).length, 1);
  queues = [{ queue: 'default', depth: 1, noWorker: true }];
  while ((await after(15_500, 1))[0] !== 'queues'); // the two parts alternate
  await word('Checking');
  assert.deepEqual(await after(5500, 1), ['queues']);
  await word('Not healthy');
  assert.equal(await page.locator('#health').getAttribute('title'), 'queue default has 1 work item and no worker has ever reported');
  await word(': no worker for default');
  await close();
});

test('the list marks blocked instances, and those that wait for a worker', async () => {
  const { page, close } = await view('?q=name:fulfil');
  const row = (id) => page.locator('.instances .row.attention', { hasText: id });
  await row('order-8').locator('.stuck').waitFor();
  assert.ok(await row('order-8').locator('.cell').nth(1).evaluate((cell) => cell.scrollWidth <= cell.clientWidth), 'the mark is cut off');
  assert.match(await row('order-8').locator('.cell').nth(1).getAttribute('title'), /^no worker runs printLabel \(queue printers\)$/);
  assert.match(await row('order-9').locator('.cell').nth(1).getAttribute('title'), /^blocked since /);
  assert.equal(await page.locator('.instances .row.attention').count(), 2);
  assert.deepEqual(await violations(page), []);
  await close();
});

test('the search text is kept while the list loads, by a count, and on another width', async () => {
  const { page, close } = await view('');
  await page.locator('.instances .row').first().waitFor();
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  await page.route(/\/v1\/instances\?.*name=charge/, async (r) => { await held; return r.continue(); });
  await search(page).fill('name:charge');
  await page.keyboard.press('Enter');
  await page.waitForURL(/name/);
  await page.keyboard.type(' tag:region=eu');
  release();
  await page.locator('.instances .row').first().waitFor();
  assert.equal(await search(page).inputValue(), 'name:charge tag:region=eu');
  await page.setViewportSize({ width: 600, height: 800 });
  await page.locator('.instances .row').first().waitFor();
  assert.equal(await search(page).inputValue(), 'name:charge tag:region=eu');
  await page.getByRole('link', { name: /^✕?\s*Failed/ }).click();
  await page.waitForURL(/status/);
  assert.equal(queryIn(page), 'status:failed name:charge tag:region=eu');
  await close();
});

test('a search is saved in the browser, opened again and forgotten', async () => {
  const { page, close } = await view('?q=status:paused');
  await page.locator('.instances .row').first().waitFor();
  const saved = page.getByRole('navigation', { name: 'Saved searches' });
  await saved.getByRole('button', { name: 'Save search' }).click();
  assert.equal(await saved.getByRole('button', { name: 'Saved' }).getAttribute('aria-pressed'), 'true');
  assert.deepEqual(await violations(page), []);
  await page.goto(`${server.base}/ui?q=staus:failed`);
  await saved.getByRole('link', { name: 'status:paused' }).waitFor();
  assert.equal(await saved.getByRole('button').count(), 0, 'a search with an error cannot be saved');
  await saved.getByRole('link', { name: 'status:paused' }).click();
  await page.getByText('1 matching instance').waitFor();
  await saved.getByRole('button', { name: 'Saved' }).click();
  assert.equal(await saved.getByRole('link').count(), 0);
  await page.goto(`${server.base}/ui`);
  await page.locator('.instances .row').first().waitFor();
  assert.equal(await saved.count(), 0);
  await close();
});

test('schedules show their runs, and pausing one asks for confirmation', async () => {
  const { page, close } = await view('?schedules');
  await page.locator('.schedules .row', { hasText: 'sync' }).getByText('‖ Paused').waitFor();
  assert.match(await page.locator('.schedules .row', { hasText: 'sync' }).locator('.cell').nth(1).getAttribute('title'), /^since .*: the supplier migrates$/);
  await page.getByText('2 schedules').waitFor();
  assert.match(await page.locator('.schedules .row', { hasText: 'sync' }).innerText(), /Paused[^]*rate\(5 minutes\)[^]*Failed/);
  await page.locator('.schedules .row', { hasText: 'nightly' }).click();
  const sent = [];
  await page.route(/schedules\/nightly\//, (r) => { sent.push([new URL(r.request().url()).pathname, r.request().postDataJSON()]); return r.fulfill(json(202, {})); });
  await page.getByRole('button', { name: 'Pause schedule …' }).click();
  assert.deepEqual(sent, []);
  await page.getByLabel(/^Message/).fill('migration');
  await page.getByRole('button', { name: 'Pause schedule', exact: true }).click();
  await page.getByText('Pause requested').waitFor();
  await page.getByRole('button', { name: 'Run now …' }).click();
  await page.getByRole('button', { name: 'Start run' }).click();
  await page.getByText('Run requested').waitFor();
  assert.deepEqual(sent, [['/v1/schedules/nightly/pause', { message: 'migration' }], ['/v1/schedules/nightly/run', null]]);
  await page.getByRole('link', { name: 'All runs' }).click();
  await page.waitForURL(/parent/);
  assert.equal(queryIn(page), 'parent:schedule:nightly');
  await close();
});

test('entities show their state and open as instances', async () => {
  const { page, close } = await view('?entities');
  await page.locator('.entities .row', { hasText: 'tea' }).waitFor();
  await page.locator('.entities .row', { hasText: 'tea' }).click();
  await page.locator('aside.detail pre.json', { hasText: '"Available": 12' }).waitFor();
  await page.getByLabel('Entity', { exact: true }).fill('stock');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('2 keys').waitFor();
  await page.getByLabel('Key (to open one)').fill('tea');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.locator('h1', { hasText: '@stock@tea' }).waitFor();
  await page.getByRole('button', { name: 'Read state' }).click();
  await page.locator('.strip pre.json', { hasText: '"Available": 12' }).waitFor();
  await close();
});

const orders = (page) => {
  const sent = [];
  page.on('request', (r) => { if (r.method() === 'POST' && r.url().includes('dead-letters')) sent.push([new URL(r.url()).pathname.slice('/v1/dead-letters/'.length), r.postDataJSON()]); });
  return sent;
};

test('dead letters show queue, next step and body', async () => {
  const { page, wrong, close } = await view('?instance=order-7');
  await page.locator('.facts').getByRole('link', { name: 'Search' }).click();
  await page.getByText('30 loaded, about 1,233 in all queues').waitFor();
  assert.equal(await page.getByLabel('Instance', { exact: true }).inputValue(), 'order-7', 'the link filters by the instance');
  await page.locator('.letters .row').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  const detail = page.locator('aside.detail');
  await detail.getByText('This is the only copy of the message').waitFor();
  await detail.locator('pre.json', { hasText: '"parcel": 1' }).waitFor();
  await page.keyboard.press('Escape');
  assert.ok(await page.evaluate(() => document.activeElement.matches('.letters .row')), 'the focus returns to the row');
  await page.getByRole('button', { name: 'Clear' }).click();
  await page.getByLabel('Queue').selectOption({ label: 'timers (1)' });
  await page.waitForURL(/dead=timers/);
  await page.locator('.letters .row', { hasText: 'timer #4' }).filter({ hasText: 'the sweeper sends it again' }).waitFor();
  await page.goBack();
  assert.equal(await page.getByLabel('Queue').inputValue(), '');
  assert.deepEqual(wrong.filter((w) => !w.includes('404')), []);
  await close();
});

test('dead letters are grouped by reason with their next step, and no redrive is advised without an instance', async () => {
  const { page, close } = await view('?dead');
  const groups = page.getByRole('list', { name: 'Dead letters by reason' }).locator('li');
  await groups.filter({ hasText: 'Instance charge-0 does not exist' }).waitFor();
  const [first, second] = await groups.allInnerTexts();
  assert.match(first, /^200 or more in payments: later: field deadline\s+This release cannot read the message\. Instance charge-0 does not exist, so a redrive has no effect\. Drop the dead letters of such instances\.$/);
  assert.match(second, /^30 in inbox: corrupt: item x#7 h#3\s+The history could not be read.*then redrive the dead letter\.$/);
  assert.match(await page.locator('.letters .row').first().innerText(), /^payments/, 'the most frequent reason comes first');
  await page.locator('.letters .row').first().click();
  await page.locator('aside.detail').getByText('so a redrive has no effect. Drop the dead letter.').waitFor();
  await groups.getByRole('link', { name: 'corrupt: item x#7 h#3' }).click();
  await page.getByText('30 loaded').waitFor();
  assert.equal(await groups.count(), 1);
  await close();
});

test('redriving and dropping one dead letter ask for confirmation, and a handled one needs force', async () => {
  const { page, close } = await view('?dead=inbox&reason=poison:');
  const sent = orders(page);
  await page.locator('.letters .row', { hasText: 'poison' }).click();
  await page.getByRole('button', { name: 'Redrive …', exact: true }).click();
  const dialog = page.getByRole('dialog');
  assert.ok(await dialog.getByRole('button', { name: 'Redrive dead letter' }).isDisabled(), 'its message is in the history');
  await dialog.getByRole('checkbox').check();
  assert.ok(await dialog.getByRole('button', { name: 'Redrive dead letter' }).isEnabled());
  await page.keyboard.press('Escape');
  assert.deepEqual(sent, []);
  await page.getByRole('button', { name: 'Drop …', exact: true }).click();
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Go back');
  await dialog.getByRole('button', { name: 'Drop dead letter' }).click();
  await page.locator('#toasts').getByText('1 dropped').waitFor();
  await page.getByText('No visible dead letters').waitFor();
  assert.equal(sent.length, 1);
  assert.equal(sent[0][0], 'inbox/drop');
  assert.deepEqual(Object.keys(sent[0][1]), ['ids']);
  await close();
});

test('a bulk redrive sends several requests, can be stopped and excludes later dead letters', async () => {
  const { page, close } = await view('?dead=payments');
  const sent = orders(page);
  let answer;
  let calls = 0;
  await page.route(/payments\/redrive$/, async (r) => {
    if (++calls === 1) return r.fulfill(json(200, { done: 500, kept: 0, later: 0, failed: 0, sent: [], complete: false, errors: [] }));
    await new Promise((go) => { answer = go; });
    return r.fulfill(json(200, { done: 400, kept: 0, later: 2, failed: 0, sent: [], complete: false, errors: [] }));
  });
  await page.getByText('200 or more loaded, about 1,200 in payments').waitFor();
  await page.getByRole('button', { name: 'Redrive all in queue …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('1,000 or more dead letters to redrive (1,000 other)').waitFor();
  assert.equal(await dialog.locator('li').count(), 5);
  assert.deepEqual(await violations(page), [], 'the dialog');
  await dialog.getByRole('button', { name: 'Redrive 1,000 or more' }).click();
  await dialog.getByText('500 redriven …').waitFor();
  await dialog.getByRole('button', { name: 'Stop after this call' }).click();
  answer();
  await page.locator('#toasts').getByText('900 redriven. 2 skipped (arrived later). Stopped, the others are unchanged').waitFor();
  assert.equal(calls, 2);
  assert.deepEqual(sent[0], sent[1], 'all requests have the same selection');
  assert.equal(sent[0][1].all, true);
  assert.ok(Date.parse(sent[0][1].sentBefore) <= Date.now());
  await page.unroute(/payments\/redrive$/);
  await page.getByRole('button', { name: 'Drop all in queue …' }).click();
  await dialog.getByRole('button', { name: 'Drop 1,000 or more' }).click();
  await page.locator('#toasts').getByText('1,200 dropped').waitFor();
  await page.getByText('0 loaded, about 0 in payments').waitFor();
  await close();
});

test('a redrive that fails midway shows its progress and continues on request', async () => {
  const { page, close } = await view('?dead=inbox&reason=corrupt:');
  let calls = 0;
  await page.route(/inbox\/redrive$/, (r) => (++calls === 1 ? r.fulfill(json(200, { done: 10, kept: 0, later: 0, failed: 0, sent: [], complete: false, errors: [] })) : calls === 2 ? r.fulfill(json(503, { detail: 'the task hub did not answer in time; try again' })) : r.continue()));
  await page.getByText('30 loaded').waitFor();
  await page.getByRole('button', { name: 'Redrive matching …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Redrive 30' }).click();
  await dialog.getByText('10 redriven, then failed: the task hub did not answer in time').waitFor();
  await dialog.getByRole('button', { name: 'Redrive 30' }).click();
  await page.locator('#toasts').getByText('30 redriven').waitFor();
  await page.getByText('0 loaded, about 0 in inbox').waitFor();
  await close();
});

test('an API without access to dead letters shows its error', async () => {
  const { page, close } = await view('');
  await page.route(/\/v1\/dead-letters$/, (r) => r.fulfill(json(404, { code: 'no_dead_letters', detail: 'this API has no access to the dead letters of the hub' })));
  await page.getByRole('link', { name: 'Dead letters', exact: true }).click();
  await page.getByText('this API has no access to the dead letters').waitFor();
  assert.ok(await page.getByRole('button', { name: 'Redrive all …' }).isDisabled());
  await close();
});

test('a query shows its result unchanged, and the dialog accepts another query', async () => {
  const { page, wrong, close } = await view('?instance=order-8');
  await page.getByRole('button', { name: 'Query …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Query name').fill('progress');
  await dialog.getByLabel('Input').fill('{"more": 9007199254740993}');
  await dialog.getByRole('button', { name: 'Run query' }).click();
  await dialog.getByRole('heading', { name: 'Result of progress' }).waitFor();
  const text = await dialog.getByRole('group', { name: 'Result of progress' }).innerText();
  assert.match(text, /"of": "order-8"/);
  assert.match(text, /"more": 9007199254740993/);
  assert.match(text, /"share": 0\.50/);
  assert.deepEqual(await violations(page), [], 'a result');

  await dialog.getByLabel('Query name').fill('pace');
  await dialog.getByRole('button', { name: 'Run query' }).click();
  await dialog.getByRole('alert').getByText('known queries: ["progress"]').waitFor();
  assert.equal(await dialog.getByRole('heading', { name: /^Result/ }).count(), 0, 'the previous result is gone');
  await dialog.getByLabel('Input').fill('{');
  await dialog.getByRole('button', { name: 'Run query' }).click();
  await dialog.getByText('The input is not JSON').waitFor();
  assert.deepEqual(wrong.filter((w) => !/404/.test(w)), []);
  await close();
});

test('a note is shown as text, and a long one keeps the dialog open with the error', async () => {
  const { page, wrong, close } = await view('?instance=charge-31');
  await page.getByRole('button', { name: 'Add note …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Note').fill('é'.repeat(600));
  await dialog.getByRole('button', { name: 'Add note' }).click();
  await dialog.getByRole('alert').getByText('1024').waitFor();
  await dialog.getByLabel('Note').fill('<b>refund</b> is ticket 4711');
  await dialog.getByRole('button', { name: 'Add note' }).click();
  await page.locator('#toasts').getByText('Note added').waitFor();
  await page.locator('#notes').getByText('<b>refund</b> is ticket 4711').waitFor();
  assert.equal(await page.locator('#notes b', { hasText: 'refund' }).count(), 0, 'a note is not HTML');
  assert.deepEqual(await violations(page), [], 'notes');
  assert.deepEqual(wrong.filter((w) => !/413/.test(w)), []);
  await close();
});

test('closing the dialog during a query ignores its late result', async () => {
  const { page, close } = await view('?instance=charge-31');
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  await page.route(/\/query$/, async (r) => { await held; await r.fulfill(json(422, { code: 'query_timed_out', detail: 'there was no answer in time' })); });
  await page.getByRole('button', { name: 'Query …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Query name').fill('progress');
  await page.keyboard.press('Enter');
  await dialog.getByText('Replaying the history …').waitFor();
  const answered = page.waitForResponse(/\/query$/);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  release();
  await answered;
  assert.equal(await page.locator('#toasts').innerText(), '');
  await close();
});

test('a restart uses the selected event, and an invalid event shows an error', async () => {
  const { page, close } = await view('?instance=charge-31&tab=events');
  await page.locator('.events .row').filter({ hasText: 'ActivityScheduled' }).click();
  await page.getByRole('button', { name: 'Restart from #3 …' }).click();
  const dialog = page.getByRole('dialog');
  assert.equal(await dialog.getByLabel('From event').inputValue(), '3');
  assert.deepEqual(await violations(page), [], 'the dialog');
  await dialog.getByLabel('From event').fill('99');
  await dialog.getByRole('button', { name: 'Restart instance' }).click();
  await dialog.getByRole('alert').getByText(/cannot be/).waitFor();
  await page.route(/\/restart$/, (r) => r.fulfill(json(202, { instanceId: 'order-8' })));
  await dialog.getByLabel('From event').fill('3');
  const [request] = await Promise.all([page.waitForRequest(/\/restart$/), dialog.getByRole('button', { name: 'Restart instance' }).click()]);
  assert.deepEqual(request.postDataJSON(), { from: 3 });
  await page.locator('h1', { hasText: 'order-8' }).waitFor();
  await close();
});

// This test comes last, because it adds an instance to the hub.
test('restarting a finished instance opens the new instance', async () => {
  const { page, close } = await view('?instance=charge-31');
  const [request] = await Promise.all([
    page.waitForRequest(/\/restart$/),
    (async () => {
      await page.getByRole('button', { name: 'Restart …', exact: true }).click();
      await page.getByRole('button', { name: 'Restart instance' }).click();
    })(),
  ]);
  assert.equal(request.method(), 'POST');
  assert.deepEqual(request.postDataJSON(), {});
  await page.locator('h1', { hasText: 'charge-31.restart-' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Restart …', exact: true }).count(), 0, 'the new instance has not ended');
  await page.getByRole('tab', { name: /^Relationships/ }).click();
  await page.locator('.tree', { hasText: 'was restarted as' }).getByRole('link', { name: 'charge-31', exact: true }).waitFor();
  await close();
});
