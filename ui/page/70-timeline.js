// The timeline: a bar for each task of an execution, with its attempts and the steps of its cancellation. Labels have a column of their own, so that
// they never cover a bar.

const kindSigns = { instance: '●', activity: '▶', timer: '◷', child: '⤷', detached: '↗', wait: '✉', told: '➹' };
const kindWords = { instance: 'instance', activity: 'activity', timer: 'timer', child: 'sub-orchestration', detached: 'detached orchestration', wait: 'external event', told: 'sent event or update' };
const stateWords = { open: 'pending', done: 'done', failed: 'failed', cancelled: 'cancelled', gone: 'no longer awaited' };

const nowWidth = 34; // pixels of the label “now”

function timeline(view) {
  const frame = { zoom: 1, pan: 0, folding: true, scale: null, now: Date.now() };
  const axis = h('div', { class: 'axis' });
  const pan = h('input', { type: 'range', min: '0', max: '1000', value: '0', 'aria-label': 'Scroll the timeline', disabled: true });
  const fold = h('input', { type: 'checkbox', checked: true });
  const totals = h('span', { class: 'muted' });
  const grid = new Grid({
    name: 'timeline', label: 'Timeline', columns: ['Task', '', 'Duration', 'Outcome'], height: () => (narrow.matches ? 52 : 32), empty: 'No events yet',
    open: (row) => view.choose(row), render: (row, cells, el) => render(row, cells, el),
  });
  grid.headCells[1].replaceChildren(axis);
  grid.headCells[1].setAttribute('aria-label', 'Time');
  grid.headCells[1].style.height = '100%';
  grid.headCells[1].style.padding = '0';
  grid.resized = () => fit();

  const set = (zoom, about = 0.5) => {
    const old = frame.zoom;
    frame.zoom = Math.max(1, Math.min(20_000, zoom));
    if (frame.zoom > 1) { // the time at this share of the width keeps its position
      const at = (frame.pan * (old - 1) + about) / old;
      frame.pan = Math.max(0, Math.min(1, (at * frame.zoom - about) / (frame.zoom - 1)));
    } else frame.pan = 0;
    fit(true);
  };
  pan.addEventListener('input', () => { frame.pan = pan.value / 1000; fit(true); });
  fold.addEventListener('change', () => { frame.folding = fold.checked; update(); });
  grid.view.addEventListener('wheel', (e) => {
    if (e.ctrlKey || e.metaKey) {
      const box = grid.headCells[1].getBoundingClientRect();
      set(frame.zoom * (e.deltaY < 0 ? 1.25 : 0.8), Math.max(0, Math.min(1, (e.clientX - box.left) / Math.max(1, box.width))));
    } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      if (frame.zoom === 1) return;
      frame.pan = Math.max(0, Math.min(1, frame.pan + (e.deltaX || e.deltaY) / (frame.scale.width * (frame.zoom - 1))));
      fit(true);
    } else return;
    e.preventDefault();
  }, { passive: false });
  grid.view.addEventListener('keydown', (e) => {
    const step = { '+': 1.5, '=': 1.5, '-': 1 / 1.5 }[e.key];
    if (step) set(frame.zoom * step);
    else if (e.key === '0') set(1);
    else if (e.key === 'ArrowLeft' || e.key === 'ArrowRight') { frame.pan = Math.max(0, Math.min(1, frame.pan + (e.key === 'ArrowLeft' ? -0.1 : 0.1) / Math.max(1, frame.zoom - 1))); fit(true); } else return;
    e.preventDefault();
  });

  function fit(paint) {
    if (!frame.scale) return;
    const width = Math.max(120, grid.headCells[1].clientWidth);
    frame.scale.fit(width, frame.zoom, frame.pan);
    pan.disabled = frame.zoom === 1;
    pan.value = Math.round(frame.pan * 1000);
    const s = frame.scale;
    const nowAt = view.model.instance.end ? null : Math.max(nowWidth, Math.min(width, s.x(frame.now)));
    const days = s.to - s.from > 86_400_000;
    const marks = s.ticks(nowAt === null ? undefined : [nowAt - nowWidth, nowAt]).map(({ t, x }) => h('span', { class: 'tick', style: { left: x + 'px' } }, days ? moment(t).slice(5) : clock(t, s.to - s.from < 20_000)));
    let free = -1;
    for (const [a, b] of s.folds) {
      const x = (s.x(a) + s.x(b)) / 2;
      if (x > free && x > 0 && x < width) { marks.push(h('span', { class: 'skipped', title: `${span(b - a)} idle` }, `⋯ ${span(b - a)}`)); marks.at(-1).style.left = Math.max(24, Math.min(x, width - 48)) + 'px'; free = x + 72; }
    }
    if (nowAt !== null) marks.push(h('span', { class: 'now', style: { left: nowAt + 'px' } }, 'now'));
    axis.replaceChildren(...marks);
    if (paint) grid.paint(true);
  }

  function render(row, cells, el) {
    const s = frame.scale;
    const [what, lane, length, label] = cells;
    if (what.shown !== row.key + row.name) {
      what.shown = row.key + row.name;
      put(what, h('span', { class: `what ${row.kind}` }, h('span', { class: 'sign', 'aria-hidden': 'true' }, kindSigns[row.kind]), h('span', { class: 'name', title: row.name }, row.name || kindWords[row.kind]), row.id ? h('span', { class: 'num' }, `#${row.id}`) : null));
    }
    lane.className = 'cell lane';
    const parts = [];
    const width = s.width;
    for (const [a, b] of s.folds) {
      const x = s.x(a);
      const w = s.x(b) - x;
      if (x + w > 0 && x < width) parts.push(bar('fold', x, w));
      if (parts.length > 60) break;
    }
    for (const seg of view.model.segments(row, frame.now)) {
      const x = s.x(seg.from);
      const w = Math.max(s.x(seg.to) - x, seg.type === 'backoff' ? 0 : 3);
      if (x + w < 0 || x > width || parts.length > 400) continue;
      parts.push(bar(`seg ${seg.type}`, Math.max(x, -4), Math.min(x + w, width + 4) - Math.max(x, -4)));
    }
    const c = row.cancel;
    if (c) for (const step of cancelSteps(c)) {
      if (!step.at) continue;
      const x = s.x(step.at);
      if (x < -5 || x > width + 5) continue;
      parts.push({ ...bar('mark', x), text: step.sign });
    }
    if (!view.model.instance.end) parts.push(bar('nowline', Math.min(s.x(frame.now), width - 2)));
    const took = row.kind === 'detached' ? '' : span((row.end || frame.now) - row.start);
    length.className = 'cell took';
    put(length, took);
    const [text, tone] = said(row);
    label.className = `cell said ${tone}`;
    const child = row.kind === 'child' || row.kind === 'detached' ? row.child : '';
    if (!child) { put(label, text); label.child = ''; } else {
      if (label.child !== child) { label.child = child; label.told = document.createTextNode(''); put(label, [label.told, ' → ', childLink(child)]); }
      if (label.told.data !== text) label.told.data = text;
    }
    if (label.title !== text) label.title = text;
    draw(lane, parts);
    el.setAttribute('aria-label', `${kindWords[row.kind]} ${row.name} ${row.id ? `number ${row.id}` : ''}, ${stateWords[row.state]}${took ? `, ${took}` : ''}${text ? `, ${text}` : ''}`);
  }

  const bar = (cls, left, width) => ({ cls, left, width });

  // draw shows parts in a lane. It reuses the elements, because they dominate the style and layout time of a frame.
  const measures = ['left', 'width'];
  function draw(lane, parts) {
    while (lane.childElementCount > parts.length) lane.lastChild.remove();
    parts.forEach((part, i) => {
      const el = lane.children[i] || lane.appendChild(document.createElement('span'));
      if (el.className !== part.cls) el.className = part.cls;
      el.shown ||= {};
      for (const m of measures) if (el.shown[m] !== part[m]) { el.shown[m] = part[m]; el.style[m] = part[m] === undefined ? '' : part[m] + 'px'; }
      if (el.textContent !== (part.text || '')) el.textContent = part.text || '';
    });
  }

  // said returns the label of a row and its tone.
  function said(row) {
    if (row.cancel) return [view.cancelText(row.cancel, row.kind === 'activity'), 'off'];
    const p = view.waiting.get(row.id);
    if (row.state === 'failed') return [failureLines(row.endEvent?.error)[0]?.slice(0, 90).concat(row.attempt > 1 ? `, ${row.attempt} attempts` : '') || (row.endEvent?.kind === 'OrchestrationTerminated' ? `terminated${row.endEvent.requestedBy ? ` by ${requester(row.endEvent.requestedBy)}` : ''}${row.endEvent.message ? `: ${row.endEvent.message}` : ''}` : row.endEvent?.message || 'failed'), 'bad'];
    if (p && row.state === 'open') {
      if (p.noWorker) return [`no worker runs it (${noReport(p, frame.now)})`, 'bad'];
      if (p.unknownBuild) return [`not registered in build ${p.unknownBuild}`, 'bad'];
      if (p.handedOverAt) return ['waiting for asynchronous completion', ''];
      if (p.lastError) return [`attempt ${p.attempt}${p.nextTryAt ? ` ${isLate(p, frame.now) ? lateText(p, frame.now) : atTime(p.nextTryAt, frame.now)}` : ''}, after ${failureLines(p.lastError)[0].slice(0, 70)}`, 'warn'];
      if (p.cause) return [p.cause, ['bad', 'warn'][p.rank] || ''];
      if (p.lastHeartbeatAt) return [`heartbeat ${span(frame.now - Date.parse(p.lastHeartbeatAt))} ago`, ''];
    }
    if (row.kind === 'instance' && view.status?.paused) return [`paused${view.status.paused.by ? ` by ${shortName(view.status.paused.by)}` : ''}${view.status.paused.message ? `: ${view.status.paused.message}` : ''}`, 'warn'];
    if (row.kind === 'instance' && view.status?.status === 'Blocked') return [`blocked: ${view.status.failure?.type || ''}`, 'warn'];
    if (row.kind === 'instance' && row.state === 'cancelled') return [`cancelled${view.status?.failure?.message ? `: “${view.status.failure.message}”` : ''}`, 'off']; // no request in the history
    if (row.kind === 'timer' && row.state === 'open') return [row.due > frame.now ? `due ${moment(row.due)}, ${ago(new Date(row.due).toISOString(), frame.now)}` : lateText({ nextTryAt: new Date(row.due).toISOString() }, frame.now), ''];
    if (row.parked) return ['outcome received and parked', 'warn'];
    if (row.state === 'gone') return ['never received', ''];
    const how = row.kind === 'detached' ? 'scheduled' : row.kind === 'instance' && row.state === 'open' ? 'running' : row.state === 'done' ? { timer: 'fired', wait: 'received' }[row.kind] || 'done' : row.kind === 'activity' && p && !row.begun ? `sent, start not reported${p.deadline === null ? ', no deadline' : ''}` : p?.deadline === null ? 'pending, no deadline' : stateWords[row.state];
    return [row.kind === 'activity' && row.attempt > 1 ? `${how}, ${row.attempt} attempts` : row.kind === 'child' && row.event.attempt > 1 ? `${how}, attempt ${row.event.attempt}` : how, ''];
  }

  function update() {
    frame.now = Date.now();
    frame.scale = new Scale(view.model, frame.now, frame.folding);
    totals.textContent = `${span(frame.scale.busy)} active, ${span(frame.scale.idle)} idle${frame.scale.folds.length ? `, ${count(frame.scale.folds.length)} idle period${frame.scale.folds.length === 1 ? '' : 's'} collapsed` : ''}`;
    fit();
    grid.set(view.model.rows);
  }

  const key = (cls, text) => h('span', {}, h('i', { class: cls }), text);
  const bars = h('div', { class: 'bar-row' }, h('div', { class: 'zoom', role: 'group', 'aria-label': 'Zoom' },
    h('button', { type: 'button', 'aria-label': 'Zoom out', onclick: () => set(frame.zoom / 1.5) }, '−'), h('button', { type: 'button', 'aria-label': 'Zoom in', onclick: () => set(frame.zoom * 1.5) }, '+'),
    h('button', { type: 'button', onclick: () => set(1) }, 'Fit'), pan), h('label', { class: 'toggle' }, fold, 'Collapse idle time'), totals, h('span', { class: 'grow' }),
    h('div', { class: 'legend', 'aria-hidden': 'true' }, key('seg work', 'running'), key('seg wait', 'waiting, or start not reported'), key('seg tried', 'several attempts'), key('seg backoff', 'retry delay'), key('seg child', 'child'), key('seg failed', 'failed'), key('seg unseen', 'cancelled ◆, not observed'), key('seg seen', 'observed ◇, until ended ■')));
  return { grid, bars, update };
}
