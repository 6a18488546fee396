// The tree of an instance: parents, children, executions and restarts.

const instanceLink = (id, text) => h('a', { href: '?' + query([['instance', id]]), class: 'mono' }, text || id);

// childLink is the link to a child in a row of a grid, which is a single tab stop.
const childLink = (id) => h('a', { href: '?' + query([['instance', id]]), class: 'mono', tabindex: '-1', title: id }, id);

// restartedFrom returns the instance whose restart created an instance, by its history or its ID, or an empty text.
function restartedFrom(view) {
  const event = view.model.events.find((e) => e.kind === 'ExecutionRestarted');
  return event?.instanceId || view.id.match(/^(.+)\.restart-[0-9a-f]{8}$/)?.[1] || '';
}

const childRows = (view) => view.model.rows.filter((r) => r.child);

async function drawFamily(view, panel, signal) {
  const most = 200;
  const children = childRows(view);
  const failed = (r) => r.state === 'failed';
  const ordered = [...children.filter(failed), ...children.filter((r) => !failed(r))]; // failures first
  const item = (r) => h('li', {}, instanceLink(r.child), ' ', h('span', { class: failed(r) ? 'wrong' : 'muted' }, `${r.name}, ${r.kind === 'detached' ? 'detached' : `${stateWords[r.state]}${r.cancel ? ' (cancelled)' : ''}`} `), descend(r.child, r.start, signal));
  const executions = h('li', {}, h('span', { class: 'muted' }, 'Loading executions …'));
  const self = h('li', { class: 'self' }, h('span', { class: 'mono' }, view.id), ' ', view.status ? chip(view.status.status) : '',
    h('ul', {}, view.status?.executionNumber > 1 ? executions : null, ordered.slice(0, most).map(item), children.length > most ? h('li', { class: 'muted' }, `and ${count(children.length - most)} more: `, h('a', { href: listURL(['parent', view.id]) }, 'list all')) : null,
      children.length || view.status?.executionNumber > 1 ? null : h('li', { class: 'muted' }, 'No children in this execution')));
  const up = h('ul', { class: 'tree' }, self);
  panel.replaceChildren(h('div', { class: 'card' }, h('div', { class: 'bar-row' }, h('h2', {}, 'Parents, children and restarts'), h('a', { href: listURL(['parent', view.id]) }, 'List children')), up));
  if (view.status?.executionNumber > 1) loadExecutions(view, executions, signal);

  let top = self;
  const wrap = (...parts) => {
    const ul = h('ul', {});
    const li = h('li', {}, ...parts, ul);
    top.replaceWith(li);
    ul.append(top);
    top = li;
  };
  const from = restartedFrom(view);
  if (from) wrap(instanceLink(from), ' ', h('span', { class: 'muted' }, 'was restarted as'));
  for (let p = view.status?.parent, n = 0; p && n < 20; n++) { // load the chain of parents
    try {
      const s = await get(instancePath(p.instanceId, '?pending=false'), signal);
      wrap(instanceLink(s.instanceId), ' ', h('span', { class: 'muted' }, `${s.orchestration} `), chip(s.status));
      p = s.parent;
    } catch (err) { up.prepend(h('li', { class: 'muted' }, `${p.instanceId}: ${err.message}`)); break; }
  }
}

async function loadExecutions(view, place, signal) {
  try {
    const page = await get(instancePath(view.id, '/executions?limit=200'), signal);
    const row = (x) => h('li', {}, h('a', { href: '?' + query([['instance', view.id], ['execution', x.executionId === view.status.executionId ? '' : x.executionId]]) }, `execution ${count(x.number)}`), h('span', { class: 'muted' }, `${x.executionId === view.executionId ? ' (shown)' : ''}, started `), relative(x.startedAt));
    place.replaceChildren(h('span', { class: 'muted' }, `Executions${page.nextCursor ? ' (the newest 200)' : ''}`), h('ul', {}, page.items.map(row)));
  } catch (err) { if (err.name !== 'AbortError') place.replaceChildren(h('span', { class: 'wrong' }, err.message)); }
}

// descend returns a button that shows the children of an instance.
function descend(of, since, signal) {
  const b = h('button', { type: 'button', class: 'quiet', 'aria-label': `Show children of ${of}` }, '▸ Children');
  b.addEventListener('click', async () => {
    b.disabled = true;
    try {
      const from = new Date(since).toISOString();
      const page = await get(`instances?${query([['parent', of], ['startedAfter', from], ['limit', 100]])}`, signal);
      const items = page.items.map((s) => h('li', {}, instanceLink(s.instanceId), ' ', h('span', { class: 'muted' }, `${s.orchestration} `), chip(s.status), ' ', descend(s.instanceId, s.createdAt, signal)));
      b.replaceWith(items.length ? h('ul', {}, items, page.nextCursor ? h('li', {}, h('a', { href: listURL(['parent', of]) }, 'more')) : null) : h('span', { class: 'muted' }, page.nextCursor ? 'none found so far: ' : 'no children', page.nextCursor ? h('a', { href: listURL(['parent', of]) }, 'continue search') : null));
    } catch (err) { toast(err.message); b.disabled = false; }
  });
  return b;
}
