// Actions on many instances: a bulk job for all that match a filter, or one request for each selected instance. Both show a preview first.

const bulkWords = {
  cancel: 'The orchestrations observe the cancellation and can clean up.', terminate: 'The instances end immediately. Their code does not run again.',
  purge: 'Deletes the instances and their histories permanently. Instances that have not ended are skipped.',
};

// bulk creates a bulk job for all instances that match a filter, after a preview of their number.
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

// selectedWork has the request of each action on selected instances, and the instances that it applies to.
const selectedWork = {
  cancel: { send: (s, message) => call('POST', instancePath(s.instanceId, '/cancel'), { message }), fits: (s) => !over(s.status), why: 'ended', done: 'cancellation requested', words: bulkWords.cancel },
  pause: { send: (s, message) => call('POST', instancePath(s.instanceId, '/pause'), { message }), fits: (s) => !over(s.status) && s.status !== 'Paused', why: 'ended or paused', done: 'pause requested', words: 'The orchestrations do not run until you resume them. Running activities continue.' },
  resume: { send: (s, message) => call('POST', instancePath(s.instanceId, '/resume'), { message }), fits: (s) => s.status === 'Paused', why: 'not paused', done: 'resume requested', words: 'The orchestrations continue and process the parked inputs.' },
  terminate: { send: (s, message) => call('POST', instancePath(s.instanceId, '/terminate'), { message }), fits: (s) => !over(s.status), why: 'ended', done: 'termination requested', danger: true, words: bulkWords.terminate },
  purge: { send: (s) => call('DELETE', instancePath(s.instanceId, `?${query([['createdAt', s.createdAt]])}`)), fits: (s) => over(s.status) && s.status !== 'Deleting', why: 'not ended', done: 'purge started', danger: true, words: 'Deletes the instances and their histories permanently.' },
};

// bulkSelected asks for confirmation and applies an action to each selected instance. A repeated attempt skips the instances that succeeded.
const requestsAtATime = 4;
function bulkSelected(operation, items, finished) {
  const work = selectedWork[operation];
  const name = `${operation[0].toUpperCase()}${operation.slice(1)}`;
  const rest = new Set(items.filter(work.fits));
  const skipped = items.length - rest.size;
  const number = (n) => `${count(n)} instance${n === 1 ? '' : 's'}`;
  const progress = h('p', { role: 'status' });
  ask({
    title: `${name} the selected instances?`, verb: `${name} ${number(rest.size)}`, danger: work.danger, careful: true,
    body: [h('p', {}, work.words), h('p', {}, h('b', {}, number(rest.size)), ` to ${operation}${skipped ? `, ${count(skipped)} skipped (${work.why})` : ''}`),
      h('ul', { class: 'mono' }, [...rest].slice(0, 5).map((s) => h('li', {}, s.instanceId))), operation === 'purge' ? null : messageField(operation === 'terminate' ? 'Message' : undefined), progress],
    ready: (form, button) => { button.disabled = rest.size === 0; },
    async act(form) {
      const message = form.elements.message?.value || '';
      const queue = [...rest];
      const errors = [];
      let done = 0;
      const worker = async () => {
        for (let s = queue.pop(); s; s = queue.pop()) {
          try { await work.send(s, message); rest.delete(s); done++; } catch (err) { errors.push(`${s.instanceId}: ${err.message}`); }
          progress.textContent = `${count(done)} of ${count(done + errors.length + queue.length)} …`;
        }
      };
      await Promise.all(Array.from({ length: requestsAtATime }, worker));
      if (errors.length) throw new Error(`${number(done)}: ${work.done}. ${number(errors.length)} failed: ${errors.slice(0, 3).join('; ')}${errors.length > 3 ? ' …' : ''}`);
      finished();
      return `${number(done)}: ${work.done}`;
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
    place.replaceChildren(h('div', { class: 'bar-row' }, h('h2', {}, 'Jobs of the last 7 days'), $('main').querySelector('.bottom') ? h('button', { type: 'button', class: 'quiet', onclick: () => { place.hidden = true; } }, 'Hide') : null),
      items.length ? h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Jobs of the last 7 days' }, h('table', { class: 'jobs' }, h('thead', {}, h('tr', {}, ['Operation', 'State', 'Created', 'Progress', 'Requested by', ''].map((t) => (t ? h('th', { scope: 'col' }, t) : h('td', {}))))), h('tbody', {}, items.slice(0, 20).map(row)))) : h('p', { class: 'muted' }, 'No jobs. Cancel, terminate or purge matching instances to create one.'));
  } catch (err) { place.replaceChildren(h('p', { class: 'wrong' }, err.message)); }
}
