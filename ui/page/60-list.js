// The list of instances. Its filters are in the URL, so that a view can be bookmarked and shared.

// tagsText joins tags in one line and quotes those with a space. tagsOf parses such a line.
const tagsText = (tags) => tags.map((t) => (/[\s"]/.test(t) || t === '' ? JSON.stringify(t) : t)).join(' ');
const tagsOf = (text) => [...text.matchAll(/"(?:[^"\\]|\\.)*"|\S+/g)].map(([t]) => { try { return t.startsWith('"') ? JSON.parse(t) : t; } catch { return t; } });

// filterOf parses the filter of a URL. pairs is the filter for a list request, job is the filter for a bulk job, and
// wrong is an error. The filter of a job cannot contain a repeated name. An error disables the bulk actions, because
// they must not affect instances that the list does not show.
function filterOf(address) {
  const pairs = filterNames.flatMap((n) => address.getAll(n).filter((v) => v !== '').map((v) => [n, v]));
  const job = {};
  let wrong = '';
  for (const [name, v] of pairs) {
    const at = v.indexOf('=');
    if (name === 'tag' && at < 0) wrong ||= `tag ${v} is not KEY=VALUE`;
    else if (name === 'tag' && Object.hasOwn(job.tags || {}, v.slice(0, at))) wrong ||= `tag ${v.slice(0, at)} is repeated`;
    else if (name === 'tag') (job.tags ||= Object.create(null))[v.slice(0, at)] = v.slice(at + 1);
    else if (name === 'status' ? job.statuses : job[name]) wrong ||= `${name} is repeated`;
    else if (name === 'status') job.statuses = [v];
    else job[name] = v;
  }
  return { pairs, job, wrong };
}

const filterNames = ['status', 'name', 'version', 'tag', 'parent', 'startedAfter', 'startedBefore'];

// local formats a time for a datetime-local field, and iso converts it back.
const latest = '9999-12-31T23:59:59'; // years in JSON have four digits
const local = (t) => { const d = new Date(t || NaN); if (isNaN(d) || d.getFullYear() > 9999 || d.getFullYear() < 0) return ''; return `${String(d.getFullYear()).padStart(4, '0')}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${clock(t)}`; };
const iso = (v) => (v ? new Date(v).toISOString() : '');

function listView(address) {
  const { pairs: filter, job, wrong: notAFilter } = filterOf(address);
  const asked = query(filter);
  const state = { items: [], ids: new Map(), cursor: '', reading: false, over: false, stop: new AbortController() };
  const pageSize = 200;

  const field = (name, label, props) => h('label', { class: name === 'tag' ? 'wide' : '' }, label, h('input', { name, autocomplete: 'off', ...props }));
  const form = h('form', { class: 'filters', role: 'search', 'aria-label': 'Filter instances' },
    h('label', {}, 'Status', h('select', { name: 'status' }, h('option', { value: '' }, 'Any'), statuses.map((s) => h('option', { value: s, selected: address.get('status') === s }, s)))),
    field('name', 'Orchestration', { value: address.get('name') || '' }), field('version', 'Version', { value: address.get('version') || '' }),
    field('tag', 'Tags', { value: tagsText(address.getAll('tag')), placeholder: 'key=value "key=two words"' }), field('parent', 'Parent', { value: address.get('parent') || '', placeholder: 'instance ID' }),
    field('startedAfter', 'Started after', { type: 'datetime-local', step: '1', max: latest, value: local(address.get('startedAfter')) }), field('startedBefore', 'Started before', { type: 'datetime-local', step: '1', max: latest, value: local(address.get('startedBefore')) }),
    h('button', { type: 'submit', class: 'primary' }, 'Filter'), filter.length ? h('button', { type: 'button', onclick: () => go('') }, 'Clear') : null);
  const submit = (e) => {
    e?.preventDefault();
    const f = form.elements;
    go(query([['status', f.status.value], ['name', f.name.value.trim()], ['version', f.version.value.trim()], ...tagsOf(f.tag.value).map((t) => ['tag', t]),
      ['parent', f.parent.value.trim()], ['startedAfter', iso(f.startedAfter.value)], ['startedBefore', iso(f.startedBefore.value)]]));
  };
  form.addEventListener('submit', submit);
  form.elements.status.addEventListener('change', () => form.requestSubmit()); // reports invalid fields instead of sending them

  const find = h('form', { class: 'bar-row find', role: 'search', 'aria-label': 'Open an instance' }, h('input', { name: 'id', 'aria-label': 'Instance ID', placeholder: 'Open by instance ID', autocomplete: 'off', spellcheck: 'false' }), h('button', { type: 'submit' }, 'Open'));
  find.addEventListener('submit', (e) => { e.preventDefault(); const id = find.elements.id.value.trim(); if (id) go(query([['instance', id]])); });

  const told = h('span', { class: 'muted', role: 'status' }, 'Loading …');
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  const some = filter.length ? 'matching' : 'all';
  const on = h('button', { type: 'button', hidden: true, onclick: () => more() }, 'Continue search');
  // Bulk actions affect the instances that the list shows, so they are disabled while the list cannot be loaded.
  const many = ['cancel', 'terminate', 'purge'].map((op) => h('button', { type: 'button', disabled: true, class: op === 'cancel' ? '' : 'danger', onclick: () => bulk(op, job) }, `${op[0].toUpperCase()}${op.slice(1)} ${some} …`));
  const well = (is) => { wrong.hidden = is; for (const b of many) b.disabled = !is || Boolean(notAFilter); };
  const bar = h('div', { class: 'bar-row' }, told, on, h('span', { class: 'grow' }), find,
    many,
    h('button', { type: 'button', class: 'quiet', onclick: () => showJobs(true) }, 'Jobs'), h('a', { href: '?dead' }, 'Dead letters'));

  const grid = new Grid({
    name: 'instances', label: 'Instances, newest first', columns: ['Status', 'Instance', 'Orchestration', 'Version', 'Started', 'Duration', 'Tags'],
    height: () => (narrow.matches ? 60 : 36), empty: filter.length ? 'No matching instances' : 'No instances. Start one with perdure start or a client.',
    open: (s) => go(query([['instance', s.instanceId]])), nearEnd: () => { if (!state.paused) more(); },
    render(s, cells) {
      if (cells[0].shown !== s.status) { cells[0].shown = s.status; put(cells[0], chip(s.status)); }
      let link = cells[1].firstChild;
      if (!link?.href) { link = h('a', { class: 'id', tabindex: '-1' }); put(cells[1], link); }
      link.textContent = s.instanceId;
      link.href = '?' + query([['instance', s.instanceId]]);
      put(cells[2], s.orchestration);
      put(cells[3], s.version || '—');
      put(cells[4], moment(s.createdAt));
      put(cells[5], s.status === 'Deleting' ? '—' : span((over(s.status) ? Date.parse(s.updatedAt) : Date.now()) - Date.parse(s.createdAt)));
      put(cells[6], Object.entries(s.tags || {}).map(([k, v]) => `${k}=${v}`).join(' '));
    },
  });
  grid.view.addEventListener('click', (e) => { const a = e.target.closest('a.id'); if (a && !e.metaKey && !e.ctrlKey && !e.shiftKey) { e.preventDefault(); go(a.getAttribute('href').slice(1)); } });

  const tell = () => { told.textContent = `${count(state.items.length)}${state.over ? '' : ' or more'}${filter.length ? ' matching' : ''} instance${state.items.length === 1 && state.over ? '' : 's'}${state.reading && !state.over ? ', loading more …' : ''}`; };
  const show = () => { for (const s of state.items) s.key = s.instanceId; grid.set(state.items); tell(); };
  const fail = (err) => { if (err.name === 'AbortError') return; well(false); wrong.replaceChildren(h('b', {}, 'Could not load instances'), h('span', {}, err.message)); };

  // more loads further pages. A page can be empty and not be the last one, because the API limits the items that it
  // reads per page. After many empty pages, or while the document is hidden, more pauses until the user continues the
  // search.
  const mostEmpty = 10;
  async function more() {
    if (state.reading || state.over) return;
    state.reading = true;
    state.paused = false;
    on.hidden = true;
    let empty = 0;
    const goal = state.items.length + (state.items.length ? 1000 : pageSize);
    try {
      do {
        const limit = state.items.length ? 1000 : pageSize;
        const page = await get(`instances?${query([...filter, ['limit', limit], ['cursor', state.cursor]])}`, state.stop.signal);
        for (const s of page.items) if (!state.ids.has(s.instanceId)) { state.ids.set(s.instanceId, s); state.items.push(s); }
        state.cursor = page.nextCursor || '';
        state.over = !state.cursor;
        show();
        empty = page.items.length ? 0 : empty + 1;
        state.paused = !state.over && (empty >= mostEmpty || document.hidden);
      } while (!state.paused && !state.over && state.items.length < goal);
      well(true);
    } catch (err) { fail(err); }
    state.reading = false;
    on.hidden = !state.paused;
    tell();
  }

  // between loads the instances that started between the newest known instance and the newest page. It returns null if
  // there are too many, for example after the document was hidden for hours.
  const mostBetween = 10;
  async function between(page) {
    const newest = state.items[0];
    if (!newest || !page.nextCursor || page.items.some((s) => state.ids.has(s.instanceId))) return [];
    const since = new Date(Date.parse(newest.createdAt) - 5000).toISOString();
    const asked = [...filter.filter(([name]) => name !== 'startedAfter'), ['startedAfter', since], ['limit', 1000]];
    const found = new Map(page.items.map((s) => [s.instanceId, s]));
    const missing = [];
    let cursor = '';
    let asking = 0;
    do {
      if (++asking > mostBetween) return null;
      const next = await get(`instances?${query([...asked, ['cursor', cursor]])}`, state.stop.signal);
      for (const s of next.items) if (!found.has(s.instanceId)) { found.set(s.instanceId, s); missing.push(s); }
      cursor = next.nextCursor || '';
    } while (cursor);
    return missing;
  }

  // refresh loads the newest page and the visible instances that have not ended.
  async function refresh() {
    if (state.reading || state.refreshing) return;
    state.refreshing = true;
    try {
      const page = await get(`instances?${query([...filter, ['limit', 100]])}`, state.stop.signal);
      const missing = await between(page);
      if (!missing && state.reading) return true; // more is loading the end of the old list, so the next refresh reloads it
      if (!missing) { // reload the list, which loads more pages while it scrolls
        Object.assign(state, { items: page.items, ids: new Map(page.items.map((s) => [s.instanceId, s])), cursor: page.nextCursor, over: false });
        grid.view.scrollTop = 0;
        well(true);
        show();
        return true;
      }
      page.items.push(...missing);
      const fresh = [];
      for (const s of page.items) {
        const old = state.ids.get(s.instanceId);
        if (old) Object.assign(old, s); else { state.ids.set(s.instanceId, s); fresh.push(s); }
      }
      const first = new Set(page.items.map((s) => s.instanceId));
      const seen = [...grid.used.keys()].map((i) => state.items[i]).filter((s) => s && !over(s.status) && !first.has(s.instanceId)).slice(0, 20);
      const status = address.get('status');
      await Promise.all(seen.map(async (s) => {
        try { Object.assign(s, await get(instancePath(s.instanceId, '?pending=false'), state.stop.signal)); } catch (err) { if (err.status === 404) s.gone = true; }
      }));
      state.items = [...fresh, ...state.items].filter((s) => !s.gone && (!status || s.status === status));
      for (const [id, s] of state.ids) if (s.gone || (status && s.status !== status)) state.ids.delete(id);
      if (fresh.length && grid.view.scrollTop > 0) grid.view.scrollTop += fresh.length * grid.height();
      well(true);
      show();
      showJobs(false);
      return true;
    } catch (err) { fail(err); return false; } finally { state.refreshing = false; }
  }

  const filters = narrow.matches ? h('details', { class: 'more', open: filter.length > 0 }, h('summary', {}, `Filter${filter.length ? ` (${filter.length})` : ''}`), form) : form;
  $('main').replaceChildren(h('h1', { class: 'sr' }, 'Instances'), filters, wrong, bar, h('section', { id: 'jobs', class: 'card', hidden: true, 'aria-label': 'Jobs' }), grid.root);
  more();
  return { title: asked ? `Instances, ${filter.map((p) => p[1]).join(', ')}` : 'Instances', crumbs: '', refresh, every: 4000, live: () => true, leave: () => { state.stop.abort(); grid.watcher.disconnect(); } };
}
