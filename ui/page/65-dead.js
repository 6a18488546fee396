// Dead letters by queue. SQS has no list operation: receiving a record hides it from other readers for a while. Therefore the list loads only on
// request, and a refresh updates only the counts.

const lettersPath = (queue, rest) => `dead-letters/${idPath(queue)}${rest || ''}`;

// whatOf returns the kind and name of a dead letter.
function whatOf(d) {
  if (d.activityId && d.name) return `activity ${d.name} #${d.activityId}`;
  if (!d.kind && d.timerId) return `timer #${d.timerId}`;
  return [d.kind, d.name].filter(Boolean).join(' ') || 'unreadable';
}

// isHandled reports whether a redrive keeps a dead letter unless it is forced.
const handled = ['poison:', 'picked up:'];
const isHandled = (d) => handled.some((prefix) => (d.reason || '').startsWith(prefix));

// todo contains the explanation and the next step for each prefix of a reason.
const todo = [
  ['poison:', 'The message repeatedly ended the process. The failure is in the history, or the instance is blocked and the input is parked.', 'Fix the cause, then drop the dead letter.'],
  ['corrupt:', 'The history could not be read. This is the only copy of the message.', 'Repair the history, then redrive the dead letter.'],
  ['picked up:', 'SQS moved the message here, and the hub resent it.', 'Find the cause, then drop the dead letter.'],
  ['', 'This release cannot read the message.', 'Deploy a release that can, then redrive the dead letter.'],
];
const noReason = 'none: moved by SQS, the sweeper sends it again';
const todoOf = (d) => (d.reason ? todo.find(([prefix]) => d.reason.startsWith(prefix)).slice(1) : ['SQS moved the message here after 100 deliveries.', 'No action is needed: the sweeper resends it within minutes.']);

// adviceOf explains a dead letter and returns its next step. gone reports that its instance does not exist. Then only these kinds of messages can have an
// effect.
const withoutInstance = ['start', 'eventSent', 'updateSent'];
const needsInstance = (d) => Boolean(d.instanceId) && !withoutInstance.includes(d.kind);
const adviceOf = (d, gone, which = 'the dead letter') => {
  const [about, step] = todoOf(d);
  return `${about} ${gone && d.reason && needsInstance(d) ? `Instance ${d.instanceId} does not exist, so a redrive has no effect. Drop ${which}.` : step}`;
};

const redriveWords = {
  redrive: ['Redrive', 'redriven', 'Sends each dead letter to its queue as a new record, then deletes it here. Code that already ran may run again.'],
  drop: ['Drop', 'dropped', 'Deletes dead letters permanently. A dead letter whose reason begins with corrupt:, or that has no reason, is the only copy of its message.'],
};

// dealWith redrives or drops the selected dead letters of some queues. It sends several requests, because a request
// ends after a few seconds, and a queue can have 100,000 dead letters. going reports whether to continue. dealWith
// calls told after each request.
async function dealWith(verb, queues, selection, going, told) {
  const sum = { done: 0, kept: 0, later: 0, failed: 0, sent: [], errors: [] };
  const mostIdle = 20; // consecutive requests that handled nothing
  for (const queue of queues) {
    let last;
    let idle = 0;
    do {
      if (!going()) return { ...sum, stopped: true };
      try { last = await call('POST', lettersPath(queue, `/${verb}`), selection); } catch (err) {
        if (sum.done) err.message = `${count(sum.done)} ${redriveWords[verb][1]}, then failed: ${err.message}`;
        throw err;
      }
      for (const n of ['done', 'kept', 'later', 'failed']) sum[n] += last[n];
      sum.sent.push(...last.sent);
      sum.errors.push(...last.errors);
      idle = last.done ? 0 : idle + 1;
      told(sum);
    } while (!last.complete && !last.errors.length && idle < mostIdle);
  }
  return sum;
}

// outcome describes the result of dealWith.
function outcome(verb, sum) {
  const parts = [`${count(sum.done)} ${redriveWords[verb][1]}`];
  if (sum.kept) parts.push(`${count(sum.kept)} kept (in the history or already resent)`);
  if (sum.later) parts.push(`${count(sum.later)} skipped (arrived later)`);
  if (sum.failed) parts.push(`${count(sum.failed)} failed${sum.errors.length ? `: ${[...new Set(sum.errors)].join('; ')}` : ''}`);
  if (sum.sent.length) parts.push(`Redriven but not deleted, drop them: ${sum.sent.join(', ')}`);
  if (sum.stopped) parts.push('Stopped, the others are unchanged');
  return parts.join('. ');
}

// order redrives or drops one dead letter, or all matching dead letters of some queues, after a confirmation.
function order(verb, { one, queues, filter, done }) {
  const [name] = redriveWords[verb];
  const found = h('div', { 'aria-live': 'polite' }, one ? h('p', {}, `${whatOf(one)}${one.instanceId ? ` of ${one.instanceId}` : ''} in ${one.queue}`) : h('p', { class: 'muted' }, 'Counting matching dead letters …'));
  const progress = h('p', { role: 'status' });
  const force = h('input', { type: 'checkbox', name: 'force' });
  let stopped = false;
  const halt = h('button', { type: 'button', hidden: true, onclick: () => { stopped = true; halt.disabled = true; } }, 'Stop after this call');
  let seen = one ? [one] : [];
  let complete = true;
  let sentBefore;
  const meant = () => seen.filter((d) => verb === 'drop' || force.checked || !isHandled(d));
  ask({
    title: one ? `${name} this dead letter?` : `${name} dead letters?`, verb: one ? `${name} dead letter` : `${name} dead letters`, danger: verb === 'drop', careful: true,
    body: [h('p', {}, redriveWords[verb][2]), found, verb === 'redrive' ? h('label', { class: 'check' }, force, 'Include dead letters that are in the history or were sent again (poison:, picked up:). An event may be applied twice.') : null, progress, halt],
    async act(form) {
      halt.hidden = Boolean(one);
      const selection = one ? { ids: [one.id] } : { ...(Object.keys(filter).length ? filter : { all: true }), sentBefore };
      if (verb === 'redrive' && force.checked) selection.force = true;
      const sum = await dealWith(verb, queues, selection, () => !stopped && form.isConnected, (s) => { progress.textContent = `${count(s.done)} ${redriveWords[verb][1]} …`; })
        .finally(() => { halt.hidden = true; done(); });
      if (one && sum.done + sum.kept + sum.failed === 0) throw new Error('The dead letter is not available. Another reader has received it, or it was deleted.');
      if (sum.failed) throw new Error(outcome(verb, sum));
      return outcome(verb, sum);
    },
    async ready(form, button) {
      const tell = () => {
        const n = meant().length;
        button.disabled = n === 0;
        if (one) return;
        const kinds = new Map();
        for (const d of seen) { const k = d.reason ? (todo.find(([p]) => p && d.reason.startsWith(p)) || ['other'])[0] : 'without reason'; kinds.set(k, (kinds.get(k) || 0) + 1); }
        found.replaceChildren(h('p', {}, h('b', {}, `${count(n)}${complete ? '' : ' or more'} dead letter${n === 1 ? '' : 's'}`), ` to ${verb}${n < seen.length ? `, ${count(seen.length - n)} kept` : ''} (${[...kinds].map(([k, v]) => `${count(v)} ${k}`).join(', ') || 'none'})`),
          h('ul', { class: 'mono' }, meant().slice(0, 5).map((d) => h('li', {}, `${d.queue}: ${whatOf(d)}${d.instanceId ? ` of ${d.instanceId}` : ''}`))), complete ? null : h('p', { class: 'muted' }, 'Runs in several requests. If you close this window, the remaining dead letters are unchanged.'));
        button.textContent = `${name} ${count(n)}${complete ? '' : ' or more'}`;
      };
      force.addEventListener('change', tell);
      if (one) { tell(); return; }
      button.disabled = true;
      try {
        for (const queue of queues) {
          const list = await get(lettersPath(queue, `?${query([['reason', filter.reason], ['instance', filter.instanceId], ['limit', 1000]])}`));
          seen.push(...list.items);
          complete &&= list.complete;
          if (!sentBefore || list.readAt < sentBefore) sentBefore = list.readAt; // excludes dead letters that arrive after this preview
        }
        tell();
      } catch (err) { found.replaceChildren(h('p', { class: 'wrong' }, err.message)); }
    },
  });
}

function deadView(address) {
  const at = { queue: address.get('dead') || '', reason: address.get('reason') || '', about: address.get('about') || '' };
  const filter = { ...(at.reason && { reason: at.reason }), ...(at.about && { instanceId: at.about }) };
  const state = { queues: [], items: [], complete: true, again: true, reading: false, stop: new AbortController(), gone: new Map() };

  const queueField = h('select', { name: 'dead' }, h('option', { value: '' }, 'All'));
  const form = h('form', { class: 'filters', role: 'search', 'aria-label': 'Filter dead letters' }, h('label', {}, 'Queue', queueField),
    h('label', {}, 'Reason prefix', h('input', { name: 'reason', value: at.reason, placeholder: 'corrupt:', autocomplete: 'off' })),
    h('label', { class: 'wide' }, 'Instance', h('input', { name: 'about', value: at.about, autocomplete: 'off', spellcheck: 'false' })),
    h('button', { type: 'submit', class: 'primary' }, 'Filter'), at.queue || at.reason || at.about ? h('button', { type: 'button', onclick: () => go('dead') }, 'Clear') : null);
  const submit = (e) => { e?.preventDefault(); const f = form.elements; go(`dead=${encodeURIComponent(f.dead.value)}&${query([['reason', f.reason.value], ['about', f.about.value.trim()]])}`); };
  form.addEventListener('submit', submit);
  queueField.addEventListener('change', () => form.requestSubmit());

  const told = h('span', { class: 'muted', role: 'status' }, 'Loading …');
  const wrong = h('div', { class: 'note bad', hidden: true, role: 'alert' });
  const looked = () => (at.queue ? [at.queue] : state.queues.filter((q) => q.visible + q.hidden > 0).map((q) => q.queue));
  const done = () => { state.again = true; };
  const some = at.reason || at.about ? 'matching' : at.queue ? 'all in queue' : 'all';
  const many = ['redrive', 'drop'].map((verb) => h('button', { type: 'button', disabled: true, class: verb === 'drop' ? 'danger' : '', onclick: () => order(verb, { queues: looked(), filter, done }) }, `${redriveWords[verb][0]} ${some} …`));
  const readAgain = h('button', { type: 'button', onclick: () => { state.again = true; refresh(); } }, 'Refresh');
  const bar = h('div', { class: 'bar-row' }, told, readAgain, h('span', { class: 'grow' }), many);

  const groups = h('ul', { class: 'card groups', 'aria-label': 'Dead letters by reason', hidden: true });
  const detail = h('aside', { class: 'detail', hidden: true, 'aria-label': 'Dead letter', tabindex: '-1' });
  const grid = new Grid({
    name: 'letters', label: 'Dead letters', columns: ['Queue', 'Sent', 'Instance', 'Record', 'Reason'], height: () => (narrow.matches ? 60 : 36), empty: 'No visible dead letters', open: (d) => show(d),
    render(d, cells) {
      put(cells[0], d.queue);
      put(cells[1], moment(d.sentAt));
      put(cells[2], d.instanceId || '—');
      put(cells[3], whatOf(d));
      put(cells[4], d.reason || noReason);
    },
  });
  grid.table.addEventListener('keydown', (e) => { if (e.key === 'Escape') hide(); });
  detail.addEventListener('keydown', (e) => { if (e.key === 'Escape') { hide(); grid.focus(grid.at); } });
  function hide() { detail.hidden = true; grid.chosen = null; grid.paint(true); }

  // drawGroups lists the reasons with their next steps, the most frequent first, so that a rare reason does not hide the others.
  const mostGroups = 6;
  function drawGroups() {
    const found = tallyReasons(state.items);
    groups.hidden = found.length === 0;
    groups.replaceChildren(...found.slice(0, mostGroups).map((g) => h('li', {}, h('b', {}, `${count(g.n)}${state.cut.has(g.queue) ? ' or more' : ''}`), ` in ${g.queue}: `,
      g.reason ? h('a', { href: `?dead=${encodeURIComponent(g.queue)}&${query([['reason', g.reason], ['about', at.about]])}` }, g.reason) : noReason, h('div', { class: 'muted' }, adviceOf(g.first, state.gone.get(g.first.instanceId), g.n > 1 ? 'the dead letters of such instances' : undefined)))),
    ...(found.length > mostGroups ? [h('li', { class: 'muted' }, `and ${several(found.length - mostGroups, 'more reason')}`)] : []));
  }

  // isGone reports whether the instance of a dead letter does not exist. It is unknown, and false, after an error.
  async function isGone(d) {
    if (!needsInstance(d)) return false;
    if (!state.gone.has(d.instanceId)) {
      try {
        await get(instancePath(d.instanceId, '?pending=false'), state.stop.signal);
        state.gone.set(d.instanceId, false);
      } catch (err) {
        if (err.status !== 404) return false;
        state.gone.set(d.instanceId, true);
      }
    }
    return state.gone.get(d.instanceId);
  }

  async function checkGroups() {
    for (const g of tallyReasons(state.items).slice(0, mostGroups)) if (await isGone(g.first)) drawGroups();
  }

  // show shows a dead letter with its body. The list has no bodies, because one may have a megabyte.
  async function show(d) {
    const fact = (name, value) => (value ? [h('dt', {}, name), h('dd', {}, value)] : null);
    const body = h('div', { 'aria-live': 'polite' }, h('p', { class: 'muted' }, 'Loading the body …'));
    const step = h('span', {}, adviceOf(d, state.gone.get(d.instanceId)));
    isGone(d).then((gone) => { step.textContent = adviceOf(d, gone); });
    detail.hidden = false;
    detail.replaceChildren(h('div', { class: 'bar-row' }, h('h2', {}, whatOf(d)), h('span', { class: 'grow' }), h('button', { type: 'button', class: 'quiet', onclick: () => { hide(); grid.focus(grid.at); } }, 'Close')),
      h('dl', {}, fact('Queue', d.queue), fact('Reason', d.reason || noReason), fact('Sent', when(d.sentAt)), fact('Deliveries', String(d.deliveries)),
        d.instanceId ? fact('Instance', h('a', { href: '?' + query([['instance', d.instanceId]]) }, d.instanceId)) : null, fact('Execution', d.executionId), fact('Attempt', d.attempt ? String(d.attempt) : ''), fact('ID', h('span', { class: 'mono' }, d.id))),
      h('p', {}, h('b', {}, 'Next step: '), step),
      h('div', { class: 'bar-row' }, h('button', { type: 'button', onclick: () => order('redrive', { one: d, queues: [d.queue], done }) }, 'Redrive …'), h('button', { type: 'button', class: 'danger', onclick: () => order('drop', { one: d, queues: [d.queue], done }) }, 'Drop …')),
      body);
    detail.focus({ preventScroll: true });
    try {
      const whole = await get(lettersPath(d.queue, `/${idPath(d.id)}`), state.stop.signal);
      body.replaceChildren(payload('Body', whole.body));
    } catch (err) { if (err.name !== 'AbortError') body.replaceChildren(h('p', { class: 'wrong' }, err.message)); }
  }

  function tell() {
    const here = state.queues.filter((q) => !at.queue || q.queue === at.queue);
    const hidden = here.reduce((n, q) => n + q.hidden, 0);
    const all = here.reduce((n, q) => n + q.visible, 0) + hidden;
    told.textContent = `${count(state.items.length)}${state.complete ? '' : ' or more'} loaded, about ${count(all)} in ${at.queue || 'all queues'}${hidden ? `, ${count(hidden)} of them hidden because the sweeper (for a minute) or another reader has received them` : ''}`;
    for (const q of state.queues) {
      let option = [...queueField.options].find((o) => o.value === q.queue);
      if (!option) { option = h('option', { value: q.queue, selected: q.queue === at.queue }); queueField.append(option); }
      option.textContent = `${q.queue} (${count(q.visible + q.hidden)})`;
    }
  }

  // refresh loads the counts, with one call per queue that hides no records. It loads the list only on request.
  async function refresh() {
    if (state.reading) return true;
    state.reading = true;
    readAgain.disabled = true;
    try {
      state.queues = (await get('dead-letters', state.stop.signal)).queues;
      if (state.again) {
        told.textContent = 'Loading …';
        const lists = [];
        for (const queue of looked()) lists.push(await get(lettersPath(queue, `?${query([['reason', at.reason], ['instance', at.about], ['limit', 200]])}`), state.stop.signal));
        const names = looked();
        const found = lists.flatMap((l) => l.items);
        const size = new Map(tallyReasons(found).map((g) => [`${g.queue}\n${g.reason}`, g.n]));
        const weight = (d) => size.get(`${d.queue}\n${d.reason || ''}`);
        Object.assign(state, { items: found.sort((a, b) => weight(b) - weight(a)), complete: lists.every((l) => l.complete), again: false, cut: new Set(names.filter((_, i) => !lists[i].complete)) });
        if (!at.reason && !at.about) names.forEach((queue, i) => learnReasons(queue, lists[i].items, lists[i].complete));
        for (const d of state.items) d.key = `${d.queue}/${d.id}`;
        state.gone.clear();
        drawGroups();
        checkGroups();
        if (!detail.hidden && !state.items.some((d) => d.key === grid.chosen)) hide();
        grid.set(state.items);
      }
      wrong.hidden = true;
      for (const b of many) b.disabled = !looked().length;
      tell();
      return true;
    } catch (err) {
      if (err.name === 'AbortError') return true;
      for (const b of many) b.disabled = true;
      told.textContent = '';
      wrong.hidden = false;
      wrong.replaceChildren(h('b', {}, 'Could not load dead letters'), h('span', {}, err.message));
      return false;
    } finally { state.reading = false; readAgain.disabled = false; }
  }

  const filters = narrow.matches ? h('details', { class: 'more', open: Boolean(at.queue || at.reason || at.about) }, h('summary', {}, 'Filter'), form) : form;
  $('main').replaceChildren(h('h1', { class: 'sr' }, 'Dead letters'), filters, wrong, bar, groups, h('div', { class: 'split' }, grid.root, detail));
  return { title: 'Dead letters', place: 'dead', first: refresh, refresh, every: 15_000, live: () => true, leave: () => { state.stop.abort(); grid.watcher.disconnect(); } };
}
