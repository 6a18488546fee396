// Navigation: the URL selects the view, and the Back button works.

let shown = null;
let timer = 0;
let lastRead = 0;

function go(search, replace) {
  history[replace ? 'replaceState' : 'pushState'](null, '', location.pathname + (search ? '?' + search : ''));
  show();
}

function show() {
  shown?.leave();
  const address = new URLSearchParams(location.search);
  const view = address.has('instance') ? instanceView(address) : address.has('dead') ? deadView(address) : listView(address);
  shown = view;
  failures = 0;
  document.title = `${view.title} · perdure`;
  $('crumbs').replaceChildren(...(view.crumbs ? [h('a', { href: '?' }, 'Instances'), ' / ', h('span', { class: 'mono' }, view.crumbs)] : ['Instances']));
  $('main').scrollTop = 0;
  lastRead = Date.now();
  Promise.resolve(view.first?.()).then(told);
  tick();
}

function told(ok) {
  if (ok) lastRead = Date.now();
  const age = Date.now() - lastRead;
  $('fresh').textContent = age > 15_000 ? `updated ${span(age)} ago` : '';
}

const isLive = () => $('live').getAttribute('aria-pressed') === 'true';

// tick refreshes the view while the document is visible. Consecutive failures double the interval, up to longestPause.
const longestPause = 60_000;
let failures = 0;
function tick() {
  clearTimeout(timer);
  const view = shown;
  timer = setTimeout(async () => {
    if (isLive() && !document.hidden && view.live() && !document.querySelector('dialog')) {
      const ok = await view.refresh();
      if (shown !== view) return;
      failures = ok === false ? failures + 1 : 0;
      told(ok);
    } else told(false);
    if (shown === view) tick();
  }, Math.min(longestPause, view.every * 2 ** failures));
}

function changed() { setTimeout(() => shown?.refresh(), 300); }

// Navigation closes dialogs, because they refer to the previous view. The result of a request that is still running is shown when it arrives.
addEventListener('popstate', () => {
  for (const question of document.querySelectorAll('dialog')) question.close();
  show();
});
// Ignore a repeated Enter: a held key would confirm the dialog that its first press opened.
document.addEventListener('keydown', (e) => { if (e.repeat && e.key === 'Enter' && !e.target.closest('textarea')) e.preventDefault(); }, true);
document.addEventListener('visibilitychange', () => { if (!document.hidden && isLive()) shown?.refresh(); });
document.addEventListener('click', (e) => {
  const a = e.target.closest('a');
  if (!a || e.defaultPrevented || e.metaKey || e.ctrlKey || e.shiftKey || !a.getAttribute('href')?.startsWith('?')) return;
  e.preventDefault();
  go(a.getAttribute('href').slice(1));
});
$('live').addEventListener('click', () => {
  $('live').setAttribute('aria-pressed', !isLive());
  if (isLive()) shown.refresh();
});

const themes = ['auto', 'light', 'dark'];
function theme(name) {
  document.documentElement.style.colorScheme = name === 'auto' ? 'light dark' : name;
  $('theme').textContent = `Theme: ${name}`;
  try { localStorage.setItem('perdure-theme', name); } catch { /* the browser may deny access */ }
}
$('theme').addEventListener('click', () => theme(themes[(themes.indexOf($('theme').textContent.slice(7)) + 1) % 3]));
let kept = 'auto';
try { kept = localStorage.getItem('perdure-theme') || 'auto'; } catch { /* as above */ }
theme(themes.includes(kept) ? kept : 'auto');
narrow.addEventListener('change', show);
show();
