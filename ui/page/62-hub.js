// The overview of the hub: a verdict, numbers that need attention, each a link to its list, and queues, versions and jobs.

function hubView() {
  const stop = new AbortController();
  const now = Date.now();
  const cards = h('div', { class: 'cards' });
  const verdict = h('p', { class: 'verdict', role: 'status' }, 'Checking the hub …');
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  const health = { queues: new Map(), letters: null, blocked: null, unread: new Set(), sampled: null, noAccess: false };
  const unfinished = new Map(); // by status, with more if the list is cut
  const reasons = new Map(); // of blocked instances, by ID and time of the change
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
    old: card('Oldest work', listURL(['status', 'running'], ['started', '>7d']), 'running for more than 7 days, without schedules and entities'),
    cancelling: card('Cancelling', listURL(['status', 'cancelling']), 'waiting for their clean-up'),
  };
  const versions = h('section', { class: 'card', 'aria-labelledby': 'versions-title' }, h('h2', { id: 'versions-title' }, 'Versions of unfinished instances'), h('p', { class: 'muted' }, 'Loading …'));
  const stuck = h('section', { class: 'card', 'aria-labelledby': 'stuck-title' }, h('h2', { id: 'stuck-title' }, 'Blocked and paused instances'), h('p', { class: 'muted' }, 'Loading …'));
  const queues = h('section', { class: 'card', 'aria-labelledby': 'queues-title' }, h('h2', { id: 'queues-title' }, 'Queues and workers'), h('p', { class: 'muted' }, 'Loading …'));
  const jobs = h('section', { id: 'jobs', class: 'card', 'aria-label': 'Jobs' });

  const table = (heads, rows) => h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': heads.join(', ') }, h('table', { class: 'jobs' }, h('thead', {}, h('tr', {}, heads.map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((c) => h('td', {}, c)))))));
  const fill = (section, ...parts) => section.replaceChildren(section.firstChild, ...parts);
  const fault = (section) => (err) => { if (err.name !== 'AbortError') fill(section, h('p', { class: 'wrong' }, err.message)); };
  const bounded = async (pairs) => {
    const page = await get(`instances?${query([...pairs, ['limit', mostCounted]])}`, stop.signal);
    return { n: page.items.length, more: Boolean(page.nextCursor), items: page.items };
  };

  // drawVersions counts the unfinished instances by version, and states what it counts.
  function drawVersions() {
    const found = new Map();
    const counted = [];
    for (const [status, { items, more }] of unfinished) {
      if (items.length) counted.push(`${more ? 'the newest ' : ''}${count(items.length)} ${status.toLowerCase()}`);
      for (const s of items) {
        const key = `${s.orchestration}\n${s.version}`;
        const v = found.get(key) || { name: s.orchestration, version: s.version, n: 0, oldest: s.createdAt };
        found.set(key, { ...v, n: v.n + 1, oldest: s.createdAt < v.oldest ? s.createdAt : v.oldest });
      }
    }
    const rows = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : b.n - a.n));
    fill(versions, rows.length ? table(['Orchestration', 'Version', 'Instances', 'Oldest'], rows.slice(0, 50).map((v) => [v.name, v.version ? h('a', { href: listURL(['name', v.name], ['version', v.version]) }, v.version) : 'none yet', count(v.n), relative(v.oldest)])) : h('p', { class: 'muted' }, 'No unfinished instances. Start one with perdure start or a client.'),
      counted.length ? h('p', { class: 'muted' }, `Counts ${counted.join(', ')}${rows.length > 50 ? `; 50 of ${count(rows.length)} versions shown` : ''}`) : '');
  }

  function drawVerdict() {
    const { verdict: said, parts, unread } = healthOf({ ...health, unread: [...health.unread] }, Date.now());
    const checked = health.sampled === null ? '' : `, workers of ${several(health.sampled, 'waiting instance')} checked`;
    const ready = parts.length || unread || (health.sampled !== null && health.blocked && (health.letters || health.noAccess));
    const key = JSON.stringify([said, parts, unread, checked]);
    if (!ready || verdict.key === key) return; // a refresh keeps the focus and is not announced again
    verdict.key = key;
    verdict.className = `verdict ${said === 'Healthy' ? 'ok' : 'bad'}`;
    verdict.replaceChildren(h('b', {}, said), ...(parts.length || unread ? [': ', ...parts.flatMap((p, i) => [i ? ' · ' : '', h('a', { href: p.href }, p.text)]), parts.length && unread ? ' · ' : '', unread]
      : [h('span', { class: 'muted' }, `: no blocked instances${health.noAccess ? ', dead letters not visible to this API' : ', no dead letters'}${checked}`)]));
  }

  // drawQueues lists the queues, those without a worker first, then those with dead letters.
  function drawQueues() {
    const rows = new Map([...health.queues].map(([name, q]) => [name, { ...q, known: true, letters: 0 }]));
    for (const q of health.letterQueues || []) rows.set(q.queue, { queue: q.queue, stuck: 0, seenAt: '', ...rows.get(q.queue), letters: q.visible + q.hidden });
    const all = [...rows.values()].sort((a, b) => b.stuck - a.stuck || b.letters - a.letters || (a.queue < b.queue ? -1 : 1));
    const key = JSON.stringify([all, health.sampled, health.letterFault, [...knownReasons]]);
    if (queues.key === key) return;
    queues.key = key;
    const worker = (q) => (q.stuck ? h('span', { class: 'wrong' }, q.seenAt ? `no report ${sinceClock(q.seenAt)}` : 'never reported') : q.known ? 'no overdue task' : '—');
    const waiting = (q) => (q.stuck ? h('span', {}, `${q.example.name} of `, h('a', { class: 'mono', href: `?${query([['instance', q.example.instanceId], ['tab', 'pending']])}` }, q.example.instanceId), q.stuck > 1 ? ` and ${count(q.stuck - 1)} more` : '') : '—');
    const reason = (q) => {
      const r = q.letters ? knownReasons.get(q.queue) : null;
      return r ? h('span', { class: 'free' }, `${r.reason || noReason} (${count(r.n)} of ${count(r.of)}${r.complete ? '' : ' read'})`) : q.letters ? 'not read' : '—';
    };
    const unknown = all.filter((q) => q.letters && !knownReasons.has(q.queue));
    const read = h('button', { type: 'button', onclick: () => readReasons(unknown.map((q) => q.queue), read) }, 'Read reasons');
    fill(queues, all.length ? table(['Queue', 'Last worker report', 'Waits for a worker', 'Dead letters', 'Commonest reason'], all.map((q) => [q.queue, worker(q), waiting(q), q.letters ? h('a', { href: `?dead=${encodeURIComponent(q.queue)}` }, count(q.letters)) : health.letterQueues ? '0' : '—', reason(q)])) : h('p', { class: 'muted' }, 'No queue has pending work or dead letters.'),
      unknown.length ? h('div', { class: 'bar-row' }, read, h('span', { class: 'muted grow' }, 'Reading hides the dead letters from other readers for up to two minutes.')) : '',
      health.letterFault ? h('p', { class: 'wrong' }, health.letterFault) : '',
      health.sampled === null ? '' : h('p', { class: 'muted' }, `Workers: from the pending tasks of ${several(health.sampled, 'instance')} without a change for a minute`));
  }

  async function readReasons(names, button) {
    button.disabled = true;
    try {
      for (const queue of names) {
        const list = await get(lettersPath(queue, `?${query([['limit', 200]])}`), stop.signal);
        learnReasons(queue, list.items, list.complete);
      }
    } catch (err) { if (err.name === 'AbortError') return; toast(err.message); button.disabled = false; }
    drawQueues();
  }

  // readWorkers reads the pending tasks of a sample of the unfinished instances, two at a time.
  async function readWorkers() {
    const waiting = ['Running', 'Cancelling'].flatMap((status) => unfinished.get(status)?.items || []);
    const sample = sampleOf(waiting, Date.now(), new Set([...health.queues.values()].filter((q) => q.stuck).map((q) => q.example.instanceId)));
    const read = [];
    const next = sample.values();
    const reader = async () => {
      for (const s of next) {
        try { read.push(await get(instancePath(s.instanceId, '?limit=50'), stop.signal)); } catch (err) { if (err.status !== 404) throw err; } // purged meanwhile
      }
    };
    await Promise.all([reader(), reader()]);
    if (read.some((s) => s.pending?.unread)) health.unread.add('the pending tasks'); else health.unread.delete('the pending tasks');
    Object.assign(health, { queues: queuesOf(read), sampled: read.length });
    drawQueues();
    drawVerdict();
  }

  async function readStuck() {
    const blocked = await bounded([['status', 'Blocked']]);
    const paused = await bounded([['status', 'Paused']]);
    health.blocked = blocked;
    figures.blocked.set(countText(blocked), blocked.n ? 'bad' : '');
    figures.paused.set(countText(paused), paused.n ? 'warn' : '');
    drawVerdict();
    const rows = [...blocked.items, ...paused.items].sort((a, b) => (a.updatedAt < b.updatedAt ? -1 : 1)).slice(0, 10);
    const why = await Promise.all(rows.map(async (s) => (s.status === 'Blocked' ? s.failure?.type || blockedReason(s) : s.paused?.message || '—')));
    fill(stuck, rows.length ? table(['Status', 'Instance', 'Since', 'Reason'], rows.map((s, i) => [chip(s.status), h('a', { class: 'mono', href: '?' + query([['instance', s.instanceId]]) }, s.instanceId), relative(s.paused?.at || s.updatedAt), h('span', { class: 'free' }, why[i])])) : h('p', { class: 'muted' }, 'All instances can continue.'));
  }

  // blockedReason returns the reason of a blocked instance, which lists do not have. It is read once for each change.
  async function blockedReason(s) {
    const key = `${s.instanceId} ${s.updatedAt}`;
    if (!reasons.has(key)) {
      try {
        const { failure } = await get(instancePath(s.instanceId, '?pending=false'), stop.signal);
        reasons.set(key, failure ? `${failure.type}: ${failure.message || ''}` : '—');
      } catch (err) { if (err.name === 'AbortError') throw err; return err.message; }
    }
    return reasons.get(key);
  }

  async function readLetters() {
    try {
      health.letterQueues = (await get('dead-letters', stop.signal)).queues;
      const n = health.letterQueues.reduce((sum, q) => sum + q.visible + q.hidden, 0);
      Object.assign(health, { letters: { n, more: false }, noAccess: false, letterFault: '' });
      health.unread.delete('the dead letters');
      figures.dead.set(count(n), n ? 'bad' : '');
    } catch (err) {
      if (err.name === 'AbortError') return;
      const noAccess = err.code === 'no_dead_letters';
      Object.assign(health, { letters: null, letterQueues: null, noAccess, letterFault: err.message });
      if (!noAccess) health.unread.add('the dead letters');
      figures.dead.set('—');
      figures.dead.note(noAccess ? 'this API has no access' : 'not available');
    }
    drawQueues();
    drawVerdict();
  }

  const counts = statusCounts({ rest: '', chosen: null, pairs: [], keep: null, signal: stop.signal, told: (status, c, items) => {
    if (status === 'Cancelling') figures.cancelling.set(countText(c), c.n ? 'warn' : '');
    if (over(status)) return;
    unfinished.set(status, { items, more: c.more });
    drawVersions();
  } });

  let slowAt = 0;
  async function refresh(changed) {
    const faults = [];
    const note = (what, figure, section) => (err) => { if (err.name === 'AbortError') return; faults.push(err); health.unread.add(what); figure?.set('?'); if (section) fault(section)(err); };
    const part = (what, figure, section, promise) => promise.then(() => health.unread.delete(what), note(what, figure, section));
    const work = [part('the blocked instances', figures.blocked, stuck, readStuck()), readLetters(), showJobs(false)];
    if (changed || Date.now() - slowAt > countsFor) {
      slowAt = Date.now();
      work.push(part('the workers', null, null, counts.refresh(true).then((ok) => { if (ok === false) throw new Error('The instances could not be counted'); return readWorkers(); })),
        part('the failed instances', figures.failed, null, bounded([['status', 'Failed'], ['startedAfter', new Date(now - 864e5).toISOString()]]).then((c) => figures.failed.set(countText(c), c.n ? 'bad' : ''))),
        part('the oldest instances', figures.old, null, bounded([['status', 'Running'], ['startedBefore', new Date(now - 7 * 864e5).toISOString()]]).then((c) => {
          const items = c.items.filter((s) => !lasting(s));
          figures.old.set(countText({ n: items.length, more: c.more }), items.length ? 'warn' : '');
          if (items.length && !c.more) figures.old.note(`the oldest started ${ago(items.at(-1).createdAt)}`);
        })));
    }
    await Promise.all(work);
    drawVerdict();
    wrong.hidden = faults.length === 0;
    if (faults.length) wrong.replaceChildren(h('b', {}, 'Could not load a part of the overview'), h('span', {}, faults[0].message));
    return faults.length === 0;
  }

  $('main').replaceChildren(h('h1', {}, 'Hub overview'), verdict, wrong, cards, counts.root, queues, h('div', { class: 'columns' }, stuck, versions, jobs));
  return { title: 'Hub overview', place: 'hub', first: refresh, refresh, every: 20_000, live: () => true, leave: () => stop.abort() };
}
