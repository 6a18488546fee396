// What a person may do, each after a question.

// ask shows a dialog, and runs act with its form once it is confirmed. A refusal stays in the dialog, where it can be answered. While the order
// is under way the question cannot be left: it could not be kept back any more. careful: the first key pressed must not confirm it. reads: nothing
// is done, so that it may be left and asked again.
function ask({ title, body, verb, danger, careful, reads, act, ready }) {
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const go = h('button', { type: 'submit', class: `primary${danger ? ' danger' : ''}` }, verb);
  const keep = h('button', { type: 'button', autofocus: Boolean(danger || careful), onclick: () => box.close() }, reads ? 'Close' : 'Keep things as they are');
  const form = h('form', {}, h('h2', { id: 'ask-title' }, title), body, wrong, h('div', { class: 'buttons' }, keep, go));
  const box = h('dialog', { 'aria-labelledby': 'ask-title' }, form);
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    keep.disabled = !reads;
    wrong.textContent = '';
    try {
      const said = await act(form);
      if (reads) { go.disabled = false; return; }
      box.close();
      if (said) toast(said);
      changed();
    } catch (err) {
      if (!box.isConnected && !reads) toast(err.message);
      wrong.textContent = err.message;
      go.disabled = false;
      keep.disabled = false;
    }
  });
  box.addEventListener('cancel', (e) => { if (keep.disabled) e.preventDefault(); });
  const stay = (e) => { if (e.key === 'Escape' && keep.disabled) e.preventDefault(); }; // a browser heeds a second Escape, and the focus may be nowhere
  document.addEventListener('keydown', stay, true);
  const back = document.activeElement;
  box.addEventListener('close', () => { document.removeEventListener('keydown', stay, true); box.remove(); back?.focus?.(); });
  document.body.append(box);
  box.showModal();
  ready?.(form, go);
}

// jsonOf is the text of a field that holds JSON, as it was written: numbers may be longer than the browser's. Empty is null.
function jsonOf(field, what) {
  const text = field.value.trim();
  if (text) { try { JSON.parse(text); } catch (err) { throw new Error(`The ${what} is not JSON: ${err.message}`); } }
  return text || 'null';
}

const messageField = (label) => h('label', {}, label, h('input', { name: 'message', maxlength: '1000', autocomplete: 'off' }));

const actions = {
  raise: (s, key = crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`) => ask({ // one key for the question: what is sent twice is one event
    title: `Raise an event to ${s.instanceId}`, verb: 'Raise the event',
    body: [h('label', {}, 'Event', h('input', { name: 'event', required: true, autocomplete: 'off' })), h('label', {}, 'Data, as JSON (empty is null)', h('textarea', { name: 'data', spellcheck: 'false' }))],
    async act(form) {
      await send('POST', instancePath(s.instanceId, `/events/${idPath(form.elements.event.value)}`), jsonOf(form.elements.data, 'data'), { headers: { 'Idempotency-Key': key } });
      return 'The event is accepted';
    },
  }),
  query: (s, answer = h('div', { 'aria-live': 'polite' })) => ask({
    title: `Ask ${s.instanceId}`, verb: 'Ask', reads: true,
    body: [h('p', {}, 'Its code answers from where its committed turns have led to. Nothing is changed.'),
      h('label', {}, 'Query', h('input', { name: 'query', required: true, autocomplete: 'off' })), h('label', {}, 'Input, as JSON (empty is null)', h('textarea', { name: 'input', spellcheck: 'false' })), answer],
    async act(form) {
      answer.replaceChildren();
      const asked = jsonOf(form.elements.input, 'input');
      answer.replaceChildren(h('p', { class: 'muted' }, 'Its history is replayed …'));
      try {
        const name = form.elements.query.value;
        const said = await send('POST', instancePath(s.instanceId, '/query'), `{"query":${JSON.stringify(name)},"input":${asked}}`);
        answer.replaceChildren(payload(`Answer of ${name}`, said.answer));
      } catch (err) { answer.replaceChildren(); throw err; }
    },
  }),
  cancel: (s) => ask({
    title: `Cancel ${s.instanceId}?`, verb: 'Cancel it',
    body: [h('p', {}, 'Its code is told, and may clean up. What it waits for is cancelled, its sub-orchestrations too.'), messageField('Why (it is written to history)')],
    async act(form) { await call('POST', instancePath(s.instanceId, '/cancel'), { message: form.elements.message.value }); return 'The cancel is accepted'; },
  }),
  pause: (s) => ask({
    title: `Pause ${s.instanceId}?`, verb: 'Pause it',
    body: [h('p', {}, 'Its code is not run until it is resumed. What arrives meanwhile is kept, a cancel too. Its activities and sub-orchestrations go on.'), messageField('Why (it is written to history)')],
    async act(form) { await call('POST', instancePath(s.instanceId, '/pause'), { message: form.elements.message.value }); return 'The order to pause is accepted'; },
  }),
  resume: (s) => ask({
    title: `Resume ${s.instanceId}?`, verb: 'Resume it',
    body: [h('p', {}, 'Its code goes on, with all that has arrived meanwhile.'), messageField('Why (it is written to history)')],
    async act(form) {
      const { notPaused } = await call('POST', instancePath(s.instanceId, '/resume'), { message: form.elements.message.value });
      return notPaused ? 'It was not paused any more' : 'The order to go on is accepted';
    },
  }),
  terminate: (s) => ask({
    title: `Terminate ${s.instanceId}?`, verb: 'Terminate it', danger: true,
    body: [h('p', {}, 'It ends at once, and its code is not run again: nothing is undone. Cancel it instead if its code is to clean up.'), messageField('Why')],
    async act(form) { await call('POST', instancePath(s.instanceId, '/terminate'), { message: form.elements.message.value }); return 'The order to terminate is accepted'; },
  }),
  restart: (s, from) => ask({
    title: `Restart ${s.instanceId}?`, verb: 'Start it once more', careful: true,
    body: [h('p', {}, 'A new instance begins with the input, the version and the tags of its last execution. This one stays as it is. What it has done is not undone, and is done again: from an event on, what had not ended by then.'),
      h('label', {}, 'From event # (empty: from the beginning)', h('input', { name: 'from', inputmode: 'numeric', pattern: '[0-9]*', title: 'the number of an event', autocomplete: 'off', value: from }))],
    async act(form) {
      const at = form.elements.from.value.trim();
      const { instanceId } = await call('POST', instancePath(s.instanceId, '/restart'), at ? { from: Number(at) } : {});
      go(query([['instance', instanceId]]));
      return `${instanceId} is started`;
    },
  }),
  purge: (s) => ask({
    title: `Purge ${s.instanceId}?`, verb: 'Delete it with its history', danger: true,
    body: [h('p', {}, over(s.status) ? 'Its history and its result are deleted for good. The id is free then.' : 'It is not over: it ends without running its code, and its history is deleted for good.')],
    async act() {
      const looked = location.search;
      await call('DELETE', instancePath(s.instanceId, `?${query([['force', over(s.status) ? '' : 'true'], ['createdAt', s.createdAt]])}`)); // the life that was looked at: the id may have another by now
      if (location.search === looked) go('');
      return 'It is deleted';
    },
  }),
  cancelActivity: (s, row) => ask({
    title: `Cancel activity #${row.id} ${row.name}?`, verb: 'Cancel this activity',
    body: [h('p', {}, 'The orchestration receives a cancelled error for it, and goes on. The worker sees that its context has ended.'), messageField('Why')],
    async act(form) { await call('POST', instancePath(s.instanceId, `/activities/${row.id}/cancel`), { message: form.elements.message.value }); return 'The cancel is accepted'; },
  }),
};

// bulk asks for work on all instances that a filter selects, once it is known how many there are.
const bulkWords = {
  cancel: 'Their code is told, and may clean up.', terminate: 'They end at once, and their code is not run again.', purge: 'They are deleted for good, with their histories. Those that are not over stay.',
};
function bulk(operation, filter) {
  const none = Object.keys(filter).length === 0;
  let upTo; // what is started after the question was asked is not meant by its answer: the preview says when that was, by the hub's clock
  const found = h('div', { 'aria-live': 'polite' }, h('p', { class: 'muted' }, 'Counting what matches …'));
  ask({
    title: `${operation[0].toUpperCase()}${operation.slice(1)} many instances?`, verb: `${operation[0].toUpperCase()}${operation.slice(1)} them`, danger: operation !== 'cancel', careful: true,
    body: [h('p', {}, bulkWords[operation]), h('p', { class: 'muted' }, none ? 'No filter is set: every instance is meant.' : `Filter: ${Object.entries(filter).map(([k, v]) => `${k} ${typeof v === 'object' && !Array.isArray(v) ? Object.entries(v).map((p) => p.join('=')).join(', ') : v}`).join(', ')}`),
      found, operation === 'purge' ? null : messageField('Why')],
    async act(form) {
      const message = form.elements.message?.value;
      const body = { operation, filter: { ...filter, startedBefore: upTo } };
      const job = await call('POST', 'jobs', message ? { ...body, message } : body);
      showJobs(true);
      return `Job ${job.jobId} begins within minutes`;
    },
    async ready(form, button) {
      button.disabled = true;
      try {
        const p = await call('POST', 'jobs', { operation, ...(none ? { all: true } : { filter }), dryRun: true });
        upTo = p.startedBefore;
        found.replaceChildren(h('p', {}, h('b', {}, `${count(p.matched)}${p.complete ? '' : ' or more'} instance${p.matched === 1 ? '' : 's'}`), ` to ${operation}${p.sample.length ? ', such as' : ''}`),
          h('ul', { class: 'mono' }, p.sample.map((id) => h('li', {}, id))));
        button.disabled = p.matched === 0;
        if (p.matched) button.textContent = `${operation[0].toUpperCase()}${operation.slice(1)} ${count(p.matched)}${p.complete ? '' : ' or more'}`;
      } catch (err) { found.replaceChildren(h('p', { class: 'wrong' }, err.message)); }
    },
  });
}

const stop = (j) => ask({
  title: `Stop this ${j.operation} of many?`, verb: 'Stop it', careful: true,
  body: [h('p', {}, `${count(j.done)} of ${count(j.matched)} are done, and stay so. Up to 100 that it is dealing with may still be changed; the others are left as they are.`), h('p', { class: 'mono muted' }, j.jobId)],
  async act() { await call('POST', `jobs/${j.jobId}/cancel`); showJobs(true); return 'The job is stopped'; },
});

// showJobs shows how work on many instances stands.
async function showJobs(open) {
  const place = $('jobs');
  if (!place || (!open && place.hidden)) return;
  place.hidden = false;
  try {
    const { items } = await get('jobs');
    const row = (j) => h('tr', {}, h('td', {}, j.operation), h('td', {}, j.state), h('td', {}, when(j.createdAt)), h('td', {}, `${count(j.done)} of ${count(j.matched)}${j.failed ? `, ${count(j.failed)} failed` : ''}`), h('td', {}, shortName(j.requestedBy) || '—'),
      h('td', {}, j.state === 'Running' ? h('button', { type: 'button', 'aria-label': `Stop job ${j.jobId}`, onclick: () => stop(j) }, 'Stop …') : j.errors[0] || ''));
    place.replaceChildren(h('div', { class: 'bar-row' }, h('h2', {}, 'Jobs of the last seven days'), h('button', { type: 'button', class: 'quiet', onclick: () => { place.hidden = true; } }, 'Hide')),
      items.length ? h('table', { class: 'jobs' }, h('thead', {}, h('tr', {}, ['What', 'State', 'Asked for', 'Done', 'By', ''].map((t) => (t ? h('th', { scope: 'col' }, t) : h('td', {}))))), h('tbody', {}, items.slice(0, 20).map(row))) : h('p', { class: 'muted' }, 'None'));
  } catch (err) { place.replaceChildren(h('p', { class: 'wrong' }, err.message)); }
}
