// Where the page is: the address says it, and going back works.

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
  $('fresh').textContent = age > 15_000 ? `read ${span(age)} ago` : '';
}

const isLive = () => $('live').getAttribute('aria-pressed') === 'true';

// tick reads again while the page is looked at: after failures in a row, ever more seldom.
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

// A question is about what was shown: it ends when that goes. An order that is under way is told of once it is answered.
addEventListener('popstate', () => {
  for (const question of document.querySelectorAll('dialog')) question.close();
  show();
});
// A key that is held repeats: it would answer the question that its first stroke has asked.
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
  try { localStorage.setItem('perdure-theme', name); } catch { /* a browser may forbid it */ }
}
$('theme').addEventListener('click', () => theme(themes[(themes.indexOf($('theme').textContent.slice(7)) + 1) % 3]));
let kept = 'auto';
try { kept = localStorage.getItem('perdure-theme') || 'auto'; } catch { /* as above */ }
theme(themes.includes(kept) ? kept : 'auto');
narrow.addEventListener('change', show);
show();
