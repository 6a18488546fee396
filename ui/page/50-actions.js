// Actions on instances. Each one asks for confirmation.

// ask shows a dialog and calls act with the form of the dialog when the user confirms. The dialog shows an error of
// act, and the user can try again. The dialog cannot be closed while act runs, because the request cannot be withdrawn.
// If careful or danger is set, the dismiss button has the initial focus. If reads is set, act changes nothing: the
// dialog can be closed at any time, and stays open for further requests.
function ask({ title, body, verb, danger, careful, reads, act, ready }) {
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const go = h('button', { type: 'submit', class: `primary${danger ? ' danger' : ''}` }, verb);
  const keep = h('button', { type: 'button', autofocus: Boolean(danger || careful), onclick: () => box.close() }, reads ? 'Close' : 'Go back');
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
  const stay = (e) => { if (e.key === 'Escape' && keep.disabled) e.preventDefault(); }; // browsers close a dialog on a second Escape
  document.addEventListener('keydown', stay, true);
  const back = document.activeElement;
  box.addEventListener('close', () => { document.removeEventListener('keydown', stay, true); box.remove(); back?.focus?.(); });
  document.body.append(box);
  box.showModal();
  ready?.(form, go);
}

// jsonOf returns the JSON text of a field unchanged, because JavaScript cannot represent all numbers. An empty field is null.
function jsonOf(field, what) {
  const text = field.value.trim();
  if (text) { try { JSON.parse(text); } catch (err) { throw new Error(`The ${what} is not JSON: ${err.message}`); } }
  return text || 'null';
}

const messageField = (label = 'Message (stored in the history)') => h('label', {}, label, h('input', { name: 'message', maxlength: '1000', autocomplete: 'off' }));

const actions = {
  raise: (s, key = crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`) => ask({ // one key per dialog, so that a repeated request raises one event
    title: `Raise an event to ${s.instanceId}`, verb: 'Raise event',
    body: [h('label', {}, 'Event name', h('input', { name: 'event', required: true, autocomplete: 'off' })), h('label', {}, 'Data (JSON, empty for null)', h('textarea', { name: 'data', spellcheck: 'false' }))],
    async act(form) {
      await send('POST', instancePath(s.instanceId, `/events/${idPath(form.elements.event.value)}`), jsonOf(form.elements.data, 'data'), { headers: { 'Idempotency-Key': key } });
      return 'Event accepted';
    },
  }),
  query: (s, answer = h('div', { 'aria-live': 'polite' })) => ask({
    title: `Query ${s.instanceId}`, verb: 'Run query', reads: true,
    body: [h('p', {}, 'Runs a query handler on the state after the last committed turn. A query changes nothing.'),
      h('label', {}, 'Query name', h('input', { name: 'query', required: true, autocomplete: 'off' })), h('label', {}, 'Input (JSON, empty for null)', h('textarea', { name: 'input', spellcheck: 'false' })), answer],
    async act(form) {
      answer.replaceChildren();
      const asked = jsonOf(form.elements.input, 'input');
      answer.replaceChildren(h('p', { class: 'muted' }, 'Replaying the history …'));
      try {
        const name = form.elements.query.value;
        const said = await send('POST', instancePath(s.instanceId, '/query'), `{"query":${JSON.stringify(name)},"input":${asked}}`);
        answer.replaceChildren(payload(`Result of ${name}`, said.answer));
      } catch (err) { answer.replaceChildren(); throw err; }
    },
  }),
  annotate: (s) => ask({
    title: `Add a note to ${s.instanceId}`, verb: 'Add note',
    body: [h('p', {}, 'The instance keeps its newest 20 notes until it is purged.'), h('label', {}, 'Note (at most 1,024 bytes)', h('input', { name: 'note', required: true, maxlength: '1024', autocomplete: 'off' }))],
    async act(form) { await call('POST', instancePath(s.instanceId, '/notes'), { note: form.elements.note.value }); return 'Note added'; },
  }),
  cancel: (s) => ask({
    title: `Cancel ${s.instanceId}?`, verb: 'Cancel instance',
    body: [h('p', {}, 'The orchestration observes the cancellation and can clean up. Its pending tasks are cancelled, including sub-orchestrations.'), messageField()],
    async act(form) { await call('POST', instancePath(s.instanceId, '/cancel'), { message: form.elements.message.value }); return 'Cancellation requested'; },
  }),
  pause: (s) => ask({
    title: `Pause ${s.instanceId}?`, verb: 'Pause instance',
    body: [h('p', {}, 'The orchestration does not run until you resume it. New inputs are parked, including a cancellation. Running activities and sub-orchestrations continue.'), messageField()],
    async act(form) { await call('POST', instancePath(s.instanceId, '/pause'), { message: form.elements.message.value }); return 'Pause requested'; },
  }),
  resume: (s) => ask({
    title: `Resume ${s.instanceId}?`, verb: 'Resume instance',
    body: [h('p', {}, 'The orchestration continues and processes the parked inputs.'), messageField()],
    async act(form) {
      const { notPaused } = await call('POST', instancePath(s.instanceId, '/resume'), { message: form.elements.message.value });
      return notPaused ? 'The instance is not paused' : 'Resume requested';
    },
  }),
  terminate: (s) => ask({
    title: `Terminate ${s.instanceId}?`, verb: 'Terminate instance', danger: true,
    body: [h('p', {}, 'The instance ends immediately. Its code does not run again, and completed work is not undone. To let the orchestration clean up, cancel the instance instead.'), messageField('Message')],
    async act(form) { await call('POST', instancePath(s.instanceId, '/terminate'), { message: form.elements.message.value }); return 'Termination requested'; },
  }),
  restart: (s, from) => ask({
    title: `Restart ${s.instanceId}?`, verb: 'Restart instance', careful: true,
    body: [h('p', {}, 'Starts a new instance with the input, version and tags of the last execution. This instance does not change. Completed work is not undone, and it runs again. If you enter an event number, only work that had not ended by that event runs again.'),
      h('label', {}, 'From event number (empty for the beginning)', h('input', { name: 'from', inputmode: 'numeric', pattern: '[0-9]*', title: 'Event number', autocomplete: 'off', value: from }))],
    async act(form) {
      const at = form.elements.from.value.trim();
      const { instanceId } = await call('POST', instancePath(s.instanceId, '/restart'), at ? { from: Number(at) } : {});
      go(query([['instance', instanceId]]));
      return `Started ${instanceId}`;
    },
  }),
  purge: (s) => ask({
    title: `Purge ${s.instanceId}?`, verb: 'Purge instance', danger: true,
    body: [h('p', {}, over(s.status) ? 'Deletes the history and the result permanently. The instance ID can then be used again.' : 'The instance has not ended. A purge ends it without running its code and deletes its history permanently.')],
    async act() {
      const looked = location.search;
      await call('DELETE', instancePath(s.instanceId, `?${query([['force', over(s.status) ? '' : 'true'], ['createdAt', s.createdAt]])}`)); // purge only the incarnation that is shown
      if (location.search === looked) go('');
      return 'Purge started';
    },
  }),
  cancelActivity: (s, row) => ask({
    title: `Cancel activity #${row.id} ${row.name}?`, verb: 'Cancel activity',
    body: [h('p', {}, "The worker cancels the activity's context. The orchestration receives a cancellation error for the activity and continues."), messageField('Message')],
    async act(form) { await call('POST', instancePath(s.instanceId, `/activities/${row.id}/cancel`), { message: form.elements.message.value }); return 'Cancellation requested'; },
  }),
};

// bulk creates a bulk job for all instances that match a filter, after a preview of their number.
const bulkWords = {
  cancel: 'The orchestrations observe the cancellation and can clean up.', terminate: 'The instances end immediately. Their code does not run again.',
  purge: 'Deletes the instances and their histories permanently. Instances that have not ended are skipped.',
};
function bulk(operation, filter) {
  const none = Object.keys(filter).length === 0;
  let upTo; // the hub's time of the preview: the job excludes instances that start later
  const found = h('div', { 'aria-live': 'polite' }, h('p', { class: 'muted' }, 'Counting matching instances …'));
  ask({
    title: `${operation[0].toUpperCase()}${operation.slice(1)} ${none ? 'all' : 'matching'} instances?`, verb: `${operation[0].toUpperCase()}${operation.slice(1)} instances`, danger: operation !== 'cancel', careful: true,
    body: [h('p', {}, bulkWords[operation]), h('p', { class: 'muted' }, none ? 'No filter. The job includes all instances of the hub.' : `Filter: ${Object.entries(filter).map(([k, v]) => `${k} ${typeof v === 'object' && !Array.isArray(v) ? Object.entries(v).map((p) => p.join('=')).join(', ') : v}`).join(', ')}`),
      found, operation === 'purge' ? null : messageField('Message')],
    async act(form) {
      const message = form.elements.message?.value;
      const body = { operation, filter: { ...filter, startedBefore: upTo } };
      const job = await call('POST', 'jobs', message ? { ...body, message } : body);
      showJobs(true);
      return `Job ${job.jobId} starts within minutes`;
    },
    async ready(form, button) {
      button.disabled = true;
      try {
        const p = await call('POST', 'jobs', { operation, ...(none ? { all: true } : { filter }), dryRun: true });
        upTo = p.startedBefore;
        found.replaceChildren(h('p', {}, h('b', {}, `${count(p.matched)}${p.complete ? '' : ' or more'} instance${p.matched === 1 ? '' : 's'}`), ` to ${operation}${p.sample.length ? ', for example' : ''}`),
          h('ul', { class: 'mono' }, p.sample.map((id) => h('li', {}, id))));
        button.disabled = p.matched === 0;
        if (p.matched) button.textContent = `${operation[0].toUpperCase()}${operation.slice(1)} ${count(p.matched)}${p.complete ? '' : ' or more'}`;
      } catch (err) { found.replaceChildren(h('p', { class: 'wrong' }, err.message)); }
    },
  });
}

const stop = (j) => ask({
  title: `Stop this ${j.operation} job?`, verb: 'Stop job', careful: true,
  body: [h('p', {}, `${count(j.done)} of ${count(j.matched)} instances are done. Up to 100 instances that the job is processing may still change. The others do not change.`), h('p', { class: 'mono muted' }, j.jobId)],
  async act() { await call('POST', `jobs/${j.jobId}/cancel`); showJobs(true); return 'Job stopped'; },
});

// showJobs shows the status of bulk jobs.
async function showJobs(open) {
  const place = $('jobs');
  if (!place || (!open && place.hidden)) return;
  place.hidden = false;
  try {
    const { items } = await get('jobs');
    const row = (j) => h('tr', {}, h('td', {}, j.operation), h('td', {}, j.state), h('td', {}, when(j.createdAt)), h('td', {}, `${count(j.done)} of ${count(j.matched)}${j.failed ? `, ${count(j.failed)} failed` : ''}`), h('td', {}, shortName(j.requestedBy) || '—'),
      h('td', {}, j.state === 'Running' ? h('button', { type: 'button', 'aria-label': `Stop job ${j.jobId}`, onclick: () => stop(j) }, 'Stop …') : j.errors[0] || ''));
    place.replaceChildren(h('div', { class: 'bar-row' }, h('h2', {}, 'Jobs of the last 7 days'), h('button', { type: 'button', class: 'quiet', onclick: () => { place.hidden = true; } }, 'Hide')),
      items.length ? h('table', { class: 'jobs' }, h('thead', {}, h('tr', {}, ['Operation', 'State', 'Created', 'Progress', 'Requested by', ''].map((t) => (t ? h('th', { scope: 'col' }, t) : h('td', {}))))), h('tbody', {}, items.slice(0, 20).map(row))) : h('p', { class: 'muted' }, 'No jobs'));
  } catch (err) { place.replaceChildren(h('p', { class: 'wrong' }, err.message)); }
}
