// DOM elements, numbers and times.

const $ = (id) => document.getElementById(id);
const narrow = matchMedia('(max-width: 720px)');

// h creates an element. It inserts children as text, so that payloads never become markup.
function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k === 'class') el.className = v;
    else if (k === 'style') Object.assign(el.style, v);
    else if (k.startsWith('on')) el.addEventListener(k.slice(2), v);
    else el.setAttribute(k, v === true ? '' : v);
  }
  el.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

const two = (n) => String(n).padStart(2, '0');

function clock(t, withMillis) {
  const d = new Date(t);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}${withMillis ? '.' + String(d.getMilliseconds()).padStart(3, '0') : ''}`;
}

function moment(t) {
  if (!t) return '—';
  const d = new Date(t);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(t)}`;
}

// when shows a time in the local time zone, with UTC as tooltip.
function when(t) {
  return t ? h('time', { datetime: new Date(t).toISOString(), title: new Date(t).toISOString() }, moment(t)) : '—';
}

const exact = (t) => `${moment(t)} (${new Date(t).toISOString()})`;

// ago formats a time relative to now in one unit, such as 3 h ago or in 4 min.
function ago(t, now = Date.now()) {
  const ms = now - Date.parse(t);
  if (Math.abs(ms) < 5000) return 'now';
  const all = Math.abs(ms);
  const unit = all < 3_600_000 ? 1 : all < 23.5 * 3_600_000 ? 3_600_000 : 86_400_000; // from an hour on, the nearest one
  const text = span(Math.round(all / unit) * unit).replace(/ (min|h|d) .*/, ' $1');
  return ms < 0 ? `in ${text}` : `${text} ago`;
}

// relative shows a time relative to now, with the exact time as tooltip.
const relative = (t) => (t ? h('time', { datetime: new Date(t).toISOString(), title: exact(t) }, ago(t)) : '—');

// dayTime formats a time for a sentence: in 4 min, today 17:00, tomorrow 09:00, or the date.
function dayTime(t, now = Date.now()) {
  const at = new Date(t);
  if (Math.abs(at - now) < 3_600_000) return ago(at.toISOString(), now);
  const midnight = (d) => new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime();
  const days = Math.round((midnight(at) - midnight(new Date(now))) / 86_400_000);
  const hour = `${two(at.getHours())}:${two(at.getMinutes())}`;
  const day = { '-1': 'yesterday', 0: 'today', 1: 'tomorrow' }[days];
  return day ? `${day} ${hour}` : `${moment(t).slice(0, 10)} ${hour}`;
}

// span formats a duration in at most two units.
function span(ms) {
  if (!isFinite(ms)) return '—';
  if (ms < 0) return '−' + span(-ms);
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const all = Math.round(s);
  if (all < 3600) return `${Math.floor(all / 60)} min${all % 60 ? ` ${all % 60} s` : ''}`;
  if (all < 86400) return `${Math.floor(all / 3600)} h${Math.floor(all % 3600 / 60) ? ` ${Math.floor(all % 3600 / 60)} min` : ''}`;
  return `${Math.floor(all / 86400)} d${Math.floor(all % 86400 / 3600) ? ` ${Math.floor(all % 86400 / 3600)} h` : ''}`;
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1048576).toFixed(1)} MiB`;
}

const utf8 = new TextEncoder();
const bytesOf = (v) => (v === undefined ? 0 : utf8.encode(JSON.stringify(v)).length);
const count = (n) => n.toLocaleString('en-US');

const over = (status) => ['Completed', 'Failed', 'Cancelled', 'Terminated', 'Deleting'].includes(status);
const statuses = ['Pending', 'Running', 'Cancelling', 'Blocked', 'Paused', 'Completed', 'Failed', 'Cancelled', 'Terminated', 'Deleting'];
const signs = { Pending: '○', Running: '◐', Cancelling: '◒', Blocked: '▲', Paused: '‖', Completed: '✓', Failed: '✕', Cancelled: '⊘', Terminated: '■', Deleting: '⌫' };

function chip(status) {
  return h('span', { class: `chip ${status}` }, h('span', { class: 'sign', 'aria-hidden': 'true' }, signs[status] || '·'), status);
}

// shortName returns the last part of an IAM ARN, the session name.
const shortName = (who) => (who && who.startsWith('arn:') ? who.slice(who.lastIndexOf('/') + 1) : who || '');

function toast(text) {
  const el = h('div', {}, text);
  $('toasts').append(el);
  setTimeout(() => el.remove(), 6000);
}

// jsonView shows an indented, highlighted document. Long texts and long lists are collapsed until the user expands them. It truncates documents that would
// slow down a browser.
const mostShown = 200_000;
const mostHighlighted = 40_000; // highlighting needs one element per value
const mostText = 300;
const mostItems = 50;
function jsonView(value, label) {
  const pre = h('pre', { class: 'json', tabindex: '0', role: 'group', 'aria-label': label || 'JSON' });
  const text = JSON.stringify(value, null, 2);
  if (text === undefined || text.length > mostHighlighted) {
    const shown = (text || '').slice(0, mostShown);
    pre.append(shown);
    if (shown !== text) pre.append(`\n… ${size((text || '').length - shown.length)} not shown. Copy the document to see all of it.`);
  } else pre.append(...jsonParts(value, ''));
  return pre;
}

// rest is a button that replaces itself with the parts that it hides.
function rest(label, parts) {
  const button = h('button', { type: 'button', class: 'rest', onclick: () => button.replaceWith(...parts()) }, label);
  return button;
}

// jsonParts returns the nodes of a value. indent is the indentation of its closing bracket.
function jsonParts(value, indent) {
  if (typeof value === 'string') {
    const token = (s) => h('span', { class: 'j-s' }, s);
    const text = JSON.stringify(value);
    if (text.length <= mostText) return [token(text)];
    return [token(text.slice(0, mostText)), rest(`… ${count(text.length - mostText)} more characters`, () => [token(text.slice(mostText))])];
  }
  const raw = JSON.isRawJSON?.(value);
  if (value === null || typeof value !== 'object' || raw) return [h('span', { class: typeof value === 'number' || raw ? 'j-n' : 'j-w' }, JSON.stringify(value))];
  const list = Array.isArray(value);
  const entries = list ? value.map((v) => [null, v]) : Object.entries(value);
  if (!entries.length) return [list ? '[]' : '{}'];
  const inner = `${indent}  `;
  const render = (from, to) => entries.slice(from, to).flatMap(([k, v], i) => [
    `${from + i ? ',' : ''}\n${inner}`, ...(k === null ? [] : [h('span', { class: 'j-k' }, JSON.stringify(k)), ': ']), ...jsonParts(v, inner),
  ]);
  const hidden = entries.length - mostItems;
  return [list ? '[' : '{', ...render(0, mostItems), hidden > 0 ? rest(`\n${inner}… ${count(hidden)} more items`, () => render(mostItems)) : '', `\n${indent}${list ? ']' : '}'}`];
}

// sealedOf describes a payload that is encoded or in the payload store. It returns null for any other value.
function sealedOf(v) {
  if (!v || typeof v.ref !== 'string' || typeof v.sha256 !== 'string') return null;
  const [what, codec] = v.ref.startsWith('data:') ? ['encoded', v.ref.slice(5).split(';')[0]] : v.ref.startsWith('object:') ? ['in the payload store', v.ref.split(';')[1]] : [];
  return what ? `${size(v.bytes)}, ${what}${codec ? ` (codec ${codec})` : ''}, not shown` : null;
}

// payload shows a document with its title, its size and a copy button.
function payload(title, value, heading = 'h3') {
  const sealed = sealedOf(value);
  if (sealed) return h('div', { class: 'payload' }, h('div', { class: 'bar-row' }, h(heading, {}, title), h('span', { class: 'muted' }, sealed)));
  return h('div', { class: 'payload' },
    h('div', { class: 'bar-row' }, h(heading, {}, title), h('span', { class: 'muted' }, size(bytesOf(value))), h('span', { class: 'grow' }),
      h('button', { type: 'button', class: 'quiet', onclick: () => copy(JSON.stringify(value, null, 2)), 'aria-label': `Copy ${title}` }, 'Copy')),
    jsonView(value, title));
}

function copy(text) {
  navigator.clipboard.writeText(text).then(() => toast('Copied'), () => toast('Copy failed: the browser denied access to the clipboard'));
}

function download(name, value) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2) + '\n'], { type: 'application/json' }));
  const a = h('a', { href: url, download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// failureLines returns one line for a failure and one for each of its causes.
function failureLines(f) {
  const lines = [];
  for (; f; f = f.cause) lines.push(`${f.type}${f.reason ? ` (${f.reason})` : ''}${f.message ? `: ${f.message}` : ''}`);
  return lines;
}

// menu is a button that opens a list of buttons. Escape, a click elsewhere and a chosen button close it. The button has the focus then, so that a
// dialog returns the focus to it.
function menu(label, buttons, props = {}) {
  const list = h('div', { class: 'menu-list', hidden: true }, buttons);
  const button = h('button', { type: 'button', 'aria-expanded': 'false', ...props }, label, h('span', { 'aria-hidden': 'true' }, ' ▾'));
  const root = h('div', { class: 'menu' }, button, list);
  const set = (open) => { list.hidden = !open; button.setAttribute('aria-expanded', open); };
  button.addEventListener('click', () => { set(list.hidden); if (!list.hidden) list.querySelector('button:not(:disabled), a')?.focus(); });
  list.addEventListener('click', () => { set(false); button.focus(); }, true);
  root.addEventListener('keydown', (e) => {
    if (list.hidden) return;
    const items = [...list.querySelectorAll('button:not(:disabled), a')];
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (e.key === 'Escape') { set(false); button.focus(); } else if (step) items[(items.indexOf(document.activeElement) + step + items.length) % items.length]?.focus();
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
  root.addEventListener('focusout', (e) => { if (e.relatedTarget && !root.contains(e.relatedTarget)) set(false); });
  return root;
}
document.addEventListener('click', (e) => {
  for (const button of document.querySelectorAll('.menu > button[aria-expanded=true]')) if (!button.parentNode.contains(e.target)) button.click();
});
