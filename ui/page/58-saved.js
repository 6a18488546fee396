// Saved searches, which this browser stores.

const savedKey = 'perdure-searches';
const mostSaved = 20;

function savedSearches() {
  try {
    const all = JSON.parse(localStorage.getItem(savedKey));
    return Array.isArray(all) ? all.filter((q) => typeof q === 'string').slice(0, mostSaved) : [];
  } catch { return []; } // the browser may deny access
}

function saveSearches(all) {
  try { localStorage.setItem(savedKey, JSON.stringify(all.slice(0, mostSaved))); } catch { toast('The browser does not store searches'); }
}

// savedBar lists the saved searches, with a button that saves or forgets the search of the list. A search with an error cannot be saved.
function savedBar(text, wrong) {
  const root = h('nav', { class: 'saved counts', 'aria-label': 'Saved searches' });
  function draw() {
    const all = savedSearches();
    const saved = all.includes(text);
    const toggle = () => { saveSearches(saved ? all.filter((q) => q !== text) : [text, ...all]); draw(); root.querySelector('button').focus(); };
    root.replaceChildren(...(text && !wrong ? [h('button', { type: 'button', 'aria-pressed': String(saved), onclick: toggle }, saved ? '★ Saved' : '☆ Save search')] : []),
      ...all.map((q) => h('a', { class: 'count', href: '?' + query([['q', q]]), 'aria-current': q === text ? 'true' : null }, q)));
    root.hidden = !root.childElementCount;
  }
  draw();
  return root;
}
