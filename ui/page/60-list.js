// The list of instances. Its query is in the URL, so that a view can be bookmarked and shared.

// queryField is the search field with its completion. submit is called with the text when the user confirms it.
function queryField(text, known, submit) {
  const wrong = h('p', { class: 'wrong', id: 'query-wrong', role: 'alert' });
  const options = h('ul', { role: 'listbox', id: 'query-options', class: 'options', hidden: true, 'aria-label': 'Suggestions' });
  const input = h('input', {
    name: 'q', role: 'combobox', 'aria-label': 'Search instances', 'aria-expanded': 'false', 'aria-controls': 'query-options', 'aria-autocomplete': 'list', 'aria-describedby': 'query-wrong',
    autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', value: text, placeholder: 'Instance ID, or status:failed name:order* tag:region=eu started:<2h',
  });
  const clear = h('button', { type: 'button', hidden: !text, onclick: () => submit('') }, 'Clear');
  const form = h('form', { class: 'search', role: 'search', 'aria-label': 'Search instances' }, h('div', { class: 'field' }, input, options), h('button', { type: 'submit', class: 'primary' }, 'Search'), clear, wrong);
  let found = { options: [] };
  let at = -1;

  const mark = (i) => {
    at = i;
    [...options.children].forEach((el, n) => el.setAttribute('aria-selected', n === i));
    if (i < 0) input.removeAttribute('aria-activedescendant'); else { input.setAttribute('aria-activedescendant', `option-${i}`); options.children[i].scrollIntoView({ block: 'nearest' }); }
  };
  const close = () => { options.hidden = true; input.setAttribute('aria-expanded', 'false'); mark(-1); };
  function suggest() {
    found = completions(input.value, input.selectionStart, known());
    options.replaceChildren(...found.options.map((o, i) => h('li', { role: 'option', id: `option-${i}`, 'aria-selected': 'false', onmousedown: (e) => { e.preventDefault(); take(i); } }, h('b', {}, o.text), o.about ? h('span', { class: 'muted' }, o.about) : null)));
    options.hidden = found.options.length === 0;
    input.setAttribute('aria-expanded', !options.hidden);
    mark(-1);
  }
  function take(i) {
    const { text: term } = found.options[i];
    const end = term.endsWith(':') ? term : `${term} `;
    input.setRangeText(end, found.from, found.to, 'end');
    input.focus();
    suggest();
  }
  const check = () => { wrong.textContent = parseQuery(input.value).wrong; input.setAttribute('aria-invalid', Boolean(wrong.textContent)); };
  input.addEventListener('input', () => { if (wrong.textContent) check(); suggest(); });
  input.addEventListener('click', suggest);
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) {
      if (options.hidden) suggest();
      const n = found.options.length;
      if (n) mark((at + step + (at < 0 && step < 0 ? 1 : 0) + n) % n);
    } else if (e.key === 'Escape' && !options.hidden) close();
    else if ((e.key === 'Enter' || e.key === 'Tab') && at >= 0) take(at);
    else return;
    e.preventDefault();
  });
  form.addEventListener('submit', (e) => { e.preventDefault(); close(); check(); if (!wrong.textContent) submit(input.value.trim()); });
  if (text) check();
  return form;
}

// phases returns the phases of an instance as far as the list has them: a delayed start, work, and the time since it is blocked or paused.
function phases(s, now) {
  const from = Date.parse(s.createdAt);
  const start = Math.min(now, Math.max(from, Date.parse(s.startAt || s.createdAt)));
  const last = Math.max(start, Date.parse(s.updatedAt));
  const parts = [['delay', from, start]];
  if (over(s.status)) parts.push([s.status, start, last]);
  else if (s.status === 'Pending') parts.push(['delay', start, now]);
  else if (s.status === 'Blocked' || s.status === 'Paused') {
    const since = Math.max(start, Math.min(now, Date.parse(s.paused?.at || s.updatedAt)));
    parts.push(['Running', start, since], [s.status, since, now]);
  } else parts.push(['Running', start, Math.min(last, now)], [s.status === 'Cancelling' ? 'Cancelling' : 'idle', Math.min(last, now), now]);
  return parts.filter(([, a, b]) => b > a);
}
const phaseWords = { delay: 'waiting for its start', Running: 'running', idle: 'since its last change', Blocked: 'blocked', Paused: 'paused', Cancelling: 'cancelling' };

// drawPhases shows the phases in a cell. It reuses the elements.
function drawPhases(cell, s, now) {
  if (!cell.bar) {
    cell.bar = h('span', { class: 'phases', 'aria-hidden': 'true' }, [0, 1, 2].map(() => h('i')));
    cell.text = document.createTextNode('');
    cell.replaceChildren(cell.bar, cell.text);
  }
  const parts = s.status === 'Deleting' ? [] : phases(s, now);
  const all = parts.reduce((sum, [, a, b]) => sum + b - a, 0) || 1;
  [...cell.bar.children].forEach((el, i) => {
    const [kind, a, b] = parts[i] || ['none', 0, 0];
    if (el.className !== `phase ${kind}`) el.className = `phase ${kind}`;
    const width = `${(100 * (b - a) / all).toFixed(1)}%`;
    if (el.style.width !== width) el.style.width = width;
  });
  const text = s.status === 'Deleting' ? '—' : span((over(s.status) ? Date.parse(s.updatedAt) : now) - Date.parse(s.createdAt));
  if (cell.text.data !== text) cell.text.data = text;
  const title = parts.map(([kind, a, b]) => `${span(b - a)} ${phaseWords[kind] || 'until the end'}`).join(', ');
  if (cell.title !== title) cell.title = title;
}

// troubleOf says why an instance needs attention as far as the list knows, or ''. A Pending instance should have had its first turn, and a running one
// can wait for a worker (findStuck).
const firstTurnAfter = 120_000; // milliseconds
function troubleOf(s, now) {
  if (s.status === 'Blocked') return `blocked ${sinceClock(s.updatedAt, now)}`;
  const due = Date.parse(s.startAt || s.createdAt);
  if (s.status === 'Pending' && now - due > firstTurnAfter) return `no first turn for ${span(now - due)}`;
  const p = mayBeStuck(s, now) && s.waitsFor;
  return p && hubHealth.queue(p.queue)?.stuck ? `no worker runs ${p.name} (queue ${p.queue})` : '';
}

// findStuck reads the pending tasks of a few visible instances while a queue has no worker. It returns whether it read any.
const mostLooked = 4;
async function findStuck(visible, signal) {
  const now = Date.now();
  if (!hubHealth.queues?.some((q) => q.stuck)) return false;
  const looked = visible.filter((s) => s && mayBeStuck(s, now) && now - (s.lookedAt || 0) > restingFor).slice(0, mostLooked);
  await Promise.all(looked.map(async (s) => {
    s.lookedAt = now;
    try { [s.waitsFor] = waitingFor(await get(instancePath(s.instanceId, '?limit=20'), signal)); } catch { /* the next look may succeed */ }
  }));
  return looked.length > 0;
}

function listView(address) {
  const text = queryOf(address);
  const q = parseQuery(text);
  const search = (value) => {
    const next = parseQuery(value);
    if (next.id && !next.wrong) go(query([['instance', next.id]])); else go(query([['q', value]]));
  };
  if (q.id && !q.wrong) { setTimeout(() => go(query([['instance', q.id]]), true)); }

  const told = h('span', { class: 'muted', role: 'status' }, q.wrong ? '' : 'Loading …');
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  const on = h('button', { type: 'button', hidden: true, onclick: () => { on.hidden = true; list.more(); } }, 'Continue search');
  const some = text ? 'matching' : 'all';
  let well = false;

  const grid = new Grid({
    name: 'instances', label: 'Instances, newest first', columns: ['Status', 'Instance', 'Orchestration', 'Version', 'Started', 'Duration', 'Tags'],
    height: () => (narrow.matches ? 64 : 36), empty: q.wrong ? 'Correct the search to see instances.' : text ? ['No matching instances. ', h('a', { href: '?' }, 'Show all instances')] : 'No instances. Start one with perdure start or a client.',
    pick: { name: (s) => s.instanceId, changed: () => drawActions() },
    open: (s) => go(query([['instance', s.instanceId]])), nearEnd: () => { if (!list.paused && !q.wrong) list.more(); },
    render(s, cells, el) {
      const now = Date.now();
      const trouble = troubleOf(s, now);
      if (cells[0].shown !== s.status + trouble) {
        cells[0].shown = s.status + trouble;
        put(cells[0], [chip(s.status), trouble && s.status !== 'Blocked' ? h('span', { class: 'stuck' }, 'stuck') : ''].filter(Boolean));
        cells[0].title = trouble;
        el.classList.toggle('attention', Boolean(trouble));
      }
      let link = cells[1].firstChild;
      if (!link?.href) { link = h('a', { class: 'id', tabindex: '-1' }); put(cells[1], link); }
      if (link.textContent !== s.instanceId) {
        link.textContent = s.instanceId;
        link.title = s.instanceId;
        link.href = '?' + query([['instance', s.instanceId]]);
      }
      put(cells[2], s.orchestration);
      put(cells[3], s.version || '—');
      put(cells[4], ago(s.createdAt, now));
      if (cells[4].at !== s.createdAt) { cells[4].at = s.createdAt; cells[4].title = exact(s.createdAt); }
      drawPhases(cells[5], s, now);
      put(cells[6], Object.entries(s.tags || {}).map(([k, v]) => `${k}=${v}`).join(' '));
    },
  });
  grid.view.addEventListener('click', (e) => { const a = e.target.closest('a.id'); if (a && !e.metaKey && !e.ctrlKey && !e.shiftKey) { e.preventDefault(); go(a.getAttribute('href').slice(1)); } });

  const list = new Pages({
    pairs: q.pairs, keep: q.keep, status: q.status,
    show: () => { grid.set(list.items); dropPicked(); tell(); }, tell: () => tell(),
    well: () => setWell(true),
    fail: (err) => { setWell(false); wrong.replaceChildren(h('b', {}, 'Could not load instances'), h('span', {}, err.message)); },
    visible: () => [...grid.used.keys()].map((i) => list.items[i]),
    front: (n) => { if (n < 0) grid.view.scrollTop = 0; else if (grid.view.scrollTop > 0) grid.view.scrollTop += n * grid.height(); },
  });
  // dropPicked unselects instances that have left the list.
  const dropPicked = () => {
    const gone = [...grid.picked.keys()].filter((key) => !list.known.has(key));
    for (const key of gone) grid.picked.delete(key);
    if (gone.length) grid.pickedChanged();
  };
  const tell = () => {
    told.textContent = `${count(list.items.length)}${list.complete ? '' : ' or more'}${text ? ' matching' : ''} instance${list.items.length === 1 && list.complete ? '' : 's'}${list.reading && !list.complete ? ', loading more …' : ''}`;
    on.hidden = !list.paused || list.reading;
  };

  // ---- actions ----
  // Bulk actions affect the instances that the list shows, so they are disabled while the list cannot be loaded.
  const actionBar = h('div', { class: 'actions' });
  const setWell = (is) => { wrong.hidden = is; if (well !== is) { well = is; drawActions(); } };
  function drawActions() {
    const picked = [...grid.picked.values()];
    const n = picked.length;
    const finished = () => { grid.picked.clear(); grid.pickedChanged(); };
    const button = (op, label, act, danger) => h('button', { type: 'button', class: danger ? 'danger' : '', disabled: !n && (!well || Boolean(q.wrong) || Boolean(q.keep)), onclick: act }, label);
    const one = (op, danger) => button(op, n ? `${op[0].toUpperCase()}${op.slice(1)} ${count(n)} …` : `${op[0].toUpperCase()}${op.slice(1)} ${some} …`, () => (n ? bulkSelected(op, picked, finished) : bulk(op, q.job)), danger);
    actionBar.classList.toggle('picked', n > 0);
    actionBar.replaceChildren(...(n ? [h('b', {}, `${count(n)} selected`), h('button', { type: 'button', class: 'quiet', onclick: finished }, 'Clear selection')] : []),
      one('cancel'), ...(n ? [one('pause'), one('resume')] : []), menu('More', [one('terminate', true), one('purge', true)], { 'aria-label': 'More actions' }));
    actionBar.title = !n && q.keep ? 'The API cannot select by a prefix. Select rows instead.' : '';
  }
  drawActions();

  const known = () => {
    const sets = { name: new Set(), version: new Set(), tag: new Set() };
    for (const s of list.items.slice(0, 1000)) {
      sets.name.add(s.orchestration);
      if (s.version) sets.version.add(s.version);
      for (const [k, v] of Object.entries(s.tags || {})) sets.tag.add(`${k}=${v}`);
    }
    return sets;
  };
  const counts = statusCounts({ rest: q.rest, chosen: q.wrong ? null : q.status, pairs: q.pairs.filter(([n]) => n !== 'status'), keep: q.keep, signal: list.stop.signal, idle: Boolean(q.wrong),
    told: (status, c) => { if (status === 'Blocked' && !q.rest) hubHealth.takeBlocked(c, Date.now()); } });
  // A count keeps terms that were typed and not searched for yet.
  counts.root.addEventListener('click', (e) => {
    const link = e.target.closest('a');
    const typed = searchField().value.trim();
    const next = parseQuery(typed);
    if (!link || typed === text || next.wrong || next.id || e.metaKey || e.ctrlKey || e.shiftKey) return;
    e.preventDefault();
    go(query([['q', withStatus(link.dataset.status, next.rest)]]));
  });
  $('main').replaceChildren(h('h1', { class: 'sr' }, 'Instances'), counts.root, queryField(text, known, search), savedBar(text, q.wrong), wrong, h('section', { id: 'jobs', class: 'card', hidden: true, 'aria-label': 'Jobs' }), grid.root,
    h('div', { class: 'bottom bar-row' }, told, on, h('button', { type: 'button', class: 'quiet', onclick: () => showJobs(true) }, 'Jobs'), h('span', { class: 'grow' }), actionBar));

  async function first() {
    if (q.wrong) { grid.set([]); return undefined; }
    await list.more();
    counts.refresh(true);
    return well;
  }
  async function refresh(changed) {
    if (q.wrong) return true;
    const ok = await list.refresh();
    if (ok) showJobs(false);
    counts.refresh(changed);
    if (await findStuck(list.visible(), list.stop.signal)) grid.paint(true);
    return ok;
  }
  return { title: text ? `Instances, ${text}` : 'Instances', place: '', first, refresh, every: 4000, live: () => true, leave: () => { list.stop.abort(); grid.watcher.disconnect(); } };
}
