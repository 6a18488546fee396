// The view of an instance.

const blockedAdvice = {
  nondeterminism: 'Deploy the old code again, and register the new code under another version. If only an input differs, the same build made both decisions, and the code depends on map order, time or randomness: record such values with SideEffect. The instance continues once a build matches its history.',
  unregistered: 'Deploy a build that registers this version of the orchestration. The instance then continues.',
  blocked_outside: 'The code waits for something other than a future of the engine. Fix the code location in the message, and deploy.',
  foreign_goroutine: 'The code calls the engine from its own goroutine. Use perdure.Go at the code location in the message, and deploy.',
  payload_too_large: 'The code continues as new with too many unconsumed inputs for one commit. Deploy code that consumes more of them first. Nothing is lost.',
  poison: 'A turn repeatedly ended the process: out of memory, os.Exit, or the 30 s timeout of the invocation. Find the cause in the log of the orchestrator, fix it and deploy. If you change only the memory size, raise any event to start the next turn.',
  corrupt: 'The history cannot be read. If a newer release wrote it, deploy that release. Otherwise restore the item in the message. Terminate ends the instance without reading its history.',
};

const tabs = [['timeline', 'Timeline'], ['events', 'Events'], ['pending', 'Pending'], ['cancellations', 'Cancellations'], ['family', 'Relationships'], ['data', 'Data']];

function instanceView(address) {
  const id = address.get('instance');
  const view = { id, model: new Model(), status: null, waiting: new Map(), pending: null, cancels: [], execution: address.get('execution') || '', row: address.get('row') || '', choose };
  const stop = new AbortController();
  const hero = h('section', { class: 'hero', 'aria-label': 'Instance' }, h('h1', { class: 'mono' }, id), h('p', { class: 'muted' }, 'Loading …'));
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  const tabBar = h('div', { role: 'tablist', 'aria-label': 'Instance views' });
  const panel = h('div', { role: 'tabpanel', id: 'panel' });
  const detail = h('aside', { class: 'detail', hidden: true, 'aria-label': 'Details', tabindex: '-1' });
  const lines = timeline(view);
  const hidden = new Set();
  let tab = tabs.some(([t]) => t === address.get('tab')) ? address.get('tab') : 'timeline';
  let search = '';
  let askedAt = 0;
  let reading = false;
  let complete = false;

  // ---- tabs ----
  const numbers = () => ({ events: view.model.events.length, pending: view.pending?.total ?? (view.status && over(view.status.status) ? 0 : null), cancellations: view.cancels.length, family: family().length });
  const buttons = tabs.map(([name, label]) => h('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'panel', onclick: () => open(name) }, label));
  tabBar.append(...buttons);
  tabBar.addEventListener('keydown', (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const i = (tabs.findIndex(([t]) => t === tab) + step + tabs.length) % tabs.length;
    open(tabs[i][0]);
    buttons[i].focus();
  });

  function open(name) {
    tab = name;
    const next = new URLSearchParams(location.search);
    if (name === 'timeline') next.delete('tab'); else next.set('tab', name);
    history.replaceState(null, '', '?' + next);
    drawTabs();
    drawPanel();
  }

  function drawTabs() {
    const n = numbers();
    tabs.forEach(([name, label], i) => {
      const text = n[name] === undefined || n[name] === null ? label : `${label} (${count(n[name])})`;
      if (buttons[i].textContent !== text) buttons[i].textContent = text;
      buttons[i].setAttribute('aria-selected', name === tab);
      buttons[i].tabIndex = name === tab ? 0 : -1;
    });
    panel.setAttribute('aria-labelledby', `tab-${tab}`);
    save.disabled = !complete; // a partial history cannot be replayed
  }

  // ---- panels ----
  const events = new Grid({
    name: 'events', label: 'Events', columns: ['#', 'Time', 'Elapsed', 'Kind', 'Details', 'Size'], height: () => (narrow.matches ? 38 : 30), empty: 'No matching events',
    open: (row) => choose(row),
    render(row, cells) {
      const e = row.event;
      put(cells[0], `#${e.id}`);
      put(cells[1], `${moment(e.at)}`);
      put(cells[2], `+${span(e.at - view.model.instance.start)}`);
      put(cells[3], e.kind);
      put(cells[4], eventSummary(e));
      put(cells[5], (e.bytes ??= payloadFields.reduce((n, f) => n + bytesOf(e[f]), 0)) ? size(e.bytes) : '');
    },
  });
  const kindBoxes = h('fieldset', { class: 'kinds' }, h('legend', { class: 'sr' }, 'Event kinds'), groupNames.map((g) => h('label', {}, h('input', { type: 'checkbox', checked: true, onchange: (e) => { if (e.target.checked) hidden.delete(g); else hidden.add(g); drawEvents(); } }), g)));
  const searchBox = h('input', { type: 'search', placeholder: 'Search kind, name, message', 'aria-label': 'Search events', oninput: (e) => { search = e.target.value.toLowerCase(); drawEvents(); } });
  const save = h('button', { type: 'button', disabled: true, onclick: saveJSON }, 'Download JSON');
  const eventsBar = h('div', { class: 'bar-row' }, kindBoxes, h('span', { class: 'grow' }), searchBox, save);

  function drawEvents() {
    const rows = [];
    for (const e of view.model.events) {
      if (hidden.size && hidden.has(groupFor(e.kind))) continue;
      if (search && !`${e.kind} ${e.name || e.change || ''} ${e.message || ''} ${e.reason || ''} ${e.error ? failureLines(e.error).join(' ') : ''} #${e.id}`.toLowerCase().includes(search)) continue;
      rows.push(e.row ??= { key: `e${e.id}`, event: e });
    }
    events.set(rows);
  }

  const pending = new Grid({
    name: 'pending', label: 'Pending tasks', columns: ['#', 'Task', 'Name', 'Attempt', 'Status', 'Since'], height: () => (narrow.matches ? 54 : 36), empty: 'No pending tasks',
    open: (row) => choose(view.model.byID.get(row.p.id) || row),
    render({ p }, cells) {
      put(cells[0], `#${p.id}`);
      put(cells[1], p.what.replace('_', '-'));
      put(cells[2], p.name || p.childId || '');
      put(cells[3], p.attempt ? String(p.attempt) : '');
      put(cells[4], standing(p));
      put(cells[5], moment(p.since));
    },
  });

  function standing(p) {
    const now = Date.now();
    const said = [];
    if (p.handedOverAt) said.push(`waiting for asynchronous completion for ${span(now - Date.parse(p.handedOverAt))}${p.limitAt ? `, timeout check in ${span(Date.parse(p.limitAt) - now)}` : ''}`);
    if (p.noWorker) said.push(`waiting in queue ${p.queue}, ${p.workerSeenAt ? `no worker has reported since ${moment(p.workerSeenAt)}` : 'no worker has ever reported'}`);
    if (p.unknownBuild) said.push(`not registered in build ${p.unknownBuild}`);
    if (p.lastError) said.push(`last error ${failureLines(p.lastError)[0]}`);
    if (p.lastError?.details !== undefined) said.push(`details ${sealedOf(p.lastError.details) || JSON.stringify(p.lastError.details)}`);
    if (p.nextTryAt) said.push(Date.parse(p.nextTryAt) > now ? `next attempt in ${span(Date.parse(p.nextTryAt) - now)}` : 'due');
    if (p.dueAt) said.push(`due in ${span(Date.parse(p.dueAt) - now)}`);
    if (p.lastHeartbeatAt) said.push(`heartbeat ${span(now - Date.parse(p.lastHeartbeatAt))} ago`);
    if (p.cancelledAt) said.push(`cancelled (${reasonText(p.cancelReason)}), waiting for it to end`);
    if (!said.length && p.what === 'activity') said.push('sent, start not reported');
    return said.join(' · ');
  }

  const cancels = new Grid({
    name: 'cancels', label: 'Cancellations', columns: ['#', 'Task', 'Cancelled → observed → ended'], height: () => (narrow.matches ? 54 : 38), empty: 'No cancellations',
    open: (row) => choose(row.c.target === 'instance' ? view.model.instance : view.model.byID.get(row.c.id) || row),
    render({ c, steps }, cells) {
      put(cells[0], `#${c.id}`);
      put(cells[1], `${c.target.replace('_', '-')} ${c.name || ''} ${c.childId || ''}`);
      put(cells[2], h('span', { class: 'chain' }, steps.map((s, i) => [i ? h('span', { class: 'arrow', 'aria-hidden': 'true' }, '→') : null, h('span', {}, h('b', {}, `${s.sign} ${s.what} `), i ? s.text : `${clock(s.at, true)} ${s.text}`)])));
    },
  });

  // place adds the parts of a tab to the panel unless the panel already has them, so that a focused element keeps the
  // focus.
  const pendingNote = h('p', { class: 'muted' });
  const cancelsNote = h('p', { class: 'muted' }, 'Requester and reason of each cancellation, the time until the worker observed it, and the time until the work ended.');
  let built = '';
  function place(above, grid) {
    if (built !== tab) panel.replaceChildren(...above, h('div', { class: 'split' }, grid.root, detail));
    built = tab;
  }

  function drawPanel() {
    if (tab === 'timeline') { place([lines.bars], lines.grid); lines.update(); }
    if (tab === 'events') { place([eventsBar], events); drawEvents(); }
    if (tab === 'pending') {
      const p = view.pending;
      place([pendingNote], pending);
      pendingNote.textContent = !p ? 'Loading pending tasks …' : p.unread ? `Could not load pending tasks: ${p.unread.detail}` : p.total > p.items.length ? `${count(p.items.length)} of ${count(p.total)} tasks, failed attempts first` : p.total ? 'Failed attempts first' : '';
      pending.set((p?.items || []).map((x) => ({ key: String(x.id), id: x.id, p: x })));
    }
    if (tab === 'cancellations') {
      place([cancelsNote], cancels);
      cancels.set(view.cancels.map((c) => ({ key: c.target === 'instance' ? 'instance' : String(c.id), c, steps: cancelSteps({ decided: Date.parse(c.decidedAt), seen: c.seenAt && Date.parse(c.seenAt), ended: c.endedAt && Date.parse(c.endedAt), how: c.end, reason: c.reason, by: c.requestedBy, message: c.message }) })));
    }
    const used = built === tab && panel.contains(document.activeElement);
    if (tab === 'family' && !used) drawFamily();
    if (tab === 'data' && !used) drawData();
    built = tab;
  }

  const family = () => view.model.rows.filter((r) => r.child);

  function link(other, text) { return h('a', { href: '?' + query([['instance', other]]), class: 'mono' }, text || other); }

  async function drawFamily() {
    const up = h('ul', { class: 'tree' });
    const children = family();
    const most = 200;
    const item = (r) => {
      const li = h('li', {}, link(r.child), ' ', h('span', { class: 'muted' }, `${r.name}, ${r.kind === 'detached' ? 'detached' : `${stateWords[r.state]}${r.cancel ? ' (cancelled)' : ''}`} `));
      li.append(descend(r.child, r.start));
      return li;
    };
    const self = h('li', { class: 'self' }, h('span', { class: 'mono' }, view.id), ' ', view.status ? chip(view.status.status) : '', h('ul', {}, children.slice(0, most).map(item), children.length > most ? h('li', { class: 'muted' }, `and ${count(children.length - most)} more: `, h('a', { href: '?' + query([['parent', view.id]]) }, 'list all')) : null));
    up.append(self);
    panel.replaceChildren(h('div', { class: 'card' }, h('div', { class: 'bar-row' }, h('h2', {}, 'Parents and children'), h('a', { href: '?' + query([['parent', view.id]]) }, 'List children')), up));
    let top = self;
    for (let p = view.status?.parent, n = 0; p && n < 20; n++) { // load the chain of parents
      try {
        const s = await get(instancePath(p.instanceId, '?pending=false'), stop.signal);
        const ul = h('ul', {});
        const li = h('li', {}, link(s.instanceId), ' ', h('span', { class: 'muted' }, `${s.orchestration} `), chip(s.status), ul);
        top.replaceWith(li);
        ul.append(top);
        top = li;
        p = s.parent;
      } catch (err) { up.prepend(h('li', { class: 'muted' }, `${p.instanceId}: ${err.message}`)); break; }
    }
  }

  // descend returns a button that shows the children of an instance.
  function descend(of, since) {
    const b = h('button', { type: 'button', class: 'quiet', 'aria-label': `Show children of ${of}` }, '▸ Children');
    b.addEventListener('click', async () => {
      b.disabled = true;
      try {
        const from = new Date(since).toISOString();
        const page = await get(`instances?${query([['parent', of], ['startedAfter', from], ['limit', 100]])}`, stop.signal);
        const items = page.items.map((s) => h('li', {}, link(s.instanceId), ' ', h('span', { class: 'muted' }, `${s.orchestration} `), chip(s.status), ' ', descend(s.instanceId, s.createdAt)));
        b.replaceWith(items.length ? h('ul', {}, items, page.nextCursor ? h('li', {}, h('a', { href: '?' + query([['parent', of]]) }, 'more')) : null) : h('span', { class: 'muted' }, page.nextCursor ? 'none found so far: ' : 'no children', page.nextCursor ? h('a', { href: '?' + query([['parent', of], ['startedAfter', from]]) }, 'continue search') : null));
      } catch (err) { toast(err.message); b.disabled = false; }
    });
    return b;
  }

  function drawData() {
    const s = view.status;
    const first = view.model.events[0];
    const end = view.model.instance.endEvent;
    const parts = [];
    if (first?.input !== undefined) parts.push(payload('Input', first.input));
    if (s?.customStatus !== undefined && s.customStatus !== null) parts.push(payload('Custom status', s.customStatus));
    if (s?.customStatusSealed) parts.push(h('p', { class: 'muted' }, `Custom status: ${size(s.customStatusSealed.bytes)}, not shown`));
    if (s?.output !== undefined) parts.push(payload('Output', s.output));
    else if (end?.output !== undefined) parts.push(payload('Output', end.output));
    if (s?.failure) parts.push(payload('Failure', s.failure));
    const sum = view.model.events.reduce((n, e) => n + payloadFields.reduce((m, f) => m + bytesOf(e[f]), 0), 0);
    panel.replaceChildren(h('div', { class: 'card' }, h('div', { class: 'bar-row' }, h('h2', {}, 'Data'), h('span', { class: 'muted' }, `${size(sum)} of payloads in ${count(view.model.events.length)} events`), h('span', { class: 'grow' }), h('button', { type: 'button', disabled: !complete, onclick: saveJSON }, 'Download JSON')), parts.length ? parts : h('p', { class: 'muted' }, 'No input or output')));
  }

  // saveJSON downloads the execution in the format of perdure history --json, which a test can replay.
  function saveJSON() {
    const events = view.model.events.map(({ at, bytes, row, ...e }) => e);
    download(`${view.id.replace(/[^\w.-]+/g, '_')}.json`, { format: 'perdure.history/1', instanceId: view.id, name: view.model.instance.name, executions: [{ executionId: view.executionId, number: view.model.events[0]?.number || 1, events }] });
  }

  // ---- details ----
  function choose(row) {
    view.row = row.key;
    detail.hidden = false;
    const e = row.event;
    const facts = [];
    const fact = (name, value) => { if (value !== undefined && value !== '' && value !== null) facts.push(h('dt', {}, name), h('dd', {}, value)); };
    const parts = [];
    if (row.kind) {
      const p = view.waiting.get(row.id);
      fact('Status', stateWords[row.state]);
      fact('Scheduled', when(row.start));
      fact('Ended', row.end ? when(row.end) : '');
      fact('Duration', span((row.end || Date.now()) - row.start));
      fact('Queue', e?.queue);
      fact('Inline', e?.inline ? (row.endEvent?.inline ? 'yes, ran in the turn' : row.endEvent ? 'requested, but ran on a worker' : 'requested, runs in the turn or on a worker') : '');
      fact('Instance', row.child ? link(row.child) : '');
      fact('Due', row.due ? when(row.due) : '');
      fact('Progress', p ? standing(p) : '');
      for (const [f, n] of [['startToCloseMs', 'Start-to-close timeout'], ['heartbeatMs', 'Heartbeat timeout'], ['scheduleToCloseMs', 'Schedule-to-close timeout']]) fact(n, e?.[f] ? span(e[f]) : '');
      if (e?.retry) fact('Retry policy', `${e.retry.maxAttempts ? `up to ${e.retry.maxAttempts} attempts` : 'unlimited attempts'}, first retry after ${span(e.retry.initialIntervalMs || 0)}`);
      if (row.kind === 'activity' && row.state === 'open' && !over(view.status?.status || '') && view.current) parts.push(h('div', {}, h('button', { type: 'button', onclick: () => actions.cancelActivity(view.status, row) }, 'Cancel activity …')));
      if (row.cancel) {
        parts.push(h('section', {}, h('h3', {}, 'Cancellation'), h('ol', { class: 'steps' }, cancelSteps(row.cancel).map((s) => h('li', { 'data-sign': s.sign }, h('b', {}, s.what[0].toUpperCase() + s.what.slice(1)), ' ', s.at ? when(s.at) : '', h('div', {}, s.text)))),
          row.cancel.by && row.cancel.by !== shortName(row.cancel.by) ? h('p', { class: 'muted mono' }, row.cancel.by) : null));
      }
      if (row.fails?.length) parts.push(h('section', {}, h('h3', {}, 'Failed attempts'), h('ol', { class: 'steps' }, row.fails.map((f) => h('li', { 'data-sign': '✕' }, h('b', {}, `attempt ${f.attempt}`), ` ${span(f.to - f.from)}, next attempt after ${span(f.next - f.to)}`, h('div', { class: 'wrong' }, failureLines(f.error).map((l) => h('div', {}, l)))))))) ;
      const err = row.endEvent?.error;
      if (err) parts.push(payload('Error', err));
      for (const [from, title] of [[e, ''], [row.endEvent, '']]) if (from) for (const f of payloadFields) if (from[f] !== undefined && !(from === e && f === 'result')) parts.push(payload(f[0].toUpperCase() + f.slice(1) + title, from[f]));
    } else if (e) {
      const status = view.status?.status || '';
      if (view.current && over(status) && status !== 'Deleting') parts.push(h('div', {}, h('button', { type: 'button', onclick: () => actions.restart(view.status, e.id) }, `Restart from #${e.id} …`)));
      fact('Event', `#${e.id}`);
      fact('Time', when(e.at));
      fact('Source events', view.model.sources(e).slice(0, 20).map((n) => `#${n}`).join(' '));
      for (const f of ['name', 'version', 'buildId', 'queue', 'instanceId', 'executionId', 'eventId', 'reason', 'message', 'requestedBy', 'attempt', 'fireAt']) fact(f, e[f] === undefined ? '' : f === 'instanceId' ? link(e[f]) : String(e[f]));
      for (const f of payloadFields) if (e[f] !== undefined) parts.push(payload(f, e[f]));
      const { at, bytes, row: own, ...whole } = e;
      parts.push(payload('Event JSON', whole));
    } else if (row.c) fact('Cancelled', cancelText(row.c));
    detail.replaceChildren(h('div', { class: 'bar-row' }, h('h2', {}, row.kind ? `${row.name || kindWords[row.kind]} ${row.id ? `#${row.id}` : ''}` : e?.kind || ''), h('span', { class: 'grow' }),
      h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: close }, '✕')), h('dl', {}, facts), ...parts);
    detail.scrollTop = 0;
  }

  function close() {
    detail.hidden = true;
    const grid = { timeline: lines.grid, events, pending, cancellations: cancels }[tab];
    view.row = '';
    if (grid) { grid.chosen = null; grid.focus(grid.at); }
  }
  detail.addEventListener('keydown', (e) => { if (e.key === 'Escape') close(); });
  panel.addEventListener('keydown', (e) => { if (e.key === 'Enter' && !detail.hidden && e.target.closest('.row')) detail.focus(); });

  // ---- the header ----
  function drawHero() {
    const s = view.status;
    const fact = (name, value) => (value ? h('div', {}, h('dt', {}, name), h('dd', {}, value)) : null);
    const m = view.model;
    const act = (name, label, danger) => h('button', { type: 'button', class: danger ? 'danger' : '', onclick: () => actions[name](s) }, label);
    const done = over(s.status);
    const executions = s.executionNumber > 1 ? h('select', { 'aria-label': 'Execution', id: 'executions', onchange: (e) => go(query([['instance', id], ['execution', e.target.value]])) }, h('option', { value: view.execution }, view.execution ? `execution ${view.execution}` : `execution ${s.executionNumber} (current)`)) : null;
    if (executions) executions.addEventListener('focus', () => fillExecutions(executions, s), { once: true });
    const parts = [
      h('div', { class: 'line' }, chip(s.status), h('h1', { class: 'mono' }, s.instanceId), h('button', { type: 'button', class: 'quiet', onclick: () => copy(s.instanceId), 'aria-label': 'Copy instance ID' }, 'Copy'), h('span', { class: 'grow' }),
        done ? null : [act('raise', 'Raise event …'), s.status === 'Paused' ? act('resume', 'Resume …') : act('pause', 'Pause …'), act('cancel', 'Cancel …'), act('terminate', 'Terminate …', true)], s.status !== 'Deleting' ? [act('query', 'Query …'), act('annotate', 'Add note …')] : null, done && s.status !== 'Deleting' ? act('restart', 'Restart …') : null, act('purge', 'Purge …', true), h('a', { href: `?dead&${query([['about', s.instanceId]])}` }, 'Dead letters')),
      h('dl', { class: 'facts' }, fact('Orchestration', `${s.orchestration}${s.version ? ` ${s.version}` : ''}`), fact('Created', when(s.createdAt)), s.startAt ? fact('Start time', when(s.startAt)) : null, fact('Started', m.firstTurn ? when(m.firstTurn) : ''),
        done ? fact('Ended', when(s.updatedAt)) : null, fact('Duration', s.status === 'Deleting' ? '' : span((done ? Date.parse(s.updatedAt) : Date.now()) - Date.parse(s.createdAt))),
        fact('Started by', s.startedBy ? h('span', { title: s.startedBy }, shortName(s.startedBy)) : ''), fact('Terminated by', s.terminatedBy ? h('span', { title: s.terminatedBy }, shortName(s.terminatedBy)) : ''),
        s.parent ? fact('Parent', link(s.parent.instanceId)) : null, executions ? fact('Execution', executions) : null,
        fact('Tags', Object.keys(s.tags || {}).length ? h('span', {}, Object.entries(s.tags).map(([k, v]) => [h('a', { class: 'tag', href: '?' + query([['tag', `${k}=${v}`]]) }, `${k}=${v}`), ' '])) : '')),
    ];
    if (s.paused) parts.push(paused(s.paused));
    if (s.notes) parts.push(h('div', { class: 'note', id: 'notes' }, h('h2', {}, 'Notes'), s.notes.map((n) => h('span', {}, when(n.at), n.by ? [' by ', h('b', { title: n.by }, shortName(n.by))] : null, `: ${n.text}`))));
    if (s.status === 'Blocked' && s.failure) parts.push(blocked(s.failure));
    else if (s.failure) parts.push(h('div', { class: 'note bad' }, failureLines(s.failure).map((l, i) => h(i ? 'span' : 'b', {}, i ? `caused by ${l}` : l))));
    const at = hero.contains(document.activeElement) ? document.activeElement : null;
    if (at?.tagName === 'SELECT') return; // its list may be open
    hero.replaceChildren(...parts);
    if (at) [...hero.querySelectorAll(at.tagName)].find((el) => el.textContent === at.textContent)?.focus();
  }

  function paused(p) {
    return h('div', { class: 'note', id: 'paused' }, h('h2', {}, '‖ Paused'),
      h('span', {}, 'since ', when(p.at), p.by ? [' by ', h('b', { title: p.by }, shortName(p.by))] : null, p.message ? `: ${p.message}` : ''),
      h('span', { class: 'muted' }, 'The orchestration does not run until you resume it. New inputs are parked. Running activities continue.'));
  }

  function blocked(f) {
    const at = f.eventId ? view.model.events.find((e) => e.id === f.eventId) : null;
    return h('div', { class: 'note', id: 'blocked' }, h('h2', {}, `▲ Blocked: ${f.type}`), h('span', {}, f.message),
      f.expected || f.got ? h('div', { class: 'sides' }, h('div', {}, h('h3', {}, `History${f.eventId ? `, event #${f.eventId}` : ''}`), h('pre', {}, f.expected || 'nothing'), at ? h('button', { type: 'button', class: 'quiet', onclick: () => { open('events'); choose(at.row ??= { key: `e${at.id}`, event: at }); } }, `Show event #${at.id}`) : null), h('div', {}, h('h3', {}, 'Current code'), h('pre', {}, f.got || 'nothing'))) : null,
      h('span', {}, h('b', {}, 'Next step: '), blockedAdvice[f.type] || 'Fix the cause in the message, and deploy. The instance then continues.'), h('span', { class: 'muted' }, 'Until then, new inputs are parked. Nothing is lost.'));
  }

  async function fillExecutions(select, s) {
    try {
      const page = await get(instancePath(id, '/executions?limit=200'), stop.signal);
      select.replaceChildren(...page.items.map((x) => h('option', { value: x.executionId === s.executionId ? '' : x.executionId, selected: x.executionId === (view.execution || s.executionId) }, `execution ${x.number}, ${moment(x.startedAt)}`)));
    } catch (err) { toast(err.message); }
  }

  // ---- loading ----
  // readHistory adds the new events. Event IDs have no gaps, so it requests pages of a long history ahead. If a page is shorter than expected, the
  // pages requested ahead start at other events, and it requests the right ones.
  const eventsAPage = 1000;
  async function readHistory() {
    const ahead = new Map();
    const ask = (after) => get(instancePath(id, `/history?${query([['execution', view.executionId], ['after', after || '']])}`), stop.signal);
    let pause = 1000;
    let drawn = Date.now();
    for (let next = view.model.last, pages = 1; ; pages++) {
      const page = await (ahead.get(next) || ask(next));
      ahead.delete(next);
      for (const e of page.items) view.model.add(e);
      next = page.next;
      if (!next) return;
      for (let after = next; pages > 2 && page.items.length === eventsAPage && after < next + 4 * eventsAPage; after += eventsAPage) {
        if (ahead.has(after)) continue;
        const asked = ask(after);
        asked.catch(() => {}); // the loop handles the error when it awaits the page
        ahead.set(after, asked);
      }
      const now = Date.now();
      if (now - drawn < pause) continue;
      drawTabs();
      if (tab === 'timeline' || tab === 'events') drawPanel();
      drawn = Date.now();
      pause = Math.max(pause, 10 * (drawn - now)); // limits drawing to a tenth of the time
    }
  }

  async function readCancels() {
    const all = [];
    for (let cursor = ''; ;) {
      const page = await get(instancePath(id, `/cancellations?${query([['execution', view.executionId], ['limit', 1000], ['cursor', cursor]])}`), stop.signal);
      all.push(...page.items);
      cursor = page.nextCursor;
      if (!cursor || all.length >= 20_000) break;
    }
    view.cancels = all;
    view.model.told(all);
  }

  async function readPending() {
    if (over(view.status.status) || !view.current) { view.pending = { total: 0, items: [] }; view.waiting.clear(); return; }
    const s = await get(instancePath(id, '?limit=200'), stop.signal);
    view.pending = s.pending || { total: 0, items: [] };
    view.pending.items ??= [];
    view.waiting = new Map(view.pending.items.map((p) => [p.id, p]));
    for (const p of view.pending.items) {
      const row = view.model.byID.get(p.id);
      if (row) row.unserved = Boolean(p.noWorker || p.unknownBuild);
      if (row && p.what === 'activity' && p.failedAt) row.retry = { failed: Date.parse(p.failedAt), next: Date.parse(p.nextTryAt || p.failedAt) };
    }
  }

  async function refresh() {
    if (reading) return;
    reading = true;
    try {
      const before = view.model.last;
      const s = await get(instancePath(id, '?pending=false'), stop.signal);
      if (!view.execution && view.status && s.executionId !== view.status.executionId) return go(query([['instance', id]]), true); // the instance has continued as new
      const moved = !view.status || s.updatedAt !== view.status.updatedAt || s.status !== view.status.status;
      view.status = s;
      view.executionId = view.execution || s.executionId;
      view.current = view.executionId === s.executionId;
      drawHero();
      if (!complete || !view.model.instance.end) await readHistory();
      complete = true;
      const now = Date.now();
      const changedNow = moved || view.model.last !== before;
      const open = view.cancels.some((c) => !c.end);
      if (changedNow) { drawHero(); drawTabs(); }
      // Both make the API read the whole history, so a long history is read less often.
      if ((changedNow || open || !over(s.status)) && now - askedAt > Math.min(60_000, 3000 + view.model.events.length)) {
        askedAt = now;
        await Promise.all([readCancels(), readPending()]);
      }
      wrong.hidden = true;
      drawTabs();
      if (changedNow || askedAt === now || (view.model.rows.length < 2000 && tab !== 'family' && tab !== 'data')) drawPanel();
      return true;
    } catch (err) {
      if (err.name === 'AbortError') return false;
      wrong.hidden = false;
      wrong.replaceChildren(h('b', {}, err.status === 404 ? 'Instance or execution not found' : 'Could not load the instance'), h('span', {}, err.message));
      if (err.status === 404) hero.replaceChildren(h('h1', { class: 'mono' }, id), h('p', { class: 'muted' }, 'The instance may have been purged. ', h('a', { href: '?' }, 'All instances')));
      return false;
    } finally { reading = false; }
  }

  $('main').replaceChildren(wrong, hero, tabBar, panel);
  drawTabs();
  drawPanel();
  return {
    title: id, crumbs: id, refresh, every: 2500, live: () => !view.status || !complete || !over(view.status.status), first: refresh,
    leave: () => { stop.abort(); for (const g of [lines.grid, events, pending, cancels]) g.watcher.disconnect(); },
  };
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
