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
