// Sentences about an instance: what it is doing now, and how a cancellation went.

const several = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
const taskWords = { activity: 'activity', timer: 'timer', sub_orchestration: 'sub-orchestration', external_event: 'event', sent_event: 'sent event', sent_update: 'sent update', update: 'update' };

// named joins the names of tasks and cuts a long list.
const mostNamed = 3;
function named(items, total = items.length) {
  const counts = new Map();
  for (const p of items) { const n = p.name || p.childId || taskWords[p.what]; counts.set(n, (counts.get(n) || 0) + 1); }
  const names = [...counts].map(([n, k]) => (k > 1 ? `${n} (${count(k)})` : n));
  const shown = names.slice(0, mostNamed);
  const more = total - [...counts.values()].slice(0, mostNamed).reduce((a, b) => a + b, 0);
  if (more > 0) return `${shown.join(', ')} and ${count(more)} more`;
  return shown.length > 1 ? `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}` : shown.join('');
}

// waitsFor returns what an instance waits for, one phrase for each kind of task, and what keeps its tasks from ending.
function waitsFor(pending, now) {
  const items = pending?.items || [];
  const of = (what) => items.filter((p) => p.what === what);
  const waits = [];
  const trouble = [];
  const activities = of('activity');
  const idle = (p) => p.noWorker || p.unknownBuild || p.cancelledAt || p.handedOverAt || Date.parse(p.nextTryAt) > now;
  const working = activities.filter((p) => !idle(p));
  if (working.length) waits.push(`waiting for ${working.length === 1 ? 'activity' : 'activities'} ${named(working)}`);
  const handed = activities.filter((p) => p.handedOverAt && !p.cancelledAt);
  if (handed.length) waits.push(`waiting for the asynchronous completion of ${named(handed)}`);
  const retried = activities.filter((p) => Date.parse(p.nextTryAt) > now && !p.cancelledAt);
  if (retried.length) waits.push(`waiting for the next attempt of ${named(retried)}${retried.length === 1 ? '' : ', the first'} ${atTime(retried.map((p) => p.nextTryAt).sort()[0], now)}`);
  const children = of('sub_orchestration').filter((p) => !p.cancelledAt);
  if (children.length) waits.push(`waiting for ${children.length === 1 ? `sub-orchestration ${children[0].name || children[0].childId}` : several(children.length, 'sub-orchestration')}`);
  const events = of('external_event');
  const timers = of('timer');
  const due = timers.length === 1 && events.length === 1 && timers[0].dueAt;
  const until = due && (Date.parse(due) - now < 3_600_000 ? ` for up to ${span(Math.max(0, Date.parse(due) - now))}` : ` until ${dayTime(due, now)}`); // probably the timeout of the wait
  if (events.length) waits.push(`waiting for event${events.length === 1 ? '' : 's'} ${named(events)}${until || ''}`);
  if (timers.length && !until) {
    const next = timers.map((p) => p.dueAt).filter(Boolean).sort()[0];
    waits.push(`waiting for ${timers.length === 1 ? `timer${timers[0].name ? ` “${timers[0].name}”` : ''}, due ${next ? dayTime(next, now) : 'soon'}` : `${several(timers.length, 'timer')}, the first due ${next ? dayTime(next, now) : 'soon'}`}`);
  }
  const sent = items.filter((p) => p.what.startsWith('sent_'));
  if (sent.length) waits.push(`waiting for an answer to ${named(sent)}`);
  const updates = of('update');
  if (updates.length) waits.push(`handling ${several(updates.length, 'update')}`);
  const ending = items.filter((p) => p.cancelledAt);
  if (ending.length) waits.push(`waiting until the cancelled ${named(ending)} ${ending.length === 1 ? 'ends' : 'end'}`);

  for (const p of items) {
    const at = Date.parse(p.since) || now;
    const add = (rank, text) => trouble.push({ rank, at, text });
    if (p.cause) trouble.push({ rank: p.rank, at, text: `${p.name || 'sub-orchestration'} #${p.id} → ${p.childId}: ${p.cause}`, below: true });
    if (p.noWorker) add(stuckRank, `no worker runs ${p.name} (${noReport(p, now)})`);
    else if (p.unknownBuild) add(stuckRank, `${p.name} is not registered in build ${p.unknownBuild}`);
    if (p.attempt > 1 || p.lastError) add(retryRank, `${several(Math.max(1, (p.attempt || 2) - 1), 'retry', 'retries')} of ${p.name || p.childId}${isLate(p, now) ? `, the next ${lateText(p, now)}` : ''}`);
  }
  trouble.sort((a, b) => a.rank - b.rank || a.at - b.at);
  const limit = untilText(items.filter((p) => !p.cancelledAt && ['activity', 'sub_orchestration', 'external_event'].includes(p.what)), timers, pending, now);
  const start = 'waiting for ';
  const awaited = waits.filter((w) => w.startsWith(start)).map((w) => w.slice(start.length));
  const others = waits.filter((w) => !w.startsWith(start));
  waits.splice(0, waits.length, ...(awaited.length ? [start + awaited.join(awaited.length === 2 ? ' and ' : ', ')] : []), ...others);
  if (limit) waits.push(limit);
  if (pending?.total > items.length) waits.push(`and ${several(pending.total - items.length, 'more task')}`);
  return { waits, trouble, rank: trouble[0]?.rank ?? waitRank };
}

// The ranks of what keeps a task from ending: it cannot go on without help, it is retried, no worker has reported its start, or it waits.
const [stuckRank, retryRank, sentRank, waitRank] = [0, 1, 2, 3];

// noReport names the queue of an activity that no worker runs, and the last report of a worker there.
const noReport = (p, now) => `queue ${p.queue}, ${p.workerSeenAt ? `last worker report ${clockOf(p.workerSeenAt, now)}, ${ago(p.workerSeenAt, now)}` : 'no worker has ever reported'}`;

// hasStarted reports whether a worker has reported that it runs an activity. Workers report heartbeats with details, failures and asynchronous
// completion, so that an activity without them may also run.
const hasStarted = (p) => !p.noWorker && !p.unknownBuild && Boolean(p.handedOverAt || (p.lastHeartbeatAt && !(p.nextTryAt > p.lastHeartbeatAt)));

// sentText describes an activity whose start no worker has reported. queue is the state of its queue, if it is known.
function sentText(p, queue, now) {
  const reported = queue?.worker ? `last worker report there ${ago(queue.worker.seenAt, now)}` : queue ? 'no worker has ever reported there' : '';
  return `sent to queue ${p.queue} ${ago(p.nextTryAt > p.since ? p.nextTryAt : p.since, now)}, still queued or running without a report${reported ? ` (${reported})` : ''}`;
}

// atTime shows a future time as its distance and its clock: in 39 min (17:00:05).
const atTime = (t, now) => `${ago(t, now)} (${clockOf(t, now)})`;

// isLate reports whether the next attempt of an activity is due, and no worker has reported its start.
const isLate = (p, now) => Boolean(p.nextTryAt) && Date.parse(p.nextTryAt) <= now;
const lateText = (p, now) => `due ${sinceClock(p.nextTryAt, now)}`;

// untilText states the deadline of the tasks: the first one, or that there is none. Timers are deadlines themselves. It is empty if a deadline is unknown.
function untilText(tasks, timers, pending, now) {
  if (!tasks.length || timers.length || pending.total > pending.items.length || tasks.some((p) => p.deadline === undefined)) return '';
  const first = tasks.map((p) => p.deadline).filter(Boolean).sort()[0];
  return first ? `${tasks.length > 1 ? 'first ' : ''}deadline ${atTime(first, now)}` : 'no deadline';
}

// causeOf returns what a child waits for, or what keeps it from ending, with the rank of this cause. queueOf returns the state of a queue, if it is known.
function causeOf(s, now, queueOf = () => undefined) {
  if (s.status === 'Blocked') return { rank: stuckRank, text: `blocked${s.failure ? `: ${s.failure.type}` : ''}` };
  if (s.status === 'Paused') return { rank: stuckRank, text: `paused${s.paused?.by ? ` by ${shortName(s.paused.by)}` : ''}` };
  if (over(s.status)) return { rank: waitRank, text: s.status.toLowerCase() };
  const { waits, trouble, rank } = waitsFor(s.pending, now);
  const sent = (s.pending?.items || []).filter((p) => p.what === 'activity' && p.queue && !p.cancelledAt && !hasStarted(p) && now - Date.parse(p.since) > startAfter);
  if (sent.length && rank > sentRank) return { rank: sentRank, text: `activity ${sent[0].name} ${sentText(sent[0], queueOf(sent[0].queue), now)}` };
  return { rank, text: trouble[0]?.text || waits[0] || (s.status === 'Pending' ? 'waiting for its first turn' : 'between two turns') };
}
const startAfter = 10_000; // milliseconds in which a worker normally receives an activity

const mostTrouble = 3;
// troubleText states what keeps the tasks of an instance from ending. The list of problems has the causes of children.
function troubleText(all) {
  const trouble = all.filter((t) => !t.below).map((t) => t.text);
  if (!trouble.length) return '';
  return `; ${trouble.slice(0, mostTrouble).join(', ')}${trouble.length > mostTrouble ? ` and ${several(trouble.length - mostTrouble, 'more problem')}` : ''}`;
}

// endText says who requested the end of a cancelled or terminated instance, and why, as far as it is recorded.
function endText(by, reason, message) {
  const why = [reason && reason !== 'requested' ? reasonText(reason) : '', message ? `“${message}”` : ''].filter(Boolean).join(', ');
  return `${by ? `, by ${requester(by)}` : ''}${why ? `: ${why}` : ''}.`;
}

// nowSentence says in one sentence what an instance is doing, or how it ended. pending is null until it is loaded, and cancel is the cancellation of the
// instance, if the history has one.
function nowSentence(s, pending, now, cancel) {
  const age = span(Math.max(0, now - Date.parse(s.startAt && Date.parse(s.startAt) > Date.parse(s.createdAt) ? s.startAt : s.createdAt)));
  const took = span(Math.max(0, Date.parse(s.updatedAt) - Date.parse(s.createdAt)));
  const { waits, trouble } = waitsFor(pending, now);
  const work = `${waits.length ? `, ${waits.join(', ')}` : ''}${troubleText(trouble)}`;
  const why = s.failure ? `: ${failureLines(s.failure)[0]}` : '';
  switch (s.status) {
    case 'Pending': return s.startAt && Date.parse(s.startAt) > now ? `Starts ${dayTime(s.startAt, now)}.` : `Waiting for its first turn for ${age}.`;
    case 'Completed': return `Completed after ${took}, ${ago(s.updatedAt, now)}.`;
    case 'Failed': return `Failed after ${took}, ${ago(s.updatedAt, now)}${why}`;
    case 'Cancelled': return `Cancelled after ${took}, ${ago(s.updatedAt, now)}${endText(cancel?.by, cancel?.reason || s.failure?.reason, cancel?.message || s.failure?.message)}`;
    case 'Terminated': return `Terminated after ${took}, ${ago(s.updatedAt, now)}${endText(s.terminatedBy, '', s.failure?.message)}`;
    case 'Deleting': return 'The instance is being purged.';
    case 'Paused': return `Paused for ${span(now - Date.parse(s.paused?.at || s.updatedAt))}${s.paused?.by ? ` by ${shortName(s.paused.by)}` : ''}${work}.`;
    case 'Blocked': return `Blocked for ${span(now - Date.parse(s.updatedAt))}: ${s.failure?.type === 'nondeterminism' ? 'the code does not match the history' : s.failure?.message || s.failure?.type || 'the code cannot continue'}.`;
    case 'Cancelling': return `Cancelling${cancel?.by ? ` (requested by ${requester(cancel.by)})` : ''}, running for ${age}${work}.`;
    default: return `Running for ${age}${work || (pending && !pending.unread ? ', between two turns' : '')}.`;
  }
}

// cancelSentence describes a cancellation: who requested it and why, when the worker saw it, and how the work ended. The times are milliseconds.
const endSentences = {
  never_started: 'it had not started', never_fires: 'the timer was removed', cancelled: 'it was cancelled', failed: 'it failed', refused: 'it was not cancelled', worker_gone: 'the worker was lost', timed_out: 'no worker reported its end in time',
};
const seenEnds = { stopped: 'stopped', finished: 'completed anyway', leaked: 'did not stop, so it was abandoned' };
function cancelSentence(c, activity = true) {
  const requested = c.reason === 'requested';
  const by = c.by && (requested || !['body', 'engine'].includes(c.by)) ? ` by ${requester(c.by)}` : ''; // other reasons imply the orchestration or the engine
  const cause = requested && by ? '' : c.reason ? `: ${reasonText(c.reason)}` : '';
  const message = c.message ? `${cause ? ',' : ':'} “${c.message}”` : '';
  const from = c.seen || c.decided;
  const later = c.ended && c.ended > from ? ` ${c.seen ? `${span(c.ended - from)} later` : `after ${span(c.ended - from)}`}` : '';
  let end = '';
  if (c.seen) {
    end = `; the worker saw it after ${span(c.seen - c.decided)} and ${seenEnds[c.how] ? `${seenEnds[c.how]}${later}` : c.how ? `then ${endSentences[c.how] || c.how}${later}` : 'has not stopped yet'}`;
  } else if (seenEnds[c.how]) end = `; it ${seenEnds[c.how]}${later}`;
  else if (c.how) end = `; ${endSentences[c.how] || c.how.replaceAll('_', ' ')}${later}`;
  else if (activity && c.open) end = '; no worker has seen it so far';
  return `Cancelled${by}${cause}${message}${end}`;
}
