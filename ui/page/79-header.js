// The header of an instance: what it is doing, what went wrong, its actions, facts, input and output.

// instanceHeader returns the header. choose is called with a row of the timeline, and showEvent with an event.
function instanceHeader(view, choose, showEvent, signal) {
  const { id } = view;
  const status = h('span', {});
  const title = h('h1', { class: 'mono' }, id);
  const buttons = h('div', { class: 'bar-row acts' });
  const sentence = h('p', { class: 'now-doing' }, 'Loading …');
  const notes = h('div', { class: 'stack notes' });
  const problems = h('ul', { class: 'problems', 'aria-label': 'Problems' });
  const facts = h('dl', { class: 'facts' });
  const strip = h('div', { class: 'strip' });
  const root = h('section', { class: 'hero', 'aria-label': 'Instance' },
    h('div', { class: 'line' }, status, title, h('button', { type: 'button', class: 'quiet', onclick: () => copy(id), 'aria-label': 'Copy instance ID' }, 'Copy'), h('span', { class: 'grow' }), buttons), sentence, notes, problems, facts, strip);

  // replace sets the children of an element unless it shows the same already (key). A focused element keeps the focus.
  function replace(el, key, children) {
    if (el.key === key) return;
    const at = el.contains(document.activeElement) ? document.activeElement : null;
    if (at?.tagName === 'SELECT') return; // its list may be open
    el.key = key;
    el.replaceChildren(...children().flat(Infinity).filter(Boolean));
    const same = (other) => (at.dataset.row ? other.dataset.row === at.dataset.row : other.textContent === at.textContent); // the text of a row has ages
    if (at) [...el.querySelectorAll(at.tagName)].find(same)?.focus();
  }

  const act = (name, label, danger) => h('button', { type: 'button', class: danger ? 'danger' : '', onclick: () => actions[name](view.status) }, label);
  function drawActions(s) {
    const done = over(s.status);
    const deleting = s.status === 'Deleting';
    replace(buttons, `${done} ${deleting} ${s.status === 'Paused'}`, () => [
      done ? null : [act('raise', 'Raise event …'), s.status === 'Paused' ? act('resume', 'Resume …') : act('pause', 'Pause …'), act('cancel', 'Cancel …')], deleting ? null : [act('query', 'Query …'), act('annotate', 'Add note …')],
      done && !deleting ? act('restart', 'Restart …') : null, menu('More', [done ? [] : act('terminate', 'Terminate …', true), act('purge', 'Purge …', true)].flat(), { 'aria-label': 'More actions' }),
    ]);
  }

  function drawNotes(s) {
    const parts = [];
    if (s.status === 'Blocked' && s.failure) parts.push(blocked(s.failure));
    else if (s.failure && !['Cancelled', 'Terminated'].includes(s.status)) parts.push(h('div', { class: 'note bad' }, failureLines(s.failure).map((l, i) => h(i ? 'span' : 'b', {}, i ? `caused by ${l}` : l))));
    if (s.paused) parts.push(paused(s.paused));
    if (s.notes) parts.push(h('div', { class: 'note plain', id: 'notes' }, h('h2', {}, 'Notes'), s.notes.map((n) => h('span', {}, when(n.at), n.by ? [' by ', h('b', { title: n.by }, shortName(n.by))] : null, `: ${n.text}`))));
    const event = s.failure?.eventId ? view.model.events.some((e) => e.id === s.failure.eventId) : '';
    replace(notes, JSON.stringify([s.status, s.failure, s.paused, s.notes, event]), () => parts);
  }

  function paused(p) {
    return h('div', { class: 'note', id: 'paused' }, h('h2', {}, '‖ Paused'),
      h('span', {}, 'since ', when(p.at), p.by ? [' by ', h('b', { title: p.by }, shortName(p.by))] : null, p.message ? `: ${p.message}` : ''),
      h('span', { class: 'muted' }, 'The orchestration does not run until you resume it. New inputs are parked. Running activities continue.'));
  }

  function blocked(f) {
    const at = f.eventId ? view.model.events.find((e) => e.id === f.eventId) : null;
    return h('div', { class: 'note', id: 'blocked' }, h('h2', {}, `▲ Blocked: ${f.type}`), h('span', {}, f.message),
      f.expected || f.got ? h('div', { class: 'sides' }, h('div', {}, h('h3', {}, `History${f.eventId ? `, event #${f.eventId}` : ''}`), h('pre', {}, f.expected || 'nothing'), at ? h('button', { type: 'button', class: 'quiet', onclick: () => showEvent(at) }, `Show event #${at.id}`) : null), h('div', {}, h('h3', {}, 'Current code'), h('pre', {}, f.got || 'nothing'))) : null,
      h('span', {}, h('b', {}, 'Next step: '), blockedStep(f.type)), h('span', { class: 'muted' }, 'Until then, new inputs are parked. Nothing is lost.'));
  }

  // drawProblems lists pending tasks that cannot progress, then failed ones, the newest first, then pending ones that may be slow.
  const mostProblems = 4;
  function drawProblems() {
    const found = [];
    const slow = [];
    for (const p of view.pending?.items || []) {
      const row = view.model.byID.get(p.id);
      if (row && (p.lastError || p.noWorker || p.unknownBuild || p.cause)) found.push([row, pendingText(p), p.childId, p.noWorker || p.unknownBuild ? stuckRank : p.rank ?? retryRank]);
      else if (row && p.what === 'activity' && !p.cancelledAt && Date.now() - Date.parse(p.since) > startAfter) slow.push([row, pendingText(p), '', sentRank]);
    }
    found.sort(([, , , a], [, , , b]) => a - b);
    const open = found.length;
    for (let i = view.model.failed.length - 1; i >= 0 && found.length - open < mostProblems; i--) {
      const row = view.model.failed[i];
      found.push([row, `failed after ${span(row.end - row.start)}${row.attempt > 1 ? ` and ${row.attempt} attempts` : ''}: ${failureLines(row.endEvent?.error)[0] || row.endEvent?.message || ''}`]);
    }
    const more = open + view.model.failed.length - Math.min(found.length, mostProblems);
    const free = more ? 0 : mostProblems - found.length;
    found.push(...slow.slice(0, free));
    const slower = Math.max(slow.length - free, 0);
    const shown = found.slice(0, mostProblems);
    replace(problems, JSON.stringify([shown.map(([row, text]) => [row.id, text]), more, slower]), () => [
      shown.map(([row, text, child, rank]) => h('li', {}, h('button', { type: 'button', class: `problem ${rank >= sentRank ? 'plain' : ''}`, 'data-row': String(row.id), onclick: () => choose(row) }, h('b', {}, `${child ? kindSigns.child : rank >= sentRank ? kindSigns.activity : '✕'} ${row.name || kindWords[row.kind]} #${row.id}`), ' ', text), child ? [' → ', instanceLink(child)] : null)),
      more > 0 ? h('li', { class: 'muted' }, `and ${several(more, 'more problem')}: see Events, “Only failures”`) : null,
      slower > 0 ? h('li', { class: 'muted' }, `and ${several(slower, 'more pending activity', 'more pending activities')}: see Pending`) : null,
    ]);
    problems.hidden = shown.length === 0;
  }

  function drawFacts(s) {
    const fact = (name, value) => (value ? h('div', {}, h('dt', {}, name), h('dd', {}, value)) : null);
    const done = over(s.status);
    const tags = Object.entries(s.tags || {});
    const entity = entityOf(s.instanceId);
    const executions = s.executionNumber > 1 ? h('select', { 'aria-label': 'Execution', id: 'executions', onchange: (e) => go(query([['instance', id], ['execution', e.target.value]])) }, h('option', { value: view.execution }, view.execution ? `execution ${view.execution}` : `execution ${s.executionNumber} (current)`)) : null;
    if (executions) executions.addEventListener('focus', () => fillExecutions(executions, s), { once: true });
    const { cancel } = view.model.instance;
    const cancelled = s.status === 'Cancelled' || s.status === 'Cancelling';
    const by = (who) => (who ? h('span', { title: who }, requester(who)) : '');
    replace(facts, JSON.stringify([s.updatedAt, s.status, view.model.firstTurn, view.loaded, cancel, Math.floor(Date.now() / 30_000)]), () => [
      fact('Orchestration', `${s.orchestration}${s.version ? ` ${s.version}` : ''}`), fact('Created', when(s.createdAt)), s.startAt ? fact('Start time', when(s.startAt)) : null, fact('Started', view.model.firstTurn ? when(view.model.firstTurn) : ''),
      done ? fact('Ended', when(s.updatedAt)) : null, fact('Created to end', done ? span(Date.parse(s.updatedAt) - Date.parse(s.createdAt)) : ''),
      fact('Started by', s.startedBy ? h('span', { title: s.startedBy }, shortName(s.startedBy)) : ''), s.status === 'Terminated' ? [fact('Terminated by', by(s.terminatedBy)), fact('Reason', s.failure?.message)] : null,
      cancelled && view.loaded ? [fact('Cancelled by', by(cancel?.by)), fact('Cancel requested', cancel ? when(cancel.decided) : ''), fact('Reason', cancel?.message || s.failure?.message || reasonText(cancel?.reason || s.failure?.reason))] : null,
      s.parent ? fact('Parent', instanceLink(s.parent.instanceId)) : null, executions ? fact('Execution', executions) : null,
      entity ? fact('Entity', h('a', { href: `?entities=${encodeURIComponent(entity.entity)}` }, entity.entity)) : null,
      fact('Tags', tags.length ? h('span', {}, tags.map(([k, v]) => [h('a', { class: 'tag', href: listURL(['tag', `${k}=${v}`]) }, `${k}=${v}`), ' '])) : ''), fact('Dead letters', h('a', { href: `?dead&${query([['about', s.instanceId]])}`, 'aria-label': 'Search dead letters of this instance' }, 'Search')),
    ]);
  }

  async function fillExecutions(select, s) {
    try {
      const page = await get(instancePath(id, '/executions?limit=200'), signal);
      select.replaceChildren(...page.items.map((x) => h('option', { value: x.executionId === s.executionId ? '' : x.executionId, selected: x.executionId === (view.execution || s.executionId) }, `execution ${x.number}, ${moment(x.startedAt)}`)));
    } catch (err) { toast(err.message); }
  }

  // drawStrip shows input, custom status and output next to each other. A long document is collapsed.
  function drawStrip(s) {
    const first = view.model.events[0];
    const end = view.model.instance.endEvent;
    const values = [['Input', first?.input], ['Custom status', view.current && s.customStatus !== null ? s.customStatus : undefined], ['Output', view.current && s.output !== undefined ? s.output : end?.output]].filter(([, v]) => v !== undefined);
    const entity = entityOf(s.instanceId);
    replace(strip, JSON.stringify([values.map(([name, v]) => [name, v]), Boolean(entity)]).slice(0, 400_000), () => [values.map(([name, v]) => valueCard(name, v)), entity ? h('div', { class: 'card' }, entityState(entity, signal, 'h2').root) : null]);
  }

  function draw() {
    const s = view.status;
    if (!s) return;
    replace(status, s.status, () => [chip(s.status)]);
    drawActions(s);
    const text = nowSentence(s, view.current ? view.pending : null, Date.now(), view.model.instance.cancel);
    if (sentence.textContent !== text) sentence.textContent = text;
    drawNotes(s);
    drawProblems();
    drawFacts(s);
    drawStrip(s);
  }
  return { root, strip, draw };
}

// valueCard shows a document in a few lines, with buttons that copy and expand it.
function valueCard(name, value) {
  const root = h('div', { class: 'card value' }, payload(name, value, 'h2'));
  const pre = root.querySelector('pre');
  const expand = h('button', { type: 'button', class: 'quiet', hidden: true, 'aria-label': `Expand ${name}`, 'aria-expanded': 'false', onclick: () => { const on = root.classList.toggle('open'); expand.textContent = on ? 'Collapse' : 'Expand'; expand.setAttribute('aria-expanded', on); } }, 'Expand');
  root.querySelector('.bar-row').append(expand);
  const measure = () => { if (!root.classList.contains('open') && pre.clientHeight) expand.hidden = pre.scrollHeight <= pre.clientHeight + 2; };
  if (pre && narrow.matches) expand.hidden = false; // collapsed to its title
  else if (pre) new ResizeObserver(measure).observe(pre);
  return root;
}
