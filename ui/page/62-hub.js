// The overview of the hub: a verdict, numbers that need attention, each a link to its list, and queues, versions and jobs.

function hubView() {
  const stop = new AbortController();
  const cards = h('div', { class: 'cards' });
  const verdict = h('p', { class: 'verdict', role: 'status' }, 'Checking the hub …');
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  let examples = new Map(); // of the work that waits for a worker, by queue
  let lookedFor = ''; // the queues of the last search for examples
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
    hour: card('Started', listURL(['started', '<1h']), 'in the last hour'),
    cost: card('Cost', listURL(['started', '<1h']), 'of the last hour, estimated'),
  };
  const failures = h('section', { class: 'card', 'aria-labelledby': 'failures-title' }, h('h2', { id: 'failures-title' }, 'Failures of the last day'), h('p', { class: 'muted' }, 'Loading …'));
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

  // drawFailures counts the failed instances by orchestration, the most frequent first.
  const mostFailures = 10;
  function drawFailures({ n, more, items }) {
    figures.failed.set(countText({ n, more }), n ? 'bad' : '');
    const found = new Map();
    for (const s of items) pushTo(found, s.orchestration, s); // the newest first
    const rows = [...found].sort(([, a], [, b]) => b.length - a.length).slice(0, mostFailures);
    fill(failures, rows.length ? table(['Orchestration', 'Failed', 'Newest', 'Started'], rows.map(([name, of]) => [name, h('a', { href: listURL(['status', 'failed'], ['name', name], ['started', '<1d']) }, countText({ n: of.length, more })), h('a', { class: 'mono', href: '?' + query([['instance', of[0].instanceId]]) }, of[0].instanceId), relative(of[0].createdAt)])) : h('p', { class: 'muted' }, 'No instance that started in the last day has failed.'));
  }

  // readHour counts the instances that started in the last hour, and estimates their cost from a sample of those that have ended.
  const mostPriced = 8;
  const dollars = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', maximumSignificantDigits: 2 });
  const leastShown = 0.01; // dollars
  async function readHour() {
    const { items, more } = await bounded([['startedAfter', new Date(Date.now() - 3600e3).toISOString()]]);
    const started = items.filter((s) => !lasting(s));
    const ended = started.filter((s) => over(s.status));
    const failed = ended.filter((s) => s.status === 'Failed').length;
    figures.hour.set(countText({ n: started.length, more }));
    figures.hour.note(`in the last hour: ${countText({ n: ended.length, more })} have ended${failed ? `, ${countText({ n: failed, more })} of them failed` : ''}`);
    readCost(started, ended, more).catch((err) => { if (err.name !== 'AbortError') { figures.cost.set('?'); figures.cost.note(`of the last hour: ${err.message}`); } }); // the overview does not wait for it
  }

  async function readCost(started, ended, more) {
    let sum = 0;
    let priced = 0;
    let unread = '';
    const next = ended.filter((s, i) => i % Math.ceil(ended.length / mostPriced) === 0).values();
    const reader = async () => {
      for (const s of next) {
        try {
          const { cost } = await get(instancePath(s.instanceId, '?pending=false&cost=true'), stop.signal);
          if (cost?.dollars === undefined) unread ||= cost?.unread?.detail || 'the cost could not be read'; else { sum += cost.dollars; priced++; }
        } catch (err) {
          if (err.name === 'AbortError') throw err;
          if (err.status !== 404) unread ||= err.message; // it was purged
        }
      }
    };
    await Promise.all([reader(), reader()]);
    const cost = priced && sum / priced * started.length;
    const small = cost < leastShown && !more;
    figures.cost.set(!priced ? (ended.length ? '?' : started.length ? '—' : '$0') : small ? `< ${dollars.format(leastShown)}` : `${more ? '> ' : ''}${dollars.format(cost)}`);
    figures.cost.note(priced ? `of the last hour: ${more ? 'over' : 'about'} ${dollars.format(cost)}, estimated from ${count(priced)} of ${countText({ n: started.length, more })} instances` : `of the last hour: ${ended.length ? unread || 'the cost could not be read' : 'no instance has started and ended'}`);
  }

  function drawVerdict() {
    const { verdict: said, parts, unread } = healthOf(hubHealth, Date.now(), examples);
    const letters = lettersOf(hubHealth.queues);
    const key = JSON.stringify([said, parts, unread, letters === null]);
    if (said === 'Checking' || verdict.key === key) return; // a refresh keeps the focus and is not announced again
    verdict.key = key;
    verdict.className = `verdict ${said === 'Healthy' ? 'ok' : 'bad'}`;
    verdict.replaceChildren(h('b', {}, said), ...(parts.length || unread ? [': ', ...parts.flatMap((p, i) => [i ? ' · ' : '', h('a', { href: p.href }, p.text)]), parts.length && unread ? ' · ' : '', unread]
      : [h('span', { class: 'muted' }, `: no blocked instances, ${letters === null ? 'dead letters not visible to this API' : 'no dead letters'}, no work without a worker`)]));
  }

  // drawQueues lists the queues, those without a worker first, then those with dead letters.
  function drawQueues() {
    const fault = hubHealth.faults.get('queues');
    const letters = lettersOf(hubHealth.queues);
    if (hubHealth.queues || fault) {
      figures.dead.set(letters === null ? '—' : count(letters), letters ? 'bad' : '');
      figures.dead.note(letters !== null ? 'in all queues' : hubHealth.queues ? 'this API has no access' : 'not available');
    }
    const all = [...(hubHealth.queues || [])].sort((a, b) => b.stuck - a.stuck || (b.deadLetters || 0) - (a.deadLetters || 0) || (a.queue < b.queue ? -1 : 1));
    const key = JSON.stringify([hubHealth.queues && all, fault, [...knownReasons], [...examples], Math.floor(Date.now() / 60_000)]);
    if (queues.key === key) return;
    queues.key = key;
    const known = (n) => (n === undefined ? '—' : count(n));
    const worker = (q) => (q.stuck ? h('span', { class: 'wrong' }, q.worker ? `no report ${sinceClock(q.worker.seenAt)}` : 'never reported') : q.noWorker ? 'checking …' : q.worker ? relative(q.worker.seenAt) : q.depth === undefined ? '—' : 'never');
    const waiting = (q) => {
      const example = q.stuck && examples.get(q.queue);
      return example ? h('span', {}, `${example.name} of `, h('a', { class: 'mono', href: `?${query([['instance', example.instanceId], ['tab', 'pending']])}` }, example.instanceId)) : '—';
    };
    const reason = (q) => {
      const r = q.deadLetters ? knownReasons.get(q.queue) : null;
      return r ? h('span', { class: 'free' }, `${r.reason || noReason} (${count(r.n)} of ${count(r.of)}${r.complete ? '' : ' read'})`) : q.deadLetters ? 'not read' : '—';
    };
    const unknown = all.filter((q) => q.deadLetters && !knownReasons.has(q.queue));
    const read = h('button', { type: 'button', onclick: () => readReasons(unknown.map((q) => q.queue), read) }, 'Read reasons');
    fill(queues, all.length ? table(['Queue', 'Work items', 'Last worker report', 'Build', 'Waits for a worker', 'Dead letters', 'Commonest reason'], all.map((q) => [q.queue, known(q.depth), worker(q), q.worker?.buildId || '—', waiting(q), q.deadLetters ? h('a', { href: `?dead=${encodeURIComponent(q.queue)}` }, count(q.deadLetters)) : known(q.deadLetters), reason(q)])) : h('p', { class: 'muted' }, fault ? '' : hubHealth.queues ? 'No queues.' : 'Loading …'),
      unknown.length ? h('div', { class: 'bar-row' }, read, h('span', { class: 'muted grow' }, 'Reading hides the dead letters from other readers for up to two minutes.')) : '',
      fault ? h('p', { class: 'wrong' }, fault) : '');
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

  // readExamples reads the pending tasks of a sample of the unfinished instances, two at a time, if work waits for a worker.
  async function readExamples() {
    const names = (hubHealth.queues || []).filter((q) => q.stuck && !examples.has(q.queue)).map((q) => q.queue).join();
    if (!names || !unfinished.size || names === lookedFor) return;
    lookedFor = names;
    const sample = sampleOf(['Running', 'Cancelling'].flatMap((status) => unfinished.get(status)?.items || []), Date.now());
    const read = [];
    const next = sample.values();
    const reader = async () => {
      for (const s of next) {
        try { read.push(await get(instancePath(s.instanceId, '?limit=50'), stop.signal)); } catch (err) { if (err.status !== 404) return; } // an example is not needed
      }
    };
    await Promise.all([reader(), reader()]);
    examples = examplesOf(read);
    draw();
  }

  const draw = () => { drawQueues(); drawVerdict(); };

  async function readStuck() {
    const blocked = await bounded([['status', 'Blocked']]);
    const paused = await bounded([['status', 'Paused']]);
    hubHealth.takeBlocked(blocked, Date.now());
    figures.blocked.set(countText(blocked), blocked.n ? 'bad' : '');
    figures.paused.set(countText(paused), paused.n ? 'warn' : '');
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

  const counts = statusCounts({ rest: '', chosen: null, pairs: [], keep: null, signal: stop.signal, told: (status, c, items) => {
    if (status === 'Cancelling') figures.cancelling.set(countText(c), c.n ? 'warn' : '');
    if (over(status)) return;
    unfinished.set(status, { items, more: c.more });
    drawVersions();
  } });

  let slowAt = 0;
  async function refresh(changed) {
    const faults = [];
    const note = (figure, section) => (err) => { if (err.name === 'AbortError') return; faults.push(err); figure?.set('?'); if (section) fault(section)(err); };
    const work = [readStuck().catch((err) => { if (err.name !== 'AbortError') hubHealth.took('blocked', Date.now(), err.message); note(figures.blocked, stuck)(err); }), showJobs(false)];
    if (changed) work.push(readHealth('queues'));
    if (changed || Date.now() - slowAt > countsFor) {
      slowAt = Date.now();
      work.push(counts.refresh(true).then((ok) => { if (ok === false) faults.push(new Error('The instances could not be counted')); lookedFor = ''; return readExamples(); }),
        bounded([['status', 'Failed'], ['startedAfter', new Date(Date.now() - 864e5).toISOString()]]).then(drawFailures).catch(note(figures.failed, failures)),
        readHour().catch(note(figures.hour)),
        bounded([['status', 'Running'], ['startedBefore', new Date(Date.now() - 7 * 864e5).toISOString()]]).then((c) => {
          const items = c.items.filter((s) => !lasting(s));
          figures.old.set(countText({ n: items.length, more: c.more }), items.length ? 'warn' : '');
          if (items.length && !c.more) figures.old.note(`the oldest started ${ago(items.at(-1).createdAt)}`);
        }).catch(note(figures.old)));
    }
    await Promise.all(work);
    wrong.hidden = faults.length === 0;
    if (faults.length) wrong.replaceChildren(h('b', {}, 'Could not load a part of the overview'), h('span', {}, faults[0].message));
    return faults.length === 0;
  }

  const changed = () => { draw(); readExamples(); };
  hubHealth.changed.add(changed);
  $('main').replaceChildren(h('h1', {}, 'Hub overview'), verdict, wrong, cards, counts.root, queues, h('div', { class: 'columns' }, stuck, failures, versions, jobs));
  draw();
  return { title: 'Hub overview', place: 'hub', first: refresh, refresh, every: 20_000, live: () => true, leave: () => { stop.abort(); hubHealth.changed.delete(changed); } };
}
