// The schedules of the hub, with their next and last runs.

const schedulePath = (id, rest) => `schedules/${idPath(id)}${rest || ''}`;

const scheduleActions = {
  run: (id) => ask({
    title: `Run ${id} now?`, verb: 'Start run', careful: true, body: h('p', {}, 'Starts a run as if it were scheduled, even if the schedule is paused. The overlap rule of the schedule applies.'),
    async act() { await call('POST', `schedules/${idPath(id)}/run`); return 'Run requested'; },
  }),
  pause: (id) => ask({
    title: `Pause schedule ${id}?`, verb: 'Pause schedule', body: [h('p', {}, 'No scheduled run starts until you resume it. The current run continues.'), messageField()],
    async act(form) { await call('POST', `schedules/${idPath(id)}/pause`, { message: form.elements.message.value }); return 'Pause requested'; },
  }),
  resume: (id) => ask({
    title: `Resume schedule ${id}?`, verb: 'Resume schedule', body: [h('p', {}, 'Scheduled runs start again. The catch-up rule of the schedule applies to the missed times.'), messageField()],
    async act(form) { await call('POST', `schedules/${idPath(id)}/resume`, { message: form.elements.message.value }); return 'Resume requested'; },
  }),
};

function scheduleState(s) {
  if (over(s.status)) return s.status;
  if (s.paused || s.status === 'Paused') return 'Paused';
  if (s.ending) return 'Ending';
  return s.status === 'Running' && s.running ? 'Run in progress' : s.status === 'Blocked' ? 'Blocked' : 'Active';
}

function schedulesView(address) {
  const stop = new AbortController();
  const state = { items: [], cursor: '', complete: false, chosen: address.get('schedules') || '' };
  const told = h('span', { class: 'muted', role: 'status' }, 'Loading …');
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  const detail = h('aside', { class: 'detail', hidden: true, 'aria-label': 'Details', tabindex: '-1' });
  const grid = new Grid({
    name: 'schedules', label: 'Schedules', columns: ['Schedule', 'State', 'Orchestration', 'Times', 'Next run', 'Last run', 'Runs'], height: () => (narrow.matches ? 64 : 40),
    empty: 'No schedules. Create one with perdure schedule put.', open: (s) => show(s),
    render(s, cells) {
      const last = s.running || s.last;
      put(cells[0], h('span', { class: 'id' }, s.schedule.id));
      put(cells[1], s.paused ? h('span', { class: 'paused' }, `${signs.Paused} Paused`) : scheduleState(s));
      cells[1].title = s.paused ? `since ${moment(s.paused.at)}${s.paused.message ? `: ${s.paused.message}` : ''}` : '';
      put(cells[2], s.schedule.orchestration);
      put(cells[3], `${s.schedule.when}${s.schedule.timeZone && s.schedule.timeZone !== 'UTC' ? ` ${s.schedule.timeZone}` : ''}`);
      put(cells[4], s.next ? relative(s.next) : '—');
      put(cells[5], last ? h('span', { class: last.outcome === 'Failed' ? 'wrong' : '' }, `${last.outcome || 'Running'}, `, relative(last.endedAt || last.startedAt)) : 'none yet');
      put(cells[6], `${count(s.started)}${s.failed ? `, ${count(s.failed)} failed` : ''}`);
    },
  });
  detail.addEventListener('keydown', (e) => { if (e.key === 'Escape') hide(); });
  function hide() { detail.hidden = true; state.chosen = ''; grid.chosen = null; grid.focus(grid.at); }

  function show(s, focus = true) {
    state.chosen = s.schedule.id;
    const { id } = s.schedule;
    const fact = (name, value) => (value === undefined || value === '' || value === null ? null : [h('dt', {}, name), h('dd', {}, value)]);
    const run = (r) => (r ? [h('a', { class: 'mono', href: '?' + query([['instance', r.instanceId]]) }, r.instanceId), ` ${r.outcome || 'Running'}, started `, relative(r.startedAt), r.error ? h('div', { class: 'wrong' }, r.error) : ''] : null);
    const act = (name, label) => h('button', { type: 'button', onclick: () => scheduleActions[name](id) }, label);
    detail.hidden = false;
    detail.replaceChildren(h('div', { class: 'bar-row' }, h('h2', {}, id), h('span', { class: 'grow' }), h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: hide }, '✕')),
      over(s.status) ? '' : h('div', { class: 'bar-row' }, act('run', 'Run now …'), s.paused ? act('resume', 'Resume schedule …') : act('pause', 'Pause schedule …')),
      s.paused ? h('div', { class: 'note' }, h('span', {}, 'Paused ', relative(s.paused.at), s.paused.message ? `: ${s.paused.message}` : '')) : '',
      h('dl', {}, fact('State', scheduleState(s)), fact('Orchestration', `${s.schedule.orchestration} ${s.schedule.version || ''}`), fact('Times', s.schedule.when), fact('Time zone', s.schedule.timeZone || 'UTC'), fact('Overlap', s.schedule.overlap || 'skip'), fact('Catch-up', s.schedule.catchUp || 'last'),
        fact('Next run', s.next ? when(s.next) : 'none'), fact('Current run', run(s.running)), fact('Last run', run(s.last)), fact('Queued', s.queued ? String(s.queued) : ''), fact('Started', count(s.started)), fact('Failed', count(s.failed)), fact('Skipped', count(s.skipped)), fact('Missed', count(s.missed)), fact('Revision', s.schedule.revision),
        fact('Backfills', s.backfills?.length ? s.backfills.map((w) => h('div', {}, when(w.from), ' to ', when(w.to))) : '')),
      h('p', {}, h('a', { href: listURL(['parent', s.instanceId]) }, 'All runs'), ' · ', h('a', { href: '?' + query([['instance', s.instanceId]]) }, 'Instance of the schedule')));
    if (focus) detail.focus({ preventScroll: true });
  }

  const mostSchedules = 1000; // of one refresh
  async function refresh() {
    try {
      const items = [];
      let cursor = '';
      do {
        const page = await get(`schedules?${query([['limit', 200], ['cursor', cursor]])}`, stop.signal);
        items.push(...page.items);
        cursor = page.nextCursor || '';
      } while (cursor && items.length < mostSchedules);
      for (const s of items) s.key = s.schedule.id;
      grid.chosen = state.chosen || null;
      grid.set(items);
      told.textContent = `${count(items.length)}${cursor ? '+' : ''} schedule${items.length === 1 ? '' : 's'}`;
      const open = state.chosen && items.find((s) => s.schedule.id === state.chosen);
      if (open && !detail.contains(document.activeElement)) show(open, false);
      wrong.hidden = true;
      return true;
    } catch (err) {
      if (err.name === 'AbortError') return true;
      wrong.hidden = false;
      wrong.replaceChildren(h('b', {}, 'Could not load schedules'), h('span', {}, err.message));
      told.textContent = '';
      return false;
    }
  }

  $('main').replaceChildren(h('div', { class: 'bar-row' }, h('h1', {}, 'Schedules'), told), wrong, h('div', { class: 'split' }, grid.root, detail));
  return { title: 'Schedules', place: 'schedules', first: refresh, refresh, every: 15_000, live: () => true, leave: () => { stop.abort(); grid.watcher.disconnect(); } };
}
