// The overview of the hub: numbers that need attention, each a link to its list, and jobs, versions and dead letters.

function hubView() {
  const stop = new AbortController();
  const now = Date.now();
  const cards = h('div', { class: 'cards' });
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  const card = (label, href, about) => {
    const number = h('b', { class: 'number' }, '…');
    const note = h('span', { class: 'muted' }, about);
    const el = h('a', { class: 'card figure', href }, h('span', {}, label), number, note);
    cards.append(el);
    return { set: (text, tone) => { number.textContent = text; el.classList.toggle('bad', tone === 'bad'); el.classList.toggle('warn', tone === 'warn'); }, note: (t) => { note.textContent = t; } };
  };
  const figures = {
    blocked: card('Blocked', listURL(['status', 'blocked']), 'code does not fit the history'),
    failed: card('Failed', listURL(['status', 'failed'], ['started', '<1d']), 'started in the last day'),
    dead: card('Dead letters', '?dead', 'in all queues'),
    paused: card('Paused', listURL(['status', 'paused']), 'until someone resumes them'),
    old: card('Oldest work', listURL(['status', 'running'], ['started', '>7d']), 'running, started more than 7 days ago'),
    cancelling: card('Cancelling', listURL(['status', 'cancelling']), 'waiting for their clean-up'),
  };
  const versions = h('section', { class: 'card', 'aria-labelledby': 'versions-title' }, h('h2', { id: 'versions-title' }, 'Versions of unfinished instances'), h('p', { class: 'muted' }, 'Loading …'));
  const stuck = h('section', { class: 'card', 'aria-labelledby': 'stuck-title' }, h('h2', { id: 'stuck-title' }, 'Blocked and paused instances'), h('p', { class: 'muted' }, 'Loading …'));
  const letters = h('section', { class: 'card', 'aria-labelledby': 'letters-title' }, h('h2', { id: 'letters-title' }, 'Dead letters by queue'), h('p', { class: 'muted' }, 'Loading …'));
  const jobs = h('section', { id: 'jobs', class: 'card', 'aria-label': 'Jobs' });

  const table = (heads, rows) => h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': heads.join(', ') }, h('table', { class: 'jobs' }, h('thead', {}, h('tr', {}, heads.map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((c) => h('td', {}, c)))))));
  const fill = (section, ...parts) => section.replaceChildren(section.firstChild, ...parts);
  const fault = (section) => (err) => { if (err.name !== 'AbortError') fill(section, h('p', { class: 'wrong' }, err.message)); };
  const bounded = async (pairs) => {
    const page = await get(`instances?${query([...pairs, ['limit', mostCounted]])}`, stop.signal);
    return { n: page.items.length, more: Boolean(page.nextCursor), items: page.items };
  };

  function drawVersions(items, more) {
    const found = new Map();
    for (const s of items) {
      if (over(s.status)) continue;
      const key = `${s.orchestration}\n${s.version}`;
      const v = found.get(key) || { name: s.orchestration, version: s.version, n: 0, oldest: s.createdAt };
      found.set(key, { ...v, n: v.n + 1, oldest: s.createdAt < v.oldest ? s.createdAt : v.oldest });
    }
    const rows = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : b.n - a.n)).slice(0, 50);
    fill(versions, rows.length ? table(['Orchestration', 'Version', 'Instances', 'Oldest'], rows.map((v) => [v.name, v.version ? h('a', { href: listURL(['name', v.name], ['version', v.version]) }, v.version) : 'none yet', count(v.n), relative(v.oldest)])) : h('p', { class: 'muted' }, 'No unfinished instances. Start one with perdure start or a client.'),
      more ? h('p', { class: 'muted' }, `Of the newest ${count(items.length)} instances`) : '');
  }

  async function readStuck() {
    const blocked = await bounded([['status', 'Blocked']]);
    const paused = await bounded([['status', 'Paused']]);
    figures.blocked.set(countText(blocked), blocked.n ? 'bad' : '');
    figures.paused.set(countText(paused), paused.n ? 'warn' : '');
    const rows = [...blocked.items, ...paused.items].sort((a, b) => (a.updatedAt < b.updatedAt ? -1 : 1)).slice(0, 10);
    fill(stuck, rows.length ? table(['Status', 'Instance', 'Since', 'Reason'], rows.map((s) => [chip(s.status), h('a', { class: 'mono', href: '?' + query([['instance', s.instanceId]]) }, s.instanceId), relative(s.paused?.at || s.updatedAt), s.failure?.type || s.paused?.message || '—'])) : h('p', { class: 'muted' }, 'All instances can continue.'));
  }

  async function readLetters() {
    const { queues } = await get('dead-letters', stop.signal);
    const all = queues.reduce((n, q) => n + q.visible + q.hidden, 0);
    figures.dead.set(count(all), all ? 'bad' : '');
    const rows = queues.filter((q) => q.visible + q.hidden > 0);
    fill(letters, rows.length ? table(['Queue', 'Dead letters', 'Held by a reader'], rows.map((q) => [h('a', { href: `?dead=${encodeURIComponent(q.queue)}` }, q.queue), count(q.visible + q.hidden), count(q.hidden)])) : h('p', { class: 'muted' }, 'No dead letters. Messages that cannot be processed appear here.'));
  }

  const counts = statusCounts({ rest: '', chosen: null, pairs: [], keep: null, signal: stop.signal, told: (status, c, items) => { if (status === 'Cancelling') figures.cancelling.set(countText(c), c.n ? 'warn' : ''); if (items && status === 'Failed') drawVersions(items, c.more); } });

  let slowAt = 0;
  async function refresh(changed) {
    const faults = [];
    const note = (figure, section) => (err) => { if (err.name === 'AbortError') return; faults.push(err); figure?.set('?'); if (section) fault(section)(err); };
    const work = [readStuck().catch(note(figures.blocked, stuck)), readLetters().catch((err) => { figures.dead.set('—'); figures.dead.note(err.code === 'no_dead_letters' ? 'this API has no access' : 'not available'); fault(letters)(err); }), showJobs(false)];
    if (changed || Date.now() - slowAt > countsFor) {
      slowAt = Date.now();
      work.push(counts.refresh(true), bounded([['status', 'Failed'], ['startedAfter', new Date(now - 864e5).toISOString()]]).then((c) => figures.failed.set(countText(c), c.n ? 'bad' : ''), note(figures.failed)),
        bounded([['status', 'Running'], ['startedBefore', new Date(now - 7 * 864e5).toISOString()]]).then((c) => { figures.old.set(countText(c), c.n ? 'warn' : ''); if (c.items.length && !c.more) figures.old.note(`the oldest started ${ago(c.items.at(-1).createdAt)}`); }, note(figures.old)));
    }
    await Promise.all(work);
    wrong.hidden = faults.length === 0;
    if (faults.length) wrong.replaceChildren(h('b', {}, 'Could not load a part of the overview'), h('span', {}, faults[0].message));
    return faults.length === 0;
  }

  $('main').replaceChildren(h('h1', {}, 'Hub overview'), wrong, cards, counts.root, h('div', { class: 'columns' }, stuck, versions, letters, jobs));
  return { title: 'Hub overview', place: 'hub', first: refresh, refresh, every: 20_000, live: () => true, leave: () => stop.abort() };
}
