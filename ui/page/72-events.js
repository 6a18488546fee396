// The tabs of an instance that list events, pending tasks and cancellations.

// eventsPanel lists the events of an execution: all of them, or in the compact view one row for each task with its outcome.
function eventsPanel(view, choose, saveJSON) {
  const hidden = new Set();
  let search = '';
  let failures = false;
  let compact = new URLSearchParams(location.search).has('compact');
  const grid = new Grid({
    name: 'events', label: 'Events', columns: ['#', 'Time', 'Elapsed', 'Kind', 'Details', 'Size'], height: () => (narrow.matches ? 54 : 30), empty: 'No matching events',
    open: (row) => choose(row.task || row),
    render(row, cells) {
      const e = row.event;
      put(cells[0], `#${e.id}`);
      put(cells[1], moment(e.at));
      put(cells[2], `+${span(e.at - view.model.instance.start)}`);
      put(cells[3], row.task ? kindWords[row.task.kind] : e.kind);
      const failed = isFailure(row);
      cells[4].className = failed ? 'cell wrong' : 'cell';
      const text = row.task ? `${row.task.name} · ${outcomeText(row.task)}` : eventSummary(e);
      put(cells[4], text);
      if (cells[4].title !== text) cells[4].title = text;
      put(cells[5], (e.bytes ??= payloadFields.reduce((n, f) => n + bytesOf(e[f]), 0)) ? size(e.bytes) : '');
    },
  });
  const isFailure = (row) => (row.task ? row.task.state === 'failed' || row.task.fails.length > 0 : Boolean(row.event.error) || /Failed$|Terminated$/.test(row.event.kind));

  function outcomeText(row) {
    const took = span((row.end || Date.now()) - row.start);
    if (row.cancel) return view.cancelText(row.cancel, row.kind === 'activity');
    if (row.state === 'failed') return `failed after ${took}: ${failureLines(row.endEvent?.error)[0] || row.endEvent?.message || ''}`;
    if (row.kind === 'detached') return `scheduled ${row.child}`;
    if (row.kind === 'told') return row.state === 'done' ? `delivered after ${took}` : 'sent';
    const attempts = row.attempt > 1 ? `, ${count(row.attempt)} attempts` : '';
    const ends = { timer: 'fired', wait: 'received' }[row.kind] || 'completed';
    return { done: `${ends} after ${took}${attempts}`, gone: 'never received', open: `pending for ${took}${attempts}` }[row.state] || row.state;
  }

  // merged are the kinds that the compact view shows with the event that they belong to, or not at all.
  const merged = new Set(['ActivityRetryScheduled', 'ActivityCompleted', 'ActivityFailed', 'ActivityCancelRequested', 'TimerFired', 'TimerCancelled', 'SubOrchestrationCompleted', 'SubOrchestrationFailed', 'SubOrchestrationCancelRequested', 'ExternalEventDelivered', 'ExternalEventUndelivered', 'UpdateAnswered', 'TurnStarted', 'OutputFailed']);
  function draw() {
    const rows = [];
    for (const e of view.model.events) {
      if (hidden.size && hidden.has(groupFor(e.kind))) continue;
      const task = compact ? view.model.byID.get(e.id) : undefined;
      if (compact && !task && merged.has(e.kind)) continue;
      const row = task ? (e.compact ??= { key: `c${e.id}`, event: e, task }) : (e.row ??= { key: `e${e.id}`, event: e });
      if (failures && !isFailure(row)) continue;
      if (search && !`${e.kind} ${e.name || e.change || ''} ${e.instanceId || ''} ${e.message || ''} ${e.reason || ''} ${e.error ? failureLines(e.error).join(' ') : ''} ${task ? outcomeText(task) : ''} #${e.id}`.toLowerCase().includes(search)) continue;
      rows.push(row);
    }
    grid.set(rows);
  }

  function set(on) {
    compact = on;
    for (const b of modes.children) b.setAttribute('aria-pressed', (b.textContent === 'Compact') === on);
    const next = new URLSearchParams(location.search);
    if (on) next.set('compact', ''); else next.delete('compact');
    history.replaceState(null, '', '?' + next);
    draw();
  }
  const mode = (label, on) => h('button', { type: 'button', 'aria-pressed': String(compact === on), onclick: () => set(on) }, label);
  const modes = h('div', { class: 'modes', role: 'group', 'aria-label': 'Events view' }, mode('Full', false), mode('Compact', true));
  const check = (label, checked, onchange) => h('label', {}, h('input', { type: 'checkbox', checked, onchange: (e) => { onchange(e.target.checked); draw(); } }), label);
  const kinds = h('fieldset', { class: 'kinds' }, h('legend', { class: 'sr' }, 'Event kinds'), groupNames.map((g) => check(g, true, (on) => { if (on) hidden.delete(g); else hidden.add(g); })));
  const box = h('input', { type: 'search', placeholder: 'Search kind, name, message', 'aria-label': 'Search events', oninput: (e) => { search = e.target.value.toLowerCase(); draw(); } });
  const save = h('button', { type: 'button', disabled: true, onclick: saveJSON }, 'Download JSON');
  const bar = h('div', { class: 'bar-row' }, modes, kinds, h('span', { class: 'toggle failures' }, check('Only failures', false, (on) => { failures = on; })), h('span', { class: 'grow' }), box, save);
  return { grid, bar, draw, save };
}

// eventSummary describes an event in one line.
function eventSummary(e) {
  const parts = [];
  if (e.name) parts.push(e.name);
  if (e.change) parts.push(`${e.change}: version ${e.version}`);
  if (e.instanceId) parts.push(e.instanceId);
  if (e.sourceEventId) parts.push(`for #${e.sourceEventId}`);
  if (e.sourceEventIds) parts.push(`for ${e.sourceEventIds.map(([a, b]) => (a === b ? `#${a}` : `#${a}–#${b}`)).slice(0, 8).join(' ')}`);
  if (e.inline) parts.push('inline');
  if (e.attempt > 1) parts.push(`attempt ${e.attempt}`);
  if (e.reason) parts.push(e.reason);
  if (e.requestedBy) parts.push(`by ${shortName(e.requestedBy)}`);
  if (e.message) parts.push(`“${e.message}”`);
  if (e.error) parts.push(failureLines(e.error)[0]);
  if (e.buildId) parts.push(`build ${e.buildId}`);
  if (e.fireAt) parts.push(`due ${moment(e.fireAt)}`);
  return parts.join('  ').slice(0, 300);
}

// pendingPanel lists what an instance waits for.
function pendingPanel(view, choose) {
  const note = h('p', { class: 'muted' });
  const grid = new Grid({
    name: 'pending', label: 'Pending tasks', columns: ['#', 'Task', 'Name', 'Attempt', 'Status', 'Since'], height: () => (narrow.matches ? 92 : 62), empty: 'No pending tasks',
    open: (row) => choose(view.model.byID.get(row.p.id) || row),
    render({ p }, cells) {
      put(cells[0], `#${p.id}`);
      put(cells[1], p.what.replace('_', '-'));
      const named = `${p.name || ''} ${p.childId || ''}`;
      if (cells[2].shown !== named) {
        cells[2].shown = named;
        put(cells[2], p.childId ? [p.name ? `${p.name} → ` : '', childLink(p.childId)] : p.name || '');
      }
      put(cells[3], p.attempt ? `${p.attempt}${p.maxAttempts ? ` of ${p.maxAttempts}` : ''}` : '');
      cells[4].className = p.lastError || p.noWorker || p.unknownBuild ? 'cell wrong wrap' : 'cell wrap';
      const text = pendingText(p);
      put(cells[4], text);
      if (cells[4].title !== text) cells[4].title = text;
      put(cells[5], ago(p.since));
      if (cells[5].title !== exact(p.since)) cells[5].title = exact(p.since);
    },
  });
  function draw() {
    const p = view.pending;
    note.textContent = !p ? 'Loading pending tasks …' : p.unread ? `Could not load pending tasks: ${p.unread.detail}` : p.total > p.items.length ? `${count(p.items.length)} of ${count(p.total)} tasks, failed attempts first` : p.items.some((x) => x.lastError) ? 'Failed attempts first' : '';
    grid.set((p?.items || []).map((x) => ({ key: String(x.id), id: x.id, p: x })));
  }
  return { grid, bar: note, draw };
}

// pendingText describes the progress of a pending task.
function pendingText(p) {
  const now = Date.now();
  const said = [];
  if (p.handedOverAt) said.push(`waiting for asynchronous completion for ${span(now - Date.parse(p.handedOverAt))}${p.limitAt ? `, timeout check ${atTime(p.limitAt, now)}` : ''}`);
  if (p.noWorker) said.push(`waiting in queue ${p.queue}, ${p.workerSeenAt ? `no worker has reported since ${moment(p.workerSeenAt)}` : 'no worker has ever reported'}`);
  if (p.unknownBuild) said.push(`not registered in build ${p.unknownBuild}`);
  if (p.lastError) said.push(`last error ${failureLines(p.lastError)[0]}`);
  if (p.lastError?.details !== undefined) said.push(`details ${sealedOf(p.lastError.details) || JSON.stringify(p.lastError.details)}`);
  if (p.nextTryAt) said.unshift(`attempt ${p.attempt || ''} ${isLate(p, now) ? lateText(p, now) : atTime(p.nextTryAt, now)}`.replace('  ', ' '));
  if (p.dueAt) said.push(Date.parse(p.dueAt) > now ? `due ${atTime(p.dueAt, now)}` : lateText({ nextTryAt: p.dueAt }, now));
  if (p.cause) said.push(p.cause);
  if (p.lastHeartbeatAt) said.push(`heartbeat ${span(now - Date.parse(p.lastHeartbeatAt))} ago`);
  if (p.cancelledAt) said.push(`cancelled (${reasonText(p.cancelReason)}), waiting for it to end`);
  if (!said.length && p.what === 'activity') said.push(sentText(p, hubHealth.queue(p.queue), now));
  if (p.deadline !== undefined && !p.cancelledAt) said.push(p.deadline ? `deadline ${atTime(p.deadline, now)}` : `no deadline${p.attemptMs ? `, at most ${span(p.attemptMs)} an attempt` : ''}`);
  return said.join(' · ');
}

// cancellationsPanel lists the cancellations, each as a sentence. Tasks that did not stop come first.
function cancellationsPanel(view, choose) {
  const note = h('p', { class: 'muted' }, 'Select a cancellation for its times. Tasks that did not stop come first.');
  const bad = new Set(['leaked', 'worker_gone', 'timed_out', 'failed', 'refused']);
  const grid = new Grid({
    name: 'cancels', label: 'Cancellations', columns: ['#', 'Task', 'What happened'], height: () => (narrow.matches ? 88 : 38), empty: 'No cancellations',
    open: (row) => choose(row.c.target === 'instance' ? view.model.instance : view.model.byID.get(row.c.id) || row),
    render({ c, text }, cells) {
      put(cells[0], `#${c.id}`);
      put(cells[1], `${c.target.replace('_', '-')} ${c.name || ''} ${c.childId || ''}`);
      cells[2].className = bad.has(c.end) ? 'cell wrong' : 'cell';
      put(cells[2], text);
      if (cells[2].title !== text) cells[2].title = text;
    },
  });
  function draw() {
    grid.empty.textContent = view.status?.status === 'Cancelled' ? 'The history has no request for the cancellation, and no task was cancelled' : 'No cancellations';
    const rows = view.cancels.map((c) => {
      const times = { decided: Date.parse(c.decidedAt), seen: c.seenAt && Date.parse(c.seenAt), ended: c.endedAt && Date.parse(c.endedAt), how: c.end, reason: c.reason, by: c.requestedBy, message: c.message };
      return { key: c.target === 'instance' ? 'instance' : String(c.id), c, times, text: view.cancelText(times, c.target === 'activity') };
    });
    grid.set([...rows.filter((r) => bad.has(r.c.end)), ...rows.filter((r) => !bad.has(r.c.end))]);
  }
  return { grid, bar: note, draw };
}
