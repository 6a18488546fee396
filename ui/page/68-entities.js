// Entities. The instance of a key has the orchestration @name and the ID @name@key.

const entityMark = '@';

// entityOf returns the entity and the key of an instance ID, or null.
function entityOf(id) {
  const at = id.startsWith(entityMark) ? id.indexOf(entityMark, 1) : -1;
  return at > 1 ? { entity: id.slice(1, at), key: id.slice(at + 1) } : null;
}

// entityState returns a section with the state of an entity. The state is the response to a query, so it loads on request.
function entityState({ entity, key }, signal, heading) {
  const body = h('div', { 'aria-live': 'polite' });
  const read = async () => {
    body.replaceChildren(h('p', { class: 'muted' }, 'Replaying the history …'));
    try {
      const { state } = await get(`entities/${idPath(entity)}/${idPath(key)}`, signal);
      body.replaceChildren(payload('State', state, heading));
    } catch (err) {
      if (err.name === 'AbortError') return;
      body.replaceChildren(err.status === 404 ? h('p', { class: 'muted' }, 'The key has no state: no operation has run, or the state was deleted.') : h('p', { class: 'wrong' }, err.message));
    }
  };
  return { root: h('section', { class: 'stack' }, h('div', { class: 'bar-row' }, h('button', { type: 'button', onclick: read }, 'Read state')), body), read };
}

function entitiesView(address) {
  const at = { entity: address.get('entities') || '', key: address.get('key') || '' };
  const told = h('span', { class: 'muted', role: 'status' }, 'Loading …');
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  const names = h('datalist', { id: 'entity-names' });
  const form = h('form', { class: 'filters', role: 'search', 'aria-label': 'Find entities' }, h('label', {}, 'Entity', h('input', { name: 'entity', value: at.entity, list: 'entity-names', autocomplete: 'off', spellcheck: 'false', placeholder: 'stock' })),
    h('label', { class: 'wide' }, 'Key (to open one)', h('input', { name: 'key', value: at.key, autocomplete: 'off', spellcheck: 'false' })), names, h('button', { type: 'submit', class: 'primary' }, 'Show'), at.entity ? h('button', { type: 'button', onclick: () => go('entities') }, 'Clear') : null);
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    const [entity, key] = [form.elements.entity.value.trim(), form.elements.key.value.trim()];
    if (entity && key) go(query([['instance', `${entityMark}${entity}${entityMark}${key}`]]));
    else if (key) { wrong.hidden = false; wrong.replaceChildren(h('span', {}, 'A key needs the name of its entity')); } else go(`entities=${encodeURIComponent(entity)}`);
  });
  const on = h('button', { type: 'button', hidden: true, onclick: () => list.more() }, 'Continue search');
  const detail = h('aside', { class: 'detail', hidden: true, 'aria-label': 'Details', tabindex: '-1' });
  const grid = new Grid({
    name: 'entities', label: 'Entities, newest first', columns: ['Entity', 'Key', 'Status', 'Created', 'Last operation', 'Executions'], height: () => (narrow.matches ? 56 : 36),
    empty: at.entity ? 'No keys of this entity. The first call of a key creates it.' : 'No entities found. The first call of a key creates an entity.', nearEnd: () => { if (!list.paused) list.more(); }, open: (s) => show(s),
    render(s, cells) {
      const e = entityOf(s.instanceId) || { entity: s.orchestration.slice(1), key: s.instanceId };
      put(cells[0], e.entity);
      put(cells[1], h('a', { class: 'id', tabindex: '-1', href: '?' + query([['instance', s.instanceId]]) }, e.key));
      put(cells[2], chip(s.status));
      put(cells[3], relative(s.createdAt));
      put(cells[4], relative(s.updatedAt));
      put(cells[5], count(s.executionNumber));
    },
  });
  function hide() { detail.hidden = true; grid.chosen = null; grid.focus(grid.at); }
  detail.addEventListener('keydown', (e) => { if (e.key === 'Escape') hide(); });
  function show(s) {
    const e = entityOf(s.instanceId);
    if (!e) return go(query([['instance', s.instanceId]]));
    const state = entityState(e, list.stop.signal);
    detail.hidden = false;
    detail.replaceChildren(h('div', { class: 'bar-row' }, h('h2', {}, `${e.entity} ${e.key}`), h('span', { class: 'grow' }), h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: hide }, '✕')), state.root, h('p', {}, h('a', { href: '?' + query([['instance', s.instanceId]]) }, 'Operations and history')));
    state.read();
    detail.focus({ preventScroll: true });
    return undefined;
  }

  const tell = () => {
    told.textContent = `${count(list.items.length)}${list.complete ? '' : ' or more'} key${list.items.length === 1 && list.complete ? '' : 's'}`;
    on.hidden = !list.paused || list.reading;
  };
  const list = new Pages({
    pairs: at.entity ? [['name', entityMark + at.entity]] : [], keep: (s) => s.orchestration.startsWith(entityMark), status: '',
    show: () => {
      grid.set(list.items);
      names.replaceChildren(...[...new Set(list.items.slice(0, 1000).map((s) => s.orchestration.slice(1)))].sort().map((value) => h('option', { value })));
      tell();
    },
    tell: () => tell(),
    well: () => { wrong.hidden = true; },
    fail: (err) => { wrong.hidden = false; wrong.replaceChildren(h('b', {}, 'Could not load entities'), h('span', {}, err.message)); },
    visible: () => [...grid.used.keys()].map((i) => list.items[i]), front: () => {},
  });
  $('main').replaceChildren(h('div', { class: 'bar-row' }, h('h1', {}, 'Entities'), told, on), form, wrong, h('div', { class: 'split' }, grid.root, detail));
  return { title: 'Entities', place: 'entities', first: () => list.more(), refresh: () => list.refresh(), every: 10_000, live: () => true, leave: () => { list.stop.abort(); grid.watcher.disconnect(); } };
}
