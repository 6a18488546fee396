// A generated TypeScript client on a running API. perdure.d.ts is generated.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AwsClient } from 'aws4fetch';
import createClient from 'openapi-fetch';
import type { components, paths } from './perdure.js';

type Schemas = components['schemas'];

const baseUrl = process.env.API!;
const token = process.env.TOKEN!;
const order = { customer: 'ann', cents: 1200 };

const hub = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

// segment encodes an ID for a path.
const segment = (id: string) => '~' + Buffer.from(id).toString('base64url');

// start starts an order with an ID and returns the response.
const start = (instanceId: string) => hub.POST('/v1/orchestrations/{name}', {
  params: { path: { name: 'order' } }, body: { instanceId, input: order },
});

const approve = (instanceId: string, by: string) => hub.POST('/v1/instances/{id}/events/{event}', {
  params: { path: { id: segment(instanceId), event: 'approved' } }, body: { by },
});

// ended waits for the end of an instance.
async function ended(instanceId: string): Promise<Schemas['Result']> {
  for (;;) {
    const { data, error, response } = await hub.GET('/v1/instances/{id}/result', {
      params: { path: { id: segment(instanceId) }, query: { wait: '20s' } },
    });
    if (error) throw new Error(JSON.stringify(error));
    if (response.status === 200) return data;
  }
}

// problem returns the problem of an error, which a gateway's own errors are not.
function problem(error: Schemas['Problem'] | Schemas['GatewayError'] | undefined): Schemas['Problem'] {
  assert.ok(error && 'code' in error, JSON.stringify(error));
  return error as Schemas['Problem'];
}

test('an order is started, approved and charged', async () => {
  const id = 'orders/ts 1';
  const started = await start(id);
  assert.equal(started.response.status, 202);
  assert.equal(started.data?.instanceId, id);
  assert.equal(started.response.headers.get('Location'), `/v1/instances/${segment(id)}`);
  assert.equal(started.data.links.status, `/v1/instances/${segment(id)}`);

  const running = await hub.GET('/v1/instances/{id}', {
    params: { path: { id: segment(id) }, query: { waitForStart: '20s', pending: false } },
  });
  assert.equal(running.data?.status, 'Running');
  assert.equal(running.data.pending, undefined);
  const queried = await hub.POST('/v1/instances/{id}/query', {
    params: { path: { id: segment(id) } }, body: { query: 'price' },
  });
  assert.equal(queried.data?.answer, 1200);
  const updated = await hub.POST('/v1/instances/{id}/update', {
    params: { path: { id: segment(id) }, header: { 'Idempotency-Key': 'ts-update' } }, body: { update: 'reprice', input: 0 },
  });
  assert.deepEqual([updated.data?.result, updated.data?.updateId], [1200, 'ts-update']);

  const raised = await approve(id, 'bob');
  assert.equal(raised.data?.instanceId, id);
  const result = await ended(id);
  assert.equal(result.status, 'Completed');
  assert.deepEqual(result.output, { customer: 'ann', cents: 0, approvedBy: 'bob', charge: '0 cents from ann' });

  const { data: status } = await hub.GET('/v1/instances/{id}', { params: { path: { id: segment(id) }, query: { cost: true } } });
  assert.equal(status?.orchestration, 'order');
  assert.equal(status.customStatus, null);
  assert.ok(Date.parse(status.updatedAt) >= Date.parse(status.createdAt));
  assert.equal(status.cost?.activities, 1);
});

test('a history is read in pages', async () => {
  const id = 'ts-history';
  await start(id);
  await approve(id, 'bob');
  await ended(id);
  const events: Schemas['Event'][] = [];
  let query: { limit: number; after?: number; execution?: string } = { limit: 2 };
  for (;;) {
    const { data: page } = await hub.GET('/v1/instances/{id}/history', { params: { path: { id }, query } });
    assert.ok(page && page.items.length <= 2);
    events.push(...page.items);
    if (page.next === undefined) break;
    query = { limit: 2, after: page.next, execution: page.executionId };
  }
  assert.deepEqual(events.map((e) => e.id), events.map((_, i) => i + 1));
  assert.equal(events[0]?.kind, 'OrchestrationStarted');
  assert.equal(events.find((e) => e.kind === 'ActivityScheduled')?.name, 'charge');
  assert.equal(events.at(-1)?.kind, 'OrchestrationCompleted');
});

test('a list is filtered and read in pages', async () => {
  const tags = { team: 'ts', 'a key': 'x=y & z' };
  for (const instanceId of ['ts-list-1', 'ts-list-2', 'ts-list-3']) {
    await hub.POST('/v1/orchestrations/{name}', { params: { path: { name: 'order' } }, body: { instanceId, input: order, tags } });
  }
  const filter = { limit: 2, tag: ['team=ts', 'a key=x=y & z'], startedAfter: new Date(Date.now() - 3600e3).toISOString() };
  const ids: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const { data } = await hub.GET('/v1/instances', { params: { query: { ...filter, ...(cursor && { cursor }) } } });
    assert.ok(data);
    ids.push(...data.items.map((i) => i.instanceId));
    assert.deepEqual(data.items.map((i) => i.tags), data.items.map(() => tags));
    cursor = data.nextCursor;
    pages++;
  } while (cursor);
  assert.deepEqual(ids.sort(), ['ts-list-1', 'ts-list-2', 'ts-list-3']); // starts of one millisecond have no order
  assert.ok(pages >= 2);
});

test('a cancelled order ends, and its list names who cancelled it', async () => {
  const id = 'ts-cancel';
  await start(id);
  const cancelled = await hub.POST('/v1/instances/{id}/cancel', { params: { path: { id } }, body: { message: 'no stock' } });
  assert.equal(cancelled.response.status, 202);
  const result = await ended(id);
  assert.equal(result.status, 'Cancelled');
  const { data } = await hub.GET('/v1/instances/{id}/cancellations', { params: { path: { id } } });
  assert.deepEqual(data?.items.map((c) => [c.target, c.message]), [['instance', 'no stock']]);
  const late = await hub.POST('/v1/instances/{id}/cancel', { params: { path: { id } } });
  assert.deepEqual([late.response.status, problem(late.error).code], [410, 'instance_over']);
});

test('problems have a status, a code and a field', async () => {
  const missing = await hub.GET('/v1/instances/{id}', { params: { path: { id: 'missing' } } });
  assert.deepEqual([missing.response.status, problem(missing.error).code], [404, 'instance_not_found']);
  assert.equal(missing.response.headers.get('Content-Type'), 'application/problem+json');

  await start('ts-twice');
  const twice = problem((await start('ts-twice')).error);
  assert.deepEqual([twice.status, twice.code, twice.retryable], [409, 'instance_id_in_use', false]);
  assert.equal(twice.existing?.orchestration, 'order');

  const slash = problem((await hub.GET('/v1/instances/{id}', { params: { path: { id: 'a/b' } } })).error);
  assert.equal(slash.status, 400);
  assert.match(slash.detail, /~/);

  const unknown = await hub.POST('/v1/orchestrations/{name}', { params: { path: { name: 'none' } }, body: {} });
  assert.equal(problem(unknown.error).code, 'unknown_orchestration');
});

test('a start with an Idempotency-Key can be repeated', async () => {
  const call = () => hub.POST('/v1/orchestrations/{name}', {
    params: { path: { name: 'order' }, header: { 'Idempotency-Key': 'ts-order-7' } }, body: { input: order },
  });
  const [first, second] = [await call(), await call()];
  assert.ok(first.data);
  assert.equal(second.data?.instanceId, first.data.instanceId);
});

test('an activity is completed by token', async () => {
  const id = 'ts-parcel';
  await hub.POST('/v1/orchestrations/{name}', { params: { path: { name: 'parcel' } }, body: { instanceId: id } });
  const sent = await (await fetch(`${baseUrl}/tokens/${id}`)).text();
  const beat = await hub.POST('/v1/activities/heartbeat', { body: { token: sent, details: { at: 'gate' } } });
  assert.deepEqual(beat.data, {});
  const completed = await hub.POST('/v1/activities/complete', { body: { token: sent, result: 'on board' } });
  assert.equal(completed.response.status, 202);
  assert.equal((await ended(id)).output, 'on board');
  const late = await hub.POST('/v1/activities/complete', { body: { token: sent, result: 'lost' } });
  assert.deepEqual([late.response.status, problem(late.error).code], [410, 'execution_over']);
});

test('errors of a gateway have no code', async () => {
  for (const [bearer, status, message] of [['none', 401, 'Unauthorized'], ['other', 403, 'Forbidden'], ['throttled', 429, 'Too Many Requests']] as const) {
    const refused = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${bearer}` } });
    const { error, response } = await refused.GET('/v1/instances');
    assert.equal(response.status, status);
    assert.deepEqual(error, { message });
  }
});

test('requests are signed with SigV4', async () => {
  const aws = new AwsClient({ accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret', service: 'execute-api', region: 'us-east-1' });
  const signed = createClient<paths>({ baseUrl, fetch: (request) => aws.fetch(request) });
  const { data } = await signed.PUT('/v1/instances/{id}', {
    params: { path: { id: segment('ts/signed') } }, body: { orchestration: 'order', input: order },
  });
  assert.equal(data?.instanceId, 'ts/signed');
});
