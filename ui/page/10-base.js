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

// jsonView shows an indented, highlighted document. It truncates documents that would slow down a browser.
const mostShown = 200_000;
function jsonView(value, label) {
  const text = JSON.stringify(value, null, 2);
  const pre = h('pre', { class: 'json', tabindex: '0', role: 'group', 'aria-label': label || 'JSON' });
  const shown = text.length > mostShown ? text.slice(0, mostShown) : text;
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  let at = 0;
  if (shown.length > 40_000) pre.append(shown); // highlighting needs one element per token
  else {
    for (const m of shown.matchAll(token)) {
      pre.append(shown.slice(at, m.index));
      const kind = m[1] ? (m[2] ? 'j-k' : 'j-s') : /^[tfn]/.test(m[0]) ? 'j-w' : 'j-n';
      pre.append(h('span', { class: kind }, m[1] || m[0]));
      if (m[2]) pre.append(m[2]);
      at = m.index + m[0].length;
    }
    pre.append(shown.slice(at));
  }
  if (shown !== text) pre.append(`\n… ${size(text.length - shown.length)} not shown. Copy the document to see all of it.`);
  return pre;
}

// sealedOf describes a payload that is encoded or in the payload store. It returns null for any other value.
function sealedOf(v) {
  if (!v || typeof v.ref !== 'string' || typeof v.sha256 !== 'string') return null;
  const [what, codec] = v.ref.startsWith('data:') ? ['encoded', v.ref.slice(5).split(';')[0]] : v.ref.startsWith('object:') ? ['in the payload store', v.ref.split(';')[1]] : [];
  return what ? `${size(v.bytes)}, ${what}${codec ? ` (codec ${codec})` : ''}, not shown` : null;
}

// payload shows a document with its title, its size and a copy button.
function payload(title, value) {
  const sealed = sealedOf(value);
  if (sealed) return h('div', { class: 'payload' }, h('div', { class: 'bar-row' }, h('h3', {}, title), h('span', { class: 'muted' }, sealed)));
  return h('div', { class: 'payload' },
    h('div', { class: 'bar-row' }, h('h3', {}, title), h('span', { class: 'muted' }, size(bytesOf(value))), h('span', { class: 'grow' }),
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
