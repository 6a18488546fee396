// Navigation: the URL selects the view, and the Back button works.

let shown = null;
let shownAt = '';
let changes = null;
let lastRead = 0;

const places = { hub: () => hubView(), schedules: schedulesView, entities: entitiesView, dead: deadView, instance: instanceView };

function go(search, replace) {
  history[replace ? 'replaceState' : 'pushState'](null, '', location.pathname + (search ? '?' + search : ''));
  show();
}

const searchField = () => document.querySelector('.search input');

// show builds the view of the URL. The search field keeps its focus, so that the user can type while the list loads, and its text if the view is the
// same.
function show() {
  changes?.stop();
  shown?.leave();
  const address = new URLSearchParams(location.search);
  const place = Object.keys(places).find((p) => address.has(p));
  const typed = searchField();
  const draft = typed && { text: typed.value, same: shownAt === location.search, focused: typed === document.activeElement };
  const view = (places[place] || listView)(address);
  shown = view;
  shownAt = location.search;
  const field = searchField();
  if (field && draft?.same) field.value = draft.text;
  if (field && draft?.focused) { field.focus(); field.setSelectionRange(field.value.length, field.value.length); }
  document.title = `${view.title} · perdure`;
  for (const a of document.querySelectorAll('#places a')) if (a.dataset.place === view.place) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
  $('main').scrollTop = 0;
  lastRead = Date.now();
  Promise.resolve(view.first?.()).then(told);
  changes = subscribe({ every: view.every, live: view.live, stream: view.stream, read: () => view.refresh(), told: (ok) => { if (shown === view) told(ok); } });
}

function told(ok) {
  if (ok) lastRead = Date.now();
  const age = Date.now() - lastRead;
  $('fresh').textContent = age > 15_000 ? `updated ${span(age)} ago` : '';
}

function changed() { setTimeout(() => shown?.refresh(true), 300); }

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
$('live').title = 'Updating: this page reads changes. It says nothing about the hub.';
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
startHealth();
