// The health of a hub. The API has no route for workers, so a sample of the unfinished instances says which queues have none: each pending activity names
// its queue, and whether a worker should have started it.

// lasting reports whether an instance runs without an end by design: a schedule or an entity.
const lasting = (s) => s.orchestration === 'perdure.schedule' || s.orchestration.startsWith('@');

// sampleOf selects instances that have not changed for a minute: of each orchestration first the latest and the earliest change, then the others. A
// recent outage and an old one are both found, and many instances of one orchestration do not hide the others. Instances that wait for a worker by the last
// sample (stuck) come first, so that the verdict does not change while they wait.
const mostSampled = 16;
const restingFor = 60_000; // milliseconds. The API reports a missing worker after a minute.
function sampleOf(instances, now, stuck = new Set()) {
  const byName = new Map();
  const resting = instances.filter((s) => !lasting(s) && now - Date.parse(s.updatedAt) >= restingFor);
  for (const s of resting) if (!stuck.has(s.instanceId)) pushTo(byName, s.orchestration, s);
  const lists = [...byName.values()];
  for (const list of lists) list.sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
  const sample = resting.filter((s) => stuck.has(s.instanceId)).slice(0, mostSampled / 2);
  for (let n = 0; sample.length < mostSampled && lists.some((list) => list.length); n++) {
    for (const list of lists) if (list.length && sample.length < mostSampled) sample.push(n === 1 ? list.pop() : list.shift());
  }
  return sample;
}

// queuesOf returns the queues of the pending activities of instances, by name, with those that no worker runs.
function queuesOf(statuses) {
  const queues = new Map();
  for (const s of statuses) {
    for (const p of s.pending?.items || []) {
      if (p.what !== 'activity' || !p.queue) continue;
      const q = queues.get(p.queue) || { queue: p.queue, stuck: 0, seenAt: '', example: null };
      if (p.noWorker) {
        q.stuck++;
        q.example ??= { instanceId: s.instanceId, name: p.name };
        if ((p.workerSeenAt || '') > q.seenAt) q.seenAt = p.workerSeenAt;
      }
      queues.set(p.queue, q);
    }
  }
  return queues;
}

// clockOf shows a time of today as 17:00:05, and any other time with its date.
const clockOf = (t, now = Date.now()) => (moment(t).slice(0, 10) === moment(now).slice(0, 10) ? clock(t) : moment(t));
const sinceClock = (t, now) => `since ${clockOf(t, now)} (${ago(t, now)})`;

// healthOf returns the parts of the verdict about a hub, the worst first, each with the address of its list. queues is the result of queuesOf. letters and
// blocked are counts with more, or null if unknown. unread names what could not be read.
function healthOf({ queues, letters, blocked, unread = [] }, now) {
  const parts = [];
  const stuck = [...queues.values()].filter((q) => q.stuck);
  if (stuck.length) {
    const seenAt = stuck.map((q) => q.seenAt).sort().at(-1);
    const which = stuck.length === 1 ? `queue ${stuck[0].queue} has` : `${several(stuck.length, 'queue')} have`;
    parts.push({ text: `${which} pending work and no worker has ${seenAt ? `reported since ${clockOf(seenAt, now)}` : 'ever reported'}`, href: `?${query([['instance', stuck[0].example.instanceId], ['tab', 'pending']])}` });
  }
  if (letters?.n) parts.push({ text: `${countText(letters)} dead letter${letters.n === 1 ? '' : 's'}`, href: '?dead' });
  if (blocked?.n) parts.push({ text: `${countText(blocked)} blocked instance${blocked.n === 1 && !blocked.more ? '' : 's'}`, href: listURL(['status', 'blocked']) });
  const verdict = parts.length ? 'Not healthy' : unread.length ? 'Unknown' : 'Healthy';
  return { verdict, parts, unread: unread.length ? `could not read ${unread.join(', ')}` : '' };
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
