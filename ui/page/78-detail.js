// The details of a task or an event, next to the list in which it was selected.

// taskDetail returns the facts and sections of a task.
function taskDetail(view, row) {
  const e = row.event;
  const facts = [];
  const parts = [];
  const fact = (name, value) => { if (value !== undefined && value !== '' && value !== null) facts.push(h('dt', {}, name), h('dd', {}, value)); };
  const p = view.waiting.get(row.id);
  fact('Status', stateWords[row.state]);
  fact('Scheduled', when(row.start));
  fact('Ended', row.end ? when(row.end) : '');
  fact('Duration', span((row.end || Date.now()) - row.start));
  fact('Queue', e?.queue);
  fact('Inline', e?.inline ? (row.endEvent?.inline ? 'yes, ran in the turn' : row.endEvent ? 'requested, but ran on a worker' : 'requested, runs in the turn or on a worker') : '');
  fact('Instance', row.child ? instanceLink(row.child) : '');
  fact('Due', row.due ? when(row.due) : '');
  fact('Progress', p ? pendingText(p) : '');
  for (const [f, n] of [['startToCloseMs', 'Start-to-close timeout'], ['heartbeatMs', 'Heartbeat timeout'], ['scheduleToCloseMs', 'Schedule-to-close timeout']]) fact(n, e?.[f] ? span(e[f]) : '');
  if (e?.retry) fact('Retry policy', `${e.retry.maxAttempts ? `up to ${e.retry.maxAttempts} attempts` : 'unlimited attempts'}, first retry after ${span(e.retry.initialIntervalMs || 0)}`);
  if (row.kind === 'activity' && row.state === 'open' && !over(view.status?.status || '') && view.current) parts.push(h('div', {}, h('button', { type: 'button', onclick: () => actions.cancelActivity(view.status, row) }, 'Cancel activity …')));
  const err = row.endEvent?.error;
  if (err) parts.push(h('div', { class: 'wrong' }, failureLines(err).map((l, i) => h('div', {}, i ? `caused by ${l}` : l))), payload('Error', err));
  if (row.fails?.length) parts.push(h('section', {}, h('h3', {}, 'Failed attempts'), h('ol', { class: 'steps' }, row.fails.map((f) => h('li', { 'data-sign': '✕' }, h('b', {}, `attempt ${f.attempt}`), ` ${span(f.to - f.from)}, next attempt after ${span(f.next - f.to)}`, h('div', { class: 'wrong' }, failureLines(f.error).map((l) => h('div', {}, l))))))));
  if (row.cancel) parts.push(cancellationDetail(view, row.cancel, row.kind === 'activity'));
  for (const from of [e, row.endEvent]) if (from) for (const f of payloadFields) if (from[f] !== undefined && !(from === e && f === 'result')) parts.push(payload(f[0].toUpperCase() + f.slice(1), from[f]));
  return { title: `${row.name || kindWords[row.kind]} ${row.id ? `#${row.id}` : ''}`, facts, parts };
}

function cancellationDetail(view, c, activity) {
  return h('section', { class: 'stack' }, h('h3', {}, 'Cancellation'), h('p', {}, `${view.cancelText(c, activity)}.`),
    h('ol', { class: 'steps' }, cancelSteps(c).map((s) => h('li', { 'data-sign': s.sign }, h('b', {}, s.what[0].toUpperCase() + s.what.slice(1)), ' ', s.at ? when(s.at) : '', h('div', {}, s.text)))),
    c.by && c.by !== shortName(c.by) ? h('p', { class: 'muted mono' }, c.by) : null);
}

// eventDetail returns the facts and sections of an event.
function eventDetail(view, e) {
  const facts = [];
  const parts = [];
  const fact = (name, value) => { if (value !== undefined && value !== '' && value !== null) facts.push(h('dt', {}, name), h('dd', {}, value)); };
  const status = view.status?.status || '';
  if (view.current && over(status) && status !== 'Deleting') parts.push(h('div', {}, h('button', { type: 'button', onclick: () => actions.restart(view.status, e.id) }, `Restart from #${e.id} …`)));
  fact('Event', `#${e.id}`);
  fact('Time', when(e.at));
  fact('Source events', view.model.sources(e).slice(0, 20).map((n) => `#${n}`).join(' '));
  for (const f of ['name', 'version', 'buildId', 'queue', 'instanceId', 'executionId', 'eventId', 'reason', 'message', 'requestedBy', 'attempt', 'fireAt']) fact(f, e[f] === undefined ? '' : f === 'instanceId' ? instanceLink(e[f]) : String(e[f]));
  if (e.error) parts.push(h('div', { class: 'wrong' }, failureLines(e.error).map((l, i) => h('div', {}, i ? `caused by ${l}` : l))));
  for (const f of payloadFields) if (e[f] !== undefined) parts.push(payload(f, e[f]));
  parts.push(payload('Event JSON', eventOf(e)));
  return { title: e.kind, facts, parts };
}

// eventOf returns an event as the API sent it.
function eventOf(e) {
  const { at, bytes, row, compact, ...event } = e;
  return event;
}
