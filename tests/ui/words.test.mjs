// Tests of the code of the web UI that needs no browser: the query of the list, and the sentences about an instance.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

// The scripts share one scope. The last part of the document, which starts it, is omitted.
const dir = fileURLToPath(new URL('../../ui/page/', import.meta.url));
const code = readdirSync(dir).filter((f) => f.endsWith('.js') && f < '60').sort().map((f) => readFileSync(dir + f, 'utf8')).join('\n');
const page = new Function('document', 'matchMedia', `'use strict';\n${code}\nreturn { parseQuery, queryOf, completions, nowSentence, cancelSentence, ago, dayTime, listURL, clock, causeOf, hasStarted, Health, healthOf, examplesOf, sampleOf, tallyReasons, Model, Scale };`)({ addEventListener() {} }, () => ({}));

const now = Date.parse('2026-11-29T12:00:00Z');
const parse = (text) => page.parseQuery(text, now);

test('a query has the parameters of the list and the filter of a job', () => {
  const q = parse('status:failed name:order tag:region=eu tag:"team=two words" version:1.2 parent:order-7 started:<2h');
  assert.equal(q.wrong, '');
  assert.deepEqual(q.pairs, [['status', 'Failed'], ['name', 'order'], ['tag', 'region=eu'], ['tag', 'team=two words'], ['version', '1.2'], ['parent', 'order-7'], ['startedAfter', '2026-11-29T10:00:00.000Z']]);
  assert.deepEqual(JSON.parse(JSON.stringify(q.job)), { statuses: ['Failed'], name: 'order', tags: { region: 'eu', team: 'two words' }, version: '1.2', parent: 'order-7', startedAfter: '2026-11-29T10:00:00.000Z' });
  assert.equal(q.keep, null);
  assert.equal(q.rest, 'name:order tag:region=eu tag:"team=two words" version:1.2 parent:order-7 started:<2h');
});

test('times are ages or dates, and a day is a range', () => {
  assert.deepEqual(parse('started:>1d').pairs, [['startedBefore', '2026-11-28T12:00:00.000Z']]);
  assert.deepEqual(parse('started:>2026-11-28T09:00Z started:<2026-11-28T10:00Z').pairs, [['startedAfter', '2026-11-28T09:00:00.000Z'], ['startedBefore', '2026-11-28T10:00:00.000Z']]);
  const [[a, from], [b, to]] = parse('started:2026-11-28').pairs;
  assert.deepEqual([a, b, Date.parse(to) - Date.parse(from)], ['startedAfter', 'startedBefore', 86_400_000]);
});

test('errors in a query name the term and the fix', () => {
  for (const [text, error] of [
    ['staus:failed', /Unknown field “staus”.*status, name.*"staus:failed"/], ['status:fine', /Unknown status “fine”.*running/], ['status:failed status:blocked', /status is repeated/], ['name:a name:b', /name is repeated/],
    ['started:2h', /“2h” is not a time/], ['started:>2026-13-01', /is not a time/], ['started:>12026-01-01', /is not a time/], ['started:<1h started:<2h', /started is repeated/], ['tag:eu', /“eu” is not key=value/], ['tag:a=1 tag:a=2', /“a” is repeated/],
    ['name:"two words', /closing quote is missing/], ['name:', /name: has no value/], ['order-7 status:failed', /Unexpected “order-7”/], ['order 7', /Unexpected “7”/], ['tag:__proto__=1 tag:__proto__=2', /repeated/],
  ]) assert.match(parse(text).wrong, error, text);
  assert.equal(parse('tag:__proto__=1 tag:constructor=2').wrong, '');
});

test('plain words are an instance ID, and a star selects by prefix', () => {
  assert.equal(parse('order-7').id, 'order-7');
  assert.equal(parse('"report/2026 <q3>"').id, 'report/2026 <q3>');
  assert.equal(parse('schedule:nightly').id, 'schedule:nightly');
  assert.equal(parse('"status:failed"').id, 'status:failed');
  const { keep, pairs, wrong } = parse('order-0* name:ch* status:failed');
  assert.deepEqual([pairs, wrong], [[['status', 'Failed']], '']);
  assert.ok(keep({ instanceId: 'order-01', orchestration: 'charge' }));
  assert.ok(!keep({ instanceId: 'order-01', orchestration: 'ship' }));
  assert.ok(!keep({ instanceId: 'x', orchestration: 'charge' }));
  assert.deepEqual(parse('name:"a*"').pairs, [['name', 'a*']]);
});

test('every value survives a link to the list', () => {
  for (const v of ['a', 'two words', 'say "hi"', 'back\\slash', 'star*', '', 'a:b', '😀=x', '"', '\\"']) {
    const text = page.queryOf(new URLSearchParams(page.listURL(['tag', `k=${v}`], ['parent', `p${v}`])));
    assert.deepEqual(parse(text).pairs, [['tag', `k=${v}`], ['parent', `p${v}`]], v);
  }
  assert.equal(page.queryOf(new URLSearchParams('status=Failed&tag=a%3Db+c&startedAfter=2026-11-28T09:00:00Z')), 'status:Failed tag:"a=b c" started:>2026-11-28T09:00:00Z');
});

test('completions suggest fields, and values of the loaded list', () => {
  const known = { name: new Set(['charge', 'ship it']), tag: new Set(['region=eu']), version: new Set() };
  const texts = (text, at = text.length) => page.completions(text, at, known).options.map((o) => o.text);
  assert.deepEqual(texts('status:failed n'), ['name:']);
  assert.deepEqual(texts('name:'), ['name:charge', 'name:"ship it"']);
  assert.deepEqual(texts('name:"sh'), ['name:"ship it"']);
  assert.deepEqual(texts('status:pau'), ['status:paused']);
  assert.deepEqual(texts('status:paused'), []);
  assert.deepEqual(page.completions('status:fa name:x', 9, known).from, 0);
});

const at = (seconds) => new Date(now + seconds * 1000).toISOString();
const instance = (more) => ({ status: 'Running', createdAt: at(-3 * 3600), updatedAt: at(-60), ...more });
const say = (s, items, total) => page.nowSentence(instance(s), items && { total: total ?? items.length, items }, now);

test('one sentence says what an instance is doing', () => {
  const event = { what: 'external_event', id: 4, name: 'packed', since: at(-60) };
  const charge = { what: 'activity', id: 3, name: 'charge-card', since: at(-60) };
  const tomorrow = new Date(now + 864e5);
  tomorrow.setHours(9, 0, 0, 0);
  assert.equal(say({}, [event, { what: 'timer', id: 5, since: at(-60), dueAt: tomorrow.toISOString() }, { ...charge, attempt: 3, lastError: { type: 'timeout' }, nextTryAt: at(-120) }]), `Running for 3 h, waiting for activity charge-card and event packed until tomorrow 09:00; 2 retries of charge-card, the next due since ${page.clock(now - 120_000)} (2 min ago).`);
  assert.equal(say({}, [event, { what: 'timer', id: 5, since: at(-60), dueAt: at(240) }]), 'Running for 3 h, waiting for event packed for up to 4 min.');
  assert.equal(say({}, [{ what: 'timer', id: 5, name: 'next look', since: at(-60), dueAt: at(240) }]), 'Running for 3 h, waiting for timer “next look”, due in 4 min.');
  assert.equal(say({}, [{ ...charge, attempt: 2, lastError: { type: 'timeout' }, nextTryAt: at(30) }]), `Running for 3 h, waiting for the next attempt of charge-card in 30 s (${page.clock(now + 30_000)}); 1 retry of charge-card.`);
  assert.equal(say({}, [{ ...charge, noWorker: true, queue: 'printers' }]), 'Running for 3 h; no worker runs charge-card (queue printers, no worker has ever reported).');
  assert.equal(say({}, [{ ...charge, noWorker: true, queue: 'printers', workerSeenAt: at(-7200) }]), `Running for 3 h; no worker runs charge-card (queue printers, last worker report ${page.clock(now - 7_200_000)}, 2 h ago).`);
  assert.equal(say({}, ['a', 'b', 'c', 'd'].map((name) => ({ ...charge, name })), 9), 'Running for 3 h, waiting for activities a, b, c and 1 more, and 5 more tasks.');
  assert.equal(say({}, [charge, charge]), 'Running for 3 h, waiting for activities charge-card (2).');
  assert.equal(say({}, [{ ...charge, handedOverAt: at(-5) }]), 'Running for 3 h, waiting for the asynchronous completion of charge-card.');
  assert.equal(say({}, []), 'Running for 3 h, between two turns.');
  assert.equal(say({}, null), 'Running for 3 h.');
  assert.equal(say({ status: 'Pending', startAt: at(600) }), 'Starts in 10 min.');
  assert.equal(say({ status: 'Completed', updatedAt: at(-3600) }), 'Completed after 2 h, 1 h ago.');
  assert.equal(say({ status: 'Failed', updatedAt: at(-3600), failure: { type: 'DeclinedError', message: 'no' } }), 'Failed after 2 h, 1 h ago: DeclinedError: no');
  assert.equal(say({ status: 'Paused', paused: { at: at(-600), by: 'arn:aws:sts::1:assumed-role/Ops/alice' } }, [event]), 'Paused for 10 min by alice, waiting for event packed.');
  assert.equal(say({ status: 'Blocked', updatedAt: at(-600), failure: { type: 'nondeterminism', message: 'x' } }), 'Blocked for 10 min: the code does not match the history.');
  assert.equal(say({ status: 'Cancelling' }, [{ ...charge, cancelledAt: at(-5) }]), 'Cancelling, running for 3 h, waiting until the cancelled charge-card ends.');
  assert.equal(say({ status: 'Terminated', updatedAt: at(-60), terminatedBy: 'alice' }), 'Terminated after 2 h 59 min, 1 min ago, by alice.');
});

test('the sentence states the deadline of the tasks, or that there is none', () => {
  const charge = { what: 'activity', id: 3, name: 'charge-card', since: at(-60) };
  const packed = { what: 'external_event', id: 4, name: 'packed', since: at(-60), deadline: null };
  assert.equal(say({}, [{ ...charge, deadline: null }, packed]), 'Running for 3 h, waiting for activity charge-card and event packed, no deadline.');
  assert.equal(say({}, [{ ...charge, deadline: at(600) }]), `Running for 3 h, waiting for activity charge-card, deadline in 10 min (${page.clock(now + 600_000)}).`);
  assert.equal(say({}, [{ ...charge, deadline: at(600) }, packed]), `Running for 3 h, waiting for activity charge-card and event packed, first deadline in 10 min (${page.clock(now + 600_000)}).`);
  assert.equal(say({}, [charge]), 'Running for 3 h, waiting for activity charge-card.', 'an unknown deadline is not stated');
});

test('the sentence says who ended an instance, and why, once', () => {
  const ended = (more, cancel) => page.nowSentence(instance({ updatedAt: at(-60), ...more }), null, now, cancel);
  const cancelled = { status: 'Cancelled', failure: { type: 'cancelled', reason: 'requested', message: 'too slow' } };
  const start = 'Cancelled after 2 h 59 min, 1 min ago';
  assert.equal(ended(cancelled), `${start}: “too slow”.`, 'the history has no request, or is not loaded yet');
  assert.equal(ended(cancelled, {}), `${start}: “too slow”.`);
  assert.equal(ended(cancelled, { by: 'arn:aws:sts::1:assumed-role/Ops/alice', reason: 'requested', message: 'too slow' }), `${start}, by alice: “too slow”.`);
  assert.equal(ended({ status: 'Cancelled' }, { by: 'parent:order-7', reason: 'parent_cancelled' }), `${start}, by parent order-7: parent cancelled.`);
  assert.equal(ended({ status: 'Terminated', terminatedBy: 'alice', failure: { type: 'terminated', message: 'not needed' } }), 'Terminated after 2 h 59 min, 1 min ago, by alice: “not needed”.');
  assert.equal(ended({ status: 'Terminated', failure: { type: 'terminated' } }), 'Terminated after 2 h 59 min, 1 min ago.');
});

test('the cause of a child names what keeps it from ending, its queue, and the last report of a worker there', () => {
  const cause = (items, more, queueOf) => page.causeOf(instance({ pending: { total: items.length, items }, ...more }), now, queueOf).text;
  const rank = (items) => page.causeOf(instance({ pending: { total: items.length, items } }), now).rank;
  const book = { what: 'activity', id: 3, name: 'bookCourier', since: at(-60), queue: 'couriers' };
  const started = { ...book, lastHeartbeatAt: at(-5) };
  const idle = { ...book, noWorker: true };
  const retried = { ...book, attempt: 3, lastError: { type: 'timeout' }, nextTryAt: at(-60) };
  assert.equal(cause([idle]), 'no worker runs bookCourier (queue couriers, no worker has ever reported)');
  assert.equal(cause([started]), 'waiting for activity bookCourier');
  assert.equal(cause([book]), 'activity bookCourier sent to queue couriers 1 min ago, still queued or running without a report');
  assert.equal(cause([book], {}, (name) => ({ queue: name, worker: { seenAt: at(-20) } })), 'activity bookCourier sent to queue couriers 1 min ago, still queued or running without a report (last worker report there 20 s ago)');
  assert.equal(cause([book], {}, (name) => ({ queue: name })), 'activity bookCourier sent to queue couriers 1 min ago, still queued or running without a report (no worker has ever reported there)');
  assert.equal(cause([{ ...book, since: at(-2) }]), 'waiting for activity bookCourier', 'a worker may receive it any moment');
  assert.equal(cause([retried]), `2 retries of bookCourier, the next due since ${page.clock(now - 60_000)} (1 min ago)`);
  assert.equal(cause([], { status: 'Blocked', failure: { type: 'nondeterminism' } }), 'blocked: nondeterminism');
  assert.equal(cause([]), 'between two turns');
  assert.ok(rank([idle]) < rank([retried]) && rank([retried]) < rank([book]) && rank([book]) < rank([started]), 'ranked by how much it needs help');
});

test('the cause and the sentence have the worst wait first, and the older of two alike', () => {
  const child = (id, rank, seconds) => ({ what: 'sub_orchestration', id, name: `c${id}`, childId: `i${id}`, since: at(-seconds), cause: `cause ${id}`, rank });
  const children = [child(3, 3, 90), child(4, 2, 80), child(5, 0, 60), child(6, 0, 70)];
  assert.equal(page.causeOf(instance({ pending: { total: 4, items: children } }), now).text, 'c6 #6 → i6: cause 6');
  assert.equal(say({}, children), 'Running for 3 h, waiting for 4 sub-orchestrations.', 'the list of problems has the causes of children');

  const task = (id, seconds, more) => ({ what: 'activity', id, name: `a${id}`, queue: `q${id}`, since: at(-seconds), ...more });
  assert.equal(say({}, [task(3, 90, { attempt: 2, lastHeartbeatAt: at(-5) }), task(4, 60, { noWorker: true }), task(5, 70, { noWorker: true })]),
    'Running for 3 h, waiting for activity a3; no worker runs a5 (queue q5, no worker has ever reported), no worker runs a4 (queue q4, no worker has ever reported), 1 retry of a3.');
});

const state = (queues, blocked = { n: 0 }, at = now) => {
  const health = new page.Health();
  if (queues) health.takeQueues(queues.map((q) => ({ ...q })), at);
  if (blocked) health.takeBlocked(blocked, at);
  return health;
};

test('the verdict about a hub lists its problems, the worst first, and is healthy only if everything was read', () => {
  const late = (queue, seconds) => ({ queue, depth: 3, noWorker: true, worker: seconds && { seenAt: at(-seconds) } });
  const queues = [late('printers', 7200), late('couriers', 3600), { queue: 'payments', depth: 4, deadLetters: 1200 }, { queue: 'inbox', deadLetters: 33 }];
  const health = state(queues, { n: 1, more: false }, now - 5000);
  health.takeQueues(queues, now);
  const { verdict, parts } = page.healthOf(health, now);
  assert.equal(verdict, 'Not healthy');
  assert.deepEqual(parts.map((p) => p.text), [`2 queues have work and no worker has reported since ${page.clock(now - 3600_000)}`, '1,233 dead letters', '1 blocked instance']);
  assert.deepEqual(parts.map((p) => p.href), ['?hub', '?dead', '?q=status%3Ablocked']);
  const example = new Map([['couriers', { instanceId: 'a' }]]);
  assert.equal(page.healthOf(health, now, example).parts[0].href, '?instance=a&tab=pending');
  const fine = [{ queue: 'payments', depth: 9, worker: { seenAt: at(-60) } }];
  assert.deepEqual(page.healthOf(state(fine), now), { verdict: 'Healthy', parts: [], unread: '' });
  assert.equal(page.healthOf(state(fine, null), now).verdict, 'Checking', 'the blocked instances are not read yet');
  assert.equal(page.healthOf(state(null), now).verdict, 'Checking');
  const failed = state(fine);
  failed.took('blocked', now, 'throttled');
  assert.deepEqual(page.healthOf(failed, now), { verdict: 'Unknown', parts: [], unread: 'could not read the blocked instances' });
});

test('a queue has no worker once two reads show it, so that the start of the first worker is no alarm', () => {
  const late = [{ queue: 'printers', depth: 1, noWorker: true }];
  const health = state(late);
  assert.equal(page.healthOf(health, now).verdict, 'Checking');
  health.takeQueues([{ queue: 'printers', depth: 1 }], now + 5000);
  assert.equal(page.healthOf(health, now).verdict, 'Healthy');
  health.takeQueues(late, now + 15_000);
  assert.equal(page.healthOf(health, now).verdict, 'Checking', 'an earlier read does not count');
  health.takeQueues(late, now + 20_000);
  assert.equal(page.healthOf(health, now).parts[0].text, 'queue printers has 1 work item and no worker has ever reported');
});

test('an example of waiting work is from a bounded sample of each orchestration, without schedules, entities and recent changes', () => {
  const s = (orchestration, instanceId, seconds) => ({ orchestration, instanceId, status: 'Running', updatedAt: at(-seconds) });
  const many = Array.from({ length: 1000 }, (_, n) => s('order', `order-${n}`, 100 + n));
  const ids = page.sampleOf([...many, s('ship', 'ship-1', 5000), s('perdure.schedule', 'schedule:x', 5000), s('@stock', '@stock@tea', 5000), s('charge', 'charge-1', 10)], now).map((x) => x.instanceId);
  assert.deepEqual(ids.slice(0, 3), ['order-0', 'ship-1', 'order-999']);
  assert.equal(ids.length, 16);
  assert.deepEqual(page.sampleOf([s('charge', 'charge-1', 10)], now), []);
  const waiting = (queue, name) => ({ what: 'activity', queue, name, noWorker: true });
  const status = (instanceId, ...items) => ({ instanceId, pending: { items } });
  assert.deepEqual([...page.examplesOf([status('a', waiting('printers', 'print'), { what: 'activity', queue: 'payments' }), status('b', waiting('printers', 'scan')), status('c')])], [['printers', { instanceId: 'a', name: 'print' }]]);
});

test('an activity whose start is not reported is drawn as waiting, and one with a heartbeat as running', () => {
  const model = new page.Model();
  for (const e of [{ kind: 'OrchestrationStarted', name: 'a' }, { kind: 'TurnStarted' }, { kind: 'ActivityScheduled', name: 'b' }, { kind: 'SubOrchestrationScheduled', name: 'c', instanceId: 'd' }]) model.add({ ...e, id: model.last + 1, time: at(0) });
  const drawn = (id) => model.segments(model.byID.get(id), now + 60_000).map((s) => s.type);
  assert.deepEqual([drawn(3), drawn(4)], [['wait'], ['child open']]);
  model.byID.get(3).begun = page.hasStarted({ lastHeartbeatAt: at(30) });
  model.byID.get(4).unbegun = true;
  assert.deepEqual([drawn(3), drawn(4)], [['work open'], ['wait']]);
  for (const p of [{}, { lastHeartbeatAt: at(-30), nextTryAt: at(-5) }, { lastHeartbeatAt: at(-30), noWorker: true }, { unknownBuild: 'b8' }]) assert.equal(page.hasStarted(p), false, JSON.stringify(p));
  for (const p of [{ handedOverAt: at(-5) }, { lastHeartbeatAt: at(-5), nextTryAt: at(-30) }]) assert.equal(page.hasStarted(p), true, JSON.stringify(p));
});

test('dead letters are counted by queue and reason, the most frequent first', () => {
  const d = (queue, reason) => ({ queue, reason });
  assert.deepEqual(page.tallyReasons([d('inbox', 'corrupt: a'), d('timers'), ...Array(3).fill(d('payments', 'later: field deadline'))]).map((g) => [g.queue, g.reason, g.n]), [['payments', 'later: field deadline', 3], ['inbox', 'corrupt: a', 1], ['timers', '', 1]]);
});

test('the time of a failed activity is active, and an activity with several attempts has their color', () => {
  const model = new page.Model();
  const time = (seconds) => new Date(now + seconds * 1000).toISOString();
  for (const e of [
    { kind: 'OrchestrationStarted', name: 'charge', time: time(0) }, { kind: 'TurnStarted', time: time(0) }, { kind: 'ActivityScheduled', name: 'chargeCard', time: time(0) },
    { kind: 'ActivityFailed', sourceEventId: 3, attempt: 3, error: { type: 'x' }, time: time(40) }, { kind: 'OrchestrationFailed', error: { type: 'x' }, time: time(46) },
  ]) model.add({ ...e, id: model.last + 1 });
  const scale = new page.Scale(model, now + 60_000, true);
  assert.deepEqual([scale.busy, scale.idle], [40_000, 6000]);
  assert.deepEqual(model.segments(model.byID.get(3), now + 60_000).map((s) => s.type), ['tried failed']);
});

test('labels of the axis fit into it and leave the place of another label', () => {
  const model = new page.Model();
  model.add({ id: 1, kind: 'OrchestrationStarted', name: 'a', time: new Date(now).toISOString() });
  const scale = new page.Scale(model, now + 60_000, false);
  scale.to = now + 60_000;
  scale.parts = [{ a: now, b: now + 60_000 }];
  scale.fit(700, 1, 0);
  const xs = (taken) => scale.ticks(taken).map((t) => t.x);
  assert.ok(xs().length > 3);
  assert.ok(xs().every((x) => x + 98 <= 700), `${xs()}`);
  assert.ok(xs([666, 700]).every((x) => x + 98 <= 666), `${xs([666, 700])}`);
  assert.ok(xs([300, 334]).every((x) => x >= 334 || x + 98 <= 300), `${xs([300, 334])}`);
});

test('one sentence describes a cancellation', () => {
  const c = (more, activity) => page.cancelSentence({ decided: now, reason: 'select_loser', by: 'body', ...more }, activity);
  assert.equal(c({ seen: now + 33, how: 'stopped', ended: now + 33 }), 'Cancelled: lost a select; the worker saw it after 33 ms and stopped');
  assert.equal(c({ seen: now + 33, how: 'finished', ended: now + 1033 }), 'Cancelled: lost a select; the worker saw it after 33 ms and completed anyway 1.0 s later');
  assert.equal(c({ seen: now + 33, how: 'leaked', ended: now + 1033 }), 'Cancelled: lost a select; the worker saw it after 33 ms and did not stop, so it was abandoned 1.0 s later');
  assert.equal(c({ seen: now + 33 }), 'Cancelled: lost a select; the worker saw it after 33 ms and has not stopped yet');
  assert.equal(c({ how: 'never_fires' }, false), 'Cancelled: lost a select; the timer was removed');
  assert.equal(c({ how: 'never_started' }), 'Cancelled: lost a select; it had not started');
  assert.equal(c({ how: 'worker_gone', ended: now + 5000 }), 'Cancelled: lost a select; the worker was lost after 5.0 s');
  assert.equal(c({ open: true }), 'Cancelled: lost a select; no worker has seen it so far');
  assert.equal(c({ open: true }, false), 'Cancelled: lost a select');
  assert.equal(c({ reason: 'requested', by: 'arn:aws:sts::1:assumed-role/Ops/alice', message: 'too slow' }), 'Cancelled by alice: “too slow”');
  assert.equal(c({ reason: 'requested', by: 'client' }), 'Cancelled by a client');
  assert.equal(c({ reason: 'timeout', by: 'engine' }), 'Cancelled: timed out');
});

test('relative times have one unit', () => {
  const said = (seconds) => page.ago(at(seconds), now);
  assert.deepEqual([-2, -30, -90, -7300, -200_000, 240, 14_280, 86_000].map(said), ['now', '30 s ago', '1 min ago', '2 h ago', '2 d ago', 'in 4 min', 'in 4 h', 'in 1 d']);
});
