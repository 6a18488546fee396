// The health of the hub: a verdict from its queues, dead letters and blocked instances, which every view shows in the header.

// clockOf shows a time of today as 17:00:05, and any other time with its date.
const clockOf = (t, now = Date.now()) => (moment(t).slice(0, 10) === moment(now).slice(0, 10) ? clock(t) : moment(t));
const sinceClock = (t, now) => `since ${clockOf(t, now)} (${ago(t, now)})`;

// Health has the last known state of the hub. A queue has no worker for certain once two reads with confirmAfter between them show it, because the
// first worker of an idle queue reports some seconds after its first work item.
const confirmAfter = 5000; // milliseconds
class Health {
  constructor() {
    Object.assign(this, { queues: null, blocked: null, readAt: { queues: 0, blocked: 0 }, faults: new Map(), idleSince: new Map(), changed: new Set() });
  }

  takeQueues(queues, now) {
    this.queues = queues;
    this.idleSince = new Map(queues.filter((q) => q.noWorker).map((q) => [q.queue, this.idleSince.get(q.queue) ?? now]));
    for (const q of queues) q.stuck = Boolean(q.noWorker) && now - this.idleSince.get(q.queue) >= confirmAfter;
    this.took('queues', now);
  }

  // takeBlocked takes the number of blocked instances, with more if there may be others.
  takeBlocked(blocked, now) {
    this.blocked = { n: blocked.n, more: blocked.more };
    this.took('blocked', now);
  }

  took(what, now, fault = '') {
    this.readAt[what] = now;
    if (fault) this.faults.set(what, fault); else this.faults.delete(what);
    for (const f of this.changed) f();
  }

  unconfirmed() { return (this.queues || []).some((q) => q.noWorker && !q.stuck); }
  queue(name) { return this.queues?.find((q) => q.queue === name); }
}

// healthOf returns the verdict about a hub and its parts, the worst first, each with the address of its list. examples has an instance of each queue
// whose work waits, if it is known.
const healthNames = { queues: 'the queues', blocked: 'the blocked instances' };
function healthOf(health, now, examples = new Map()) {
  const parts = [];
  const stuck = (health.queues || []).filter((q) => q.stuck);
  if (stuck.length) {
    const seenAt = stuck.map((q) => q.worker?.seenAt || '').sort().at(-1);
    const work = stuck.length === 1 ? `queue ${stuck[0].queue} has ${several(stuck[0].depth, 'work item')}` : `${several(stuck.length, 'queue')} have work`;
    const example = stuck.map((q) => examples.get(q.queue)).find(Boolean);
    parts.push({ text: `${work} and no worker has ${seenAt ? `reported since ${clockOf(seenAt, now)}` : 'ever reported'}`, short: `no worker for ${stuck.length === 1 ? stuck[0].queue : several(stuck.length, 'queue')}`, href: example ? `?${query([['instance', example.instanceId], ['tab', 'pending']])}` : '?hub' });
  }
  const letters = lettersOf(health.queues);
  if (letters) parts.push({ text: several(letters, 'dead letter'), href: '?dead' });
  const { blocked } = health;
  if (blocked?.n) parts.push({ text: `${countText(blocked)} blocked instance${blocked.n === 1 && !blocked.more ? '' : 's'}`, href: listURL(['status', 'blocked']) });
  const unread = [...health.faults.keys()].map((what) => healthNames[what]);
  const checking = Object.keys(healthNames).some((what) => !health[what] && !health.faults.has(what)) || health.unconfirmed();
  const verdict = parts.length ? 'Not healthy' : unread.length ? 'Unknown' : checking ? 'Checking' : 'Healthy';
  return { verdict, parts, unread: unread.length ? `could not read ${unread.join(', ')}` : '' };
}

// lettersOf returns the number of dead letters of queues, or null if it is unknown.
function lettersOf(queues) {
  const counts = (queues || []).map((q) => q.deadLetters).filter((n) => n !== undefined);
  return counts.length ? counts.reduce((sum, n) => sum + n, 0) : null;
}

// lasting reports whether an instance runs without an end by design: a schedule or an entity.
const lasting = (s) => s.orchestration === 'perdure.schedule' || s.orchestration.startsWith('@');

// mayBeStuck reports whether an instance may wait for a worker: it has not ended and not changed for a minute, after which the API reports a missing worker.
const restingFor = 60_000; // milliseconds
const mayBeStuck = (s, now) => ['Running', 'Cancelling'].includes(s.status) && !lasting(s) && now - Date.parse(s.updatedAt) >= restingFor;

// sampleOf selects instances that may wait for a worker: of each orchestration first the latest and the earliest change, then the others. A recent outage
// and an old one are both found, and many instances of one orchestration do not hide the others.
const mostSampled = 16;
function sampleOf(instances, now) {
  const byName = new Map();
  for (const s of instances) if (mayBeStuck(s, now)) pushTo(byName, s.orchestration, s);
  const lists = [...byName.values()];
  for (const list of lists) list.sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
  const sample = [];
  for (let n = 0; sample.length < mostSampled && lists.some((list) => list.length); n++) {
    for (const list of lists) if (list.length && sample.length < mostSampled) sample.push(n === 1 ? list.pop() : list.shift());
  }
  return sample;
}

// waitingFor returns the pending activities of an instance that no worker runs.
const waitingFor = (s) => (s.pending?.items || []).filter((p) => p.what === 'activity' && p.noWorker);

// examplesOf returns an example of the activities that wait for a worker, by queue.
function examplesOf(statuses) {
  const found = new Map();
  for (const s of statuses) for (const { queue, name } of waitingFor(s)) if (!found.has(queue)) found.set(queue, { instanceId: s.instanceId, name });
  return found;
}

// tallyReasons counts dead letters by queue and reason, the most frequent first.
function tallyReasons(letters) {
  const found = new Map();
  for (const d of letters) {
    const key = `${d.queue}\n${d.reason || ''}`;
    const g = found.get(key) || { queue: d.queue, reason: d.reason || '', n: 0, first: d };
    g.n++;
    found.set(key, g);
  }
  return [...found.values()].sort((a, b) => b.n - a.n);
}

// knownReasons contains the commonest reason of each queue, from the last time that the dead letters were listed. Listing hides them from other readers,
// so the hub page does not list them by itself.
const knownReasons = new Map();
function learnReasons(queue, letters, complete) {
  const [most] = tallyReasons(letters);
  if (most) knownReasons.set(queue, { ...most, of: letters.length, complete }); else knownReasons.delete(queue);
}
