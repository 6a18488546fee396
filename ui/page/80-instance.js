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

const blockedStep = (type) => blockedAdvice[type] || 'Fix the cause in the message, and deploy. The instance then continues.';

const tabs = [['timeline', 'Timeline'], ['events', 'Events'], ['pending', 'Pending'], ['cancellations', 'Cancellations'], ['family', 'Relationships'], ['data', 'Data']];

function instanceView(address) {
  const id = address.get('instance');
  const view = { id, model: new Model(), status: null, waiting: new Map(), pending: null, cancels: [], cancelsRead: false, loaded: false, children: new Map(), execution: address.get('execution') || '', row: address.get('row') || '', choose };
  view.cancelText = (c, activity) => cancelSentence({ ...c, open: view.current && !over(view.status?.status || '') }, activity);
  const stop = new AbortController();
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  const tabBar = h('div', { role: 'tablist', 'aria-label': 'Instance views' });
  const panel = h('div', { role: 'tabpanel', id: 'panel' });
  const detail = h('aside', { class: 'detail', hidden: true, 'aria-label': 'Details', tabindex: '-1' });
  const lines = timeline(view);
  const events = eventsPanel(view, choose, saveJSON);
  const pending = pendingPanel(view, choose);
  const cancels = cancellationsPanel(view, choose);
  const header = instanceHeader(view, (row) => { open('timeline'); choose(row); }, (e) => { open('events'); choose(e.row ??= { key: `e${e.id}`, event: e }); }, stop.signal);
  let tab = tabs.some(([t]) => t === address.get('tab')) ? address.get('tab') : 'timeline';
  let askedAt = 0;
  let reading = false;
  let complete = false;
  let seen = 0; // the last event at the last refresh

  // ---- tabs ----
  const isLoading = () => !view.loaded && !view.model.events.length;
  const known = (n) => isLoading() ? null : n;
  const cancellationCount = () => (view.cancels.length || (view.cancelsRead && view.status?.status !== 'Cancelled') ? view.cancels.length : null);
  const numbers = () => ({ events: known(view.model.events.length), pending: view.pending?.total ?? (view.status && over(view.status.status) ? 0 : null), cancellations: cancellationCount(), family: known(childRows(view).length) });
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
    header.strip.hidden = tab === 'data';
    buttons[tabs.findIndex(([t]) => t === tab)].scrollIntoView({ block: 'nearest', inline: 'nearest' });
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
    events.save.disabled = !complete; // a partial history cannot be replayed
  }

  // ---- panels ----
  const lists = { timeline: { grid: lines.grid, bar: lines.bars, draw: lines.update }, events, pending, cancellations: cancels };
  let built = '';

  // drawPanel adds the parts of a tab to the panel unless they are there already, so that a focused element keeps the focus.
  function drawPanel() {
    const used = built === tab && panel.contains(document.activeElement);
    const list = lists[tab];
    if (isLoading() && tab === 'timeline') {
      panel.replaceChildren(h('p', { class: 'muted' }, 'Loading …'));
      built = '';
      return;
    }
    if (list) {
      if (built !== tab) panel.replaceChildren(list.bar, h('div', { class: 'split' }, list.grid.root, detail));
      list.draw();
    } else if (!used && tab === 'family') drawFamily(view, panel, stop.signal);
    else if (!used) drawData();
    built = tab;
  }

  function drawData() {
    const s = view.status;
    const first = view.model.events[0];
    const end = view.model.instance.endEvent;
    const parts = [];
    if (s?.failure) parts.push(payload('Failure', s.failure));
    if (first?.input !== undefined) parts.push(payload('Input', first.input));
    if (s?.customStatus !== undefined && s.customStatus !== null) parts.push(payload('Custom status', s.customStatus));
    if (s?.customStatusSealed) parts.push(h('p', { class: 'muted' }, `Custom status: ${size(s.customStatusSealed.bytes)}, not shown`));
    if (s?.output !== undefined) parts.push(payload('Output', s.output));
    else if (end?.output !== undefined) parts.push(payload('Output', end.output));
    const sum = view.model.events.reduce((n, e) => n + payloadFields.reduce((m, f) => m + bytesOf(e[f]), 0), 0);
    panel.replaceChildren(h('div', { class: 'card' }, h('div', { class: 'bar-row' }, h('h2', {}, 'Data'), h('span', { class: 'muted' }, `${size(sum)} of payloads in ${count(view.model.events.length)} events`), h('span', { class: 'grow' }), h('button', { type: 'button', disabled: !complete, onclick: saveJSON }, 'Download JSON')), parts.length ? parts : h('p', { class: 'muted' }, 'No input or output')));
  }

  // saveJSON downloads the execution in the format of perdure history --json, which a test can replay.
  function saveJSON() {
    download(`${view.id.replace(/[^\w.-]+/g, '_')}.json`, { format: 'perdure.history/1', instanceId: view.id, name: view.model.instance.name, executions: [{ executionId: view.executionId, number: view.model.events[0]?.number || 1, events: view.model.events.map(eventOf) }] });
  }

  // ---- details ----
  function choose(row) {
    view.row = row.key;
    detail.hidden = false;
    const { title, facts, parts } = row.kind ? taskDetail(view, row) : row.event ? eventDetail(view, row.event) : { title: row.c?.name || 'Cancellation', facts: [], parts: [row.c ? cancellationDetail(view, row.times, row.c.target === 'activity') : ''] };
    detail.replaceChildren(h('div', { class: 'bar-row' }, h('h2', {}, title), h('span', { class: 'grow' }), h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: close }, '✕')), h('dl', {}, facts), ...parts);
    detail.scrollTop = 0;
    const grid = lists[tab]?.grid;
    const i = grid ? grid.rows.indexOf(row) : -1;
    if (i >= 0 && grid.chosen !== row.key) { grid.chosen = row.key; grid.focus(i); }
  }

  function close() {
    detail.hidden = true;
    const grid = lists[tab]?.grid;
    view.row = '';
    if (grid) { grid.chosen = null; grid.focus(grid.at); }
  }
  detail.addEventListener('keydown', (e) => { if (e.key === 'Escape') close(); });
  panel.addEventListener('keydown', (e) => { if (e.key === 'Enter' && !detail.hidden && e.target.closest('.row')) detail.focus(); });

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
      for (const e of page.items) if (e.id > view.model.last) view.model.add(e); // the stream may have sent it
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

  // stream is the source of the events of the current execution once the history was read (followStream).
  const stream = {
    path: instancePath(id, '/events/stream'), open: false,
    position: () => (complete && view.current && !view.model.instance.end ? `${view.executionId}.${view.model.last}` : ''),
    take(e) {
      const { last } = view.model;
      if (e.id === last + 1) { view.model.add(e); drawSoon(); }
      return e.id <= last + 1;
    },
  };

  // drawSoon draws the events of the stream. It takes at most a tenth of the time, and waits for an open dialog.
  let drawing = 0;
  let drawPause = 100;
  function drawSoon() {
    drawing ||= setTimeout(() => {
      drawing = 0;
      if (document.querySelector('dialog')) { drawSoon(); return; }
      const began = Date.now();
      header.draw();
      drawTabs();
      if (tab === 'timeline' || tab === 'events') drawPanel(); // a refresh draws the others
      drawPause = Math.max(100, 10 * (Date.now() - began));
    }, drawPause);
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
    view.cancelsRead = true;
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
      const limit = row?.event?.scheduleToCloseMs;
      const unlimited = row && ['activity', 'child', 'wait'].includes(row.kind);
      p.attemptMs = row?.event?.startToCloseMs;
      if (limit) p.deadline = new Date(row.start + limit).toISOString(); else if (unlimited && !(p.what === 'external_event' && view.pending.items.some((x) => x.what === 'timer'))) p.deadline = null; // a timer is probably the timeout of the event
      if (row) row.begun = p.what === 'activity' && hasStarted(p);
      if (row && p.what === 'activity' && p.failedAt) row.retry = { failed: Date.parse(p.failedAt), next: Date.parse(p.nextTryAt || p.failedAt) };
    }
    await readChildren();
  }

  // readChildren reads what the first pending children wait for, each at most every ten seconds. Older and failed children come first.
  const mostChildren = 3;
  const childFor = 10_000;
  async function readChildren() {
    const waiting = view.pending.items.filter((p) => p.what === 'sub_orchestration' && p.childId && !p.cancelledAt).slice(0, mostChildren);
    await Promise.all(waiting.map(async (p) => {
      const known = view.children.get(p.childId);
      if (!known || Date.now() - known.at > childFor) {
        let cause = known?.cause;
        try { cause = await readCause(p.childId); } catch (err) { if (err.name === 'AbortError') throw err; }
        view.children.set(p.childId, { at: Date.now(), cause });
      }
      const { cause } = view.children.get(p.childId);
      Object.assign(p, { cause: cause?.text, rank: cause?.rank });
      const row = view.model.byID.get(p.id);
      if (row) row.unbegun = cause?.unbegun;
    }));
    for (const id of view.children.keys()) if (!waiting.some((p) => p.childId === id)) view.children.delete(id);
  }

  // readCause returns the cause of a child. If the child waits for a child of its own, the cause is that child's, down to deepestChild levels.
  const deepestChild = 3;
  async function readCause(childId, depth = 1) {
    const s = await get(instancePath(childId, '?limit=20'), stop.signal);
    const cause = () => ({ ...causeOf(s, Date.now(), (queue) => hubHealth.queue(queue)), unbegun: s.status === 'Pending' });
    const below = s.pending?.items?.find((p) => p.what === 'sub_orchestration' && p.childId && !p.cancelledAt);
    const own = cause();
    if (!below || own.rank !== waitRank || depth === deepestChild) return own;
    const { text, rank } = await readCause(below.childId, depth + 1);
    Object.assign(below, { cause: text, rank });
    return cause();
  }

  // setMissing shows only the message that the instance was not found, or the view again.
  const missingTitle = h('h1', { class: 'mono' }, id);
  function setMissing(is) {
    if (is) wrong.before(missingTitle); else missingTitle.remove();
    for (const el of [header.root, tabBar, panel]) el.hidden = is;
  }

  // refresh reads what has changed. It is called for each change of the instance (subscribe).
  async function refresh() {
    if (reading) return undefined;
    reading = true;
    try {
      const s = await get(instancePath(id, '?pending=false'), stop.signal);
      if (!view.execution && view.status && s.executionId !== view.status.executionId) return go(query([['instance', id]]), true); // the instance has continued as new
      const moved = !view.status || s.updatedAt !== view.status.updatedAt || s.status !== view.status.status;
      view.status = s;
      view.executionId = view.execution || s.executionId;
      view.current = view.executionId === s.executionId;
      header.draw();
      const streamed = stream.open && (!moved || view.model.last !== seen); // a change without an event on the stream is not
      if (!complete || !(view.model.instance.end || streamed)) await readHistory();
      complete = true;
      view.loaded = true;
      const now = Date.now();
      const changedNow = moved || view.model.last !== seen;
      seen = view.model.last;
      const open = view.cancels.some((c) => !c.end);
      if (changedNow) { header.draw(); drawTabs(); }
      // Both make the API read the whole history, so a long history is read less often.
      if ((changedNow || open || !over(s.status)) && now - askedAt > Math.min(60_000, 3000 + view.model.events.length)) {
        askedAt = now;
        await Promise.all([readCancels(), readPending()]);
        header.draw();
      }
      wrong.hidden = true;
      setMissing(false);
      drawTabs();
      if (changedNow || askedAt === now || (view.model.rows.length < 2000 && tab !== 'family' && tab !== 'data')) drawPanel();
      return true;
    } catch (err) {
      if (err.name === 'AbortError') return false;
      wrong.hidden = false;
      const missing = err.status === 404;
      wrong.replaceChildren(h('b', {}, missing ? 'Instance or execution not found' : 'Could not load the instance'), h('span', {}, err.message), missing ? h('p', {}, 'The instance may have been purged. ', h('a', { href: listURL() }, 'All instances'), ' · ', h('a', { href: '?' + query([['q', `${/[\s"]/.test(id) ? queryValue(id) : id}*`]]) }, 'Search for IDs with this prefix'), ' · ', h('a', { href: `?dead&${query([['about', id]])}` }, 'Dead letters of this instance')) : '');
      setMissing(missing);
      return false;
    } finally { reading = false; }
  }

  $('main').replaceChildren(wrong, header.root, tabBar, panel);
  header.strip.hidden = tab === 'data';
  drawTabs();
  drawPanel();
  return {
    title: id, place: '', instance: id, refresh, stream, every: 2500, live: () => !view.status || !complete || !over(view.status.status), first: refresh,
    leave: () => { stop.abort(); clearTimeout(drawing); for (const { grid } of Object.values(lists)) grid.watcher.disconnect(); },
  };
}
