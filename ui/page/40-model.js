// The model of a history: the rows of the timeline, each with its segments. Events are added in order.

const groups = {
  Activities: ['ActivityScheduled', 'ActivityRetryScheduled', 'ActivityCompleted', 'ActivityFailed'],
  Timers: ['TimerCreated', 'TimerFired'],
  Children: ['SubOrchestrationScheduled', 'SubOrchestrationCompleted', 'SubOrchestrationFailed', 'DetachedOrchestrationScheduled'],
  'External events': ['ExternalEventSubscribed', 'ExternalEventRaised', 'ExternalEventSent', 'ExternalEventDelivered', 'ExternalEventUndelivered'],
  Updates: ['UpdateReceived', 'UpdateAccepted', 'UpdateRejected', 'UpdateCompleted', 'UpdateAwaited', 'UpdateSent', 'UpdateAnswered'],
  Cancellations: ['CancelRequested', 'ActivityCancelRequested', 'TimerCancelled', 'SubOrchestrationCancelRequested', 'SubOrchestrationCancelFailed'],
  Turns: ['TurnStarted'],
};
const groupOf = new Map(Object.entries(groups).flatMap(([g, kinds]) => kinds.map((k) => [k, g])));
const groupNames = [...Object.keys(groups), 'Other'];
const groupFor = (kind) => groupOf.get(kind) || 'Other';

const payloadFields = ['input', 'result', 'output', 'data', 'value', 'customStatus'];

class Model {
  constructor() {
    this.events = [];
    this.rows = [];
    this.byID = new Map();
    this.waits = new Map();
    this.raised = new Map();
    this.failed = [];
    this.instance = { id: 0, key: 'instance', kind: 'instance', name: '', start: 0, end: 0, state: 'open', segs: [] };
    this.rows.push(this.instance);
    this.last = 0;
  }

  add(e) {
    e.at = Date.parse(e.time);
    this.events.push(e);
    this.last = e.id;
    this[e.kind]?.(e);
    if (e.kind === 'InputsParked') this.parked(e);
    if (e.kind.startsWith('Orchestration') && e.kind !== 'OrchestrationStarted') this.ended(e);
  }

  // parked settles the rows whose outcome was received while the instance is blocked or paused.
  parked(e) {
    if (!this.pausedSince) this.blockedSince ??= e.at;
    for (const input of e.inputs || []) {
      this.each(input, (row) => {
        row.parked = true;
        this.settle(row, { ...input, at: Date.parse(input.time) || e.at }, input.error ? 'failed' : 'done');
      });
    }
  }

  open(e, kind, name) {
    const row = { id: e.id, key: String(e.id), kind, name, start: e.at, end: 0, state: 'open', segs: [], event: e, attempt: 1, fails: [] };
    this.rows.push(row);
    this.byID.set(e.id, row);
    return row;
  }

  sources(e) {
    if (e.sourceEventId) return [e.sourceEventId];
    const ids = [];
    for (const [a, b] of e.sourceEventIds || []) for (let i = a; i <= b; i++) ids.push(i);
    return ids;
  }

  each(e, f) {
    for (const id of this.sources(e)) { const row = this.byID.get(id); if (row) f(row); }
  }

  settle(row, e, state) {
    if (row.end && row.state !== 'cancelled') return;
    row.end = e.at;
    row.state = row.cancel && state !== 'failed' ? 'cancelled' : state;
    row.endEvent = e;
    row.attempt = e.attempt || row.attempt;
    if (row.state === 'failed') this.failed.push(row);
  }

  OrchestrationStarted(e) { Object.assign(this.instance, { name: e.name, start: e.at, event: e }); }

  TurnStarted(e) {
    this.firstTurn ??= e.at;
    if (this.blockedSince) { this.instance.segs.push({ from: this.blockedSince, to: e.at, type: 'blocked' }); this.blockedSince = undefined; }
  }

  ActivityScheduled(e) { this.open(e, 'activity', e.name); }

  ActivityRetryScheduled(e) {
    this.each(e, (row) => {
      const began = row.next || row.start;
      const next = e.fireAt ? Date.parse(e.fireAt) : e.at;
      row.segs.push({ from: began, to: e.at, type: 'failed', attempt: (e.attempt || 2) - 1 }, { from: e.at, to: next, type: 'backoff' });
      row.fails.push({ attempt: (e.attempt || 2) - 1, from: began, to: e.at, error: e.error, next });
      row.next = next;
      row.attempt = e.attempt || row.attempt + 1;
    });
  }

  ActivityCompleted(e) { this.each(e, (row) => this.settle(row, e, 'done')); }
  ActivityFailed(e) { this.each(e, (row) => this.settle(row, e, e.error?.type === 'cancelled' ? 'cancelled' : 'failed')); }
  OutputFailed(e) { this.each(e, (row) => this.settle(row, e, 'failed')); }
  ActivityCancelRequested(e) { this.cancel(e); }
  SubOrchestrationCancelRequested(e) { this.cancel(e); }
  TimerCancelled(e) { this.cancel(e); }

  cancel(e) {
    this.each(e, (row) => {
      if (row.end) return;
      row.cancel = { decided: e.at, reason: e.reason, by: e.requestedBy, message: e.message };
      if (!row.event.cancel?.wait) { row.end = e.at; row.state = 'cancelled'; }
    });
  }

  TimerCreated(e) { this.open(e, 'timer', `${e.message || 'timer'} ${span(Date.parse(e.fireAt) - e.at)}`).due = Date.parse(e.fireAt); }
  TimerFired(e) { this.each(e, (row) => this.settle(row, e, 'done')); }

  SubOrchestrationScheduled(e) { this.open(e, 'child', e.name).child = e.instanceId; }
  SubOrchestrationCompleted(e) { this.each(e, (row) => this.settle(row, e, 'done')); }
  SubOrchestrationFailed(e) { this.each(e, (row) => this.settle(row, e, e.error?.type === 'cancelled' ? 'cancelled' : 'failed')); }
  DetachedOrchestrationScheduled(e) {
    const row = this.open(e, 'detached', e.name);
    Object.assign(row, { child: e.instanceId, end: e.at, state: 'done' });
  }

  ExternalEventSent(e) { this.open(e, 'told', `${e.name} to ${e.instanceId}`); }
  UpdateSent(e) { this.open(e, 'told', `${e.name} to ${e.instanceId}`); }
  UpdateAnswered(e) { this.each(e, (row) => this.settle(row, e, e.error ? 'failed' : 'done')); }
  ExternalEventDelivered(e) { this.each(e, (row) => this.settle(row, e, 'done')); }
  ExternalEventUndelivered(e) { this.each(e, (row) => this.settle(row, e, 'failed')); }

  ExternalEventSubscribed(e) {
    const row = this.open(e, 'wait', e.name);
    const came = this.raised.get(e.name)?.shift();
    if (came) { row.end = e.at; row.state = 'done'; row.endEvent = came; } else pushTo(this.waits, e.name, row);
  }

  ExternalEventRaised(e) {
    const row = this.waits.get(e.name)?.shift();
    if (row) this.settle(row, e, 'done');
    else pushTo(this.raised, e.name, e);
  }

  // ExecutionSuspended starts a band on the instance's bar. The band ends when the instance resumes or ends.
  ExecutionSuspended(e) { this.pausedSince ??= e.at; }

  ExecutionResumed(e) {
    if (this.pausedSince) this.instance.segs.push({ from: this.pausedSince, to: e.at, type: 'paused' });
    this.pausedSince = undefined;
  }

  CancelRequested(e) { this.instance.cancel ??= { decided: e.at, reason: e.reason, by: e.requestedBy, message: e.message }; }

  ended(e) {
    const state = { OrchestrationCompleted: 'done', OrchestrationContinuedAsNew: 'done', OrchestrationFailed: 'failed', OrchestrationCancelled: 'cancelled', OrchestrationTerminated: 'failed' }[e.kind];
    if (!state) return;
    this.ExecutionResumed(e);
    Object.assign(this.instance, { end: e.at, state, endEvent: e });
    for (const list of this.waits.values()) for (const row of list) { row.end = e.at; row.state = 'gone'; }
  }

  // told adds the data that only the API has: when the worker observed a cancellation, and how the work ended.
  told(items) {
    for (const c of items) {
      const row = c.target === 'instance' ? this.instance : this.byID.get(c.id);
      if (!row) continue;
      row.cancel = {
        decided: Date.parse(c.decidedAt), seen: c.seenAt ? Date.parse(c.seenAt) : 0, ended: c.endedAt ? Date.parse(c.endedAt) : 0, how: c.end, reason: c.reason,
        by: c.requestedBy || row.cancel?.by, message: c.message, error: c.error,
      };
    }
  }

  // segments returns the parts of a row's bar until now.
  segments(row, now) {
    const to = row.end || now;
    if (row.kind === 'instance') {
      const began = this.firstTurn ?? to;
      const segs = [{ from: row.start, to: began, type: 'wait' }, { from: began, to, type: `whole${row.end ? '' : ' open'}` }, ...row.segs];
      if (this.pausedSince && !row.end) segs.push({ from: this.pausedSince, to: now, type: 'paused' });
      if (this.blockedSince && !row.end) segs.push({ from: this.blockedSince, to: now, type: 'blocked' });
      return segs;
    }
    if (row.kind === 'timer' || row.kind === 'wait') return [{ from: row.start, to, type: row.state === 'gone' ? 'gone' : 'wait' }];
    const segs = row.segs.slice();
    let from = row.next || row.start;
    if (row.retry && !row.end) { // history records attempts with the outcome. Until then, only the last failure is known.
      const { failed, next } = row.retry;
      segs.push({ from, to: failed, type: 'tried' }, { from: failed, to: next, type: 'backoff' });
      from = next;
    }
    const cut = row.cancel ? Math.min(row.cancel.decided, to) : to;
    const type = row.kind === 'activity' ? 'work' : 'child';
    if (from > now && !row.end) return segs;
    const waits = row.kind === 'activity' ? !row.begun : row.unbegun;
    if (waits && !row.end && !row.cancel) return [...segs, { from, to, type: 'wait' }];
    const several = row.end && row.attempt > 1 && !row.fails.length && row.kind === 'activity';
    const never = row.cancel?.how === 'never_started';
    segs.push({ from: Math.min(from, cut), to: cut, type: never ? 'wait' : several ? `tried${row.state === 'failed' ? ' failed' : ''}` : row.state === 'failed' ? 'failed' : row.end || row.cancel ? type : `${type} open` });
    const c = row.cancel;
    if (c && row.kind === 'activity') {
      const after = c.ended || (row.end > c.decided ? row.end : 0) || (c.how ? c.decided : now);
      if (c.seen) segs.push({ from: c.decided, to: c.seen, type: 'unseen' }, { from: c.seen, to: Math.max(c.seen, after), type: 'seen' });
      else if (!c.how) segs.push({ from: c.decided, to: Math.max(after, c.decided), type: 'unseen' });
    }
    return segs;
  }
}

function pushTo(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value); else map.set(key, [value]);
}

// cancelSteps returns the steps of a cancellation: the request with its requester and reason, the observation by the worker, and the end of the work. Each duration starts
// at the previous step.
const reasonTexts = {
  requested: 'requested', select_loser: 'lost a select', dropped_future: 'scope ended', timeout: 'timed out', parent_cancelled: 'parent cancelled', instance_deleted: 'instance purged',
};
const reasonText = (reason) => reasonTexts[reason] || (reason || '').replace(/^orchestration_terminal_/, 'orchestration ').replaceAll('_', ' ');
const endTexts = {
  never_started: 'never started', never_fires: 'timer removed', stopped: 'stopped', finished: 'completed anyway', leaked: 'abandoned (ignored its context)', cancelled: 'cancelled',
  failed: 'failed', refused: 'not cancelled', worker_gone: 'worker lost', timed_out: 'timed out without a report',
};

// requester names the sender of a request: an IAM session, or one of the engine's own names.
function requester(by) {
  if (by?.startsWith('parent:')) return `parent ${by.slice('parent:'.length)}`;
  return { body: 'the orchestration', engine: 'the engine', client: 'a client' }[by] || shortName(by);
}

function cancelSteps(c) {
  const requested = c.reason === 'requested';
  const by = c.by && (requested || !['body', 'engine'].includes(c.by)) ? `by ${requester(c.by)}` : ''; // other reasons imply the orchestration or the engine
  const text = [by, c.reason && !(requested && by) ? `(${reasonText(c.reason)})` : '', c.message ? `“${c.message}”` : ''].filter(Boolean).join(' ');
  const steps = [{ sign: '◆', what: 'Cancelled', at: c.decided, text }];
  if (c.seen) steps.push({ sign: '◇', what: 'observed', at: c.seen, text: `+${span(c.seen - c.decided)}` });
  if (c.how) steps.push({ sign: '■', what: endTexts[c.how] || c.how, at: c.ended || 0, text: c.ended ? `+${span(c.ended - (c.seen || c.decided))}` : '' });
  return steps;
}

// Scale maps time to pixels. A long period without events and running activities is collapsed to a narrow strip.
class Scale {
  constructor(model, now, folding) {
    const spans = [];
    const end = model.instance.end;
    for (const e of model.events) spans.push([e.at, e.at]);
    for (const row of model.rows) {
      if (row.kind === 'activity') for (const s of model.segments(row, now)) { if (s.type !== 'backoff' && s.type !== 'wait') spans.push([s.from, Math.max(s.from, s.to)]); else spans.push([s.from, s.from]); }
      if (row.cancel?.ended) spans.push([row.cancel.ended, row.cancel.ended]);
    }
    if (!end) spans.push([now, now]);
    spans.sort((a, b) => a[0] - b[0]);
    this.from = spans[0]?.[0] ?? now;
    const gaps = [];
    let reach = this.from;
    for (const [a, b] of spans) {
      if (a > reach) gaps.push([reach, a]);
      if (b > reach) reach = b;
    }
    this.to = Math.max(reach, this.from + 1);
    const idle = gaps.reduce((sum, [a, b]) => sum + b - a, 0);
    this.idle = idle;
    this.busy = Math.max(0, this.to - this.from - idle);
    const least = Math.max(2000, this.busy * 0.2);
    this.folds = folding && this.busy > 0 ? gaps.filter(([a, b]) => b - a > least) : [];
    this.parts = [];
    let at = this.from;
    for (const [a, b] of this.folds) { if (a > at) this.parts.push({ a: at, b: a }); this.parts.push({ a, b, fold: true }); at = b; }
    if (at < this.to || !this.parts.length) this.parts.push({ a: at, b: this.to });
    this.fit(600, 1, 0);
  }

  fit(width, zoom, pan) {
    this.width = width;
    const all = width * zoom;
    const strip = this.folds.length ? Math.min(34, width * 0.35 / this.folds.length) : 0;
    const open = this.parts.reduce((sum, p) => sum + (p.fold ? 0 : p.b - p.a), 0) || 1;
    const rate = (all - strip * this.folds.length) / open;
    let x = 0;
    for (const p of this.parts) { p.x = x; p.w = p.fold ? strip : (p.b - p.a) * rate; x += p.w; }
    this.shift = pan * Math.max(0, all - width);
  }

  x(t) {
    const parts = this.parts;
    let low = 0;
    let high = parts.length - 1;
    while (low < high) { const mid = (low + high + 1) >> 1; if (parts[mid].a <= t) low = mid; else high = mid - 1; }
    const p = parts[low];
    const share = p.b > p.a ? (t - p.a) / (p.b - p.a) : 0;
    return p.x + Math.max(0, Math.min(1, share)) * p.w - this.shift;
  }

  // ticks returns the visible round times, spaced so that their labels, of labelWidth pixels, neither overlap nor reach beyond the axis. taken is the range
  // of pixels of another label.
  ticks([takenFrom, takenTo] = [0, 0]) {
    const found = [];
    let free = 0;
    for (const p of this.parts) {
      if (p.fold || p.w < 1) continue;
      const step = roundStep((p.b - p.a) / p.w * 110);
      for (let t = p === this.parts[0] ? p.a : Math.ceil(p.a / step) * step, n = 0; t <= p.b && n < 4000; t = Math.floor(t / step) * step + step, n++) {
        const x = this.x(t);
        if (x >= free && x <= this.width - labelWidth && (x >= takenTo || x + labelWidth <= takenFrom)) { found.push({ t, x }); free = x + 104; }
      }
    }
    return found;
  }
}

const labelWidth = 98; // pixels of the longest label, 11-28 09:00:00

function roundStep(ms) {
  for (const s of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5]) if (s >= ms) return s;
  return Math.ceil(ms / 2592e6) * 2592e6;
}
