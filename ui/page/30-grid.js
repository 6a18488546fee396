// Grid is a virtual list. Only visible rows have elements, which are reused while the list scrolls.
// The grid is a single tab stop. Arrow keys, Page Up, Page Down, Home and End move in it, and Enter opens a row. If the grid has pick, each row has
// a checkbox: Space checks the row, and Shift checks all rows since the last one.

class Grid {
  constructor({ name, label, columns, height, render, open, nearEnd, empty, pick }) {
    Object.assign(this, { render, open, nearEnd, height, rows: [], at: 0, used: new Map(), free: [], chosen: null, pick, picked: new Map(), anchor: 0 });
    this.sizer = h('div', { class: 'sizer', role: 'rowgroup' });
    this.view = h('div', { class: 'view' }, this.sizer);
    this.headCells = columns.map((c) => h('div', { class: 'cell', role: 'columnheader' }, c));
    if (pick) {
      this.all = h('input', { type: 'checkbox', 'aria-label': 'Select all loaded rows', onchange: () => this.pickAll(this.all.checked) });
      this.headCells.unshift(h('div', { class: 'cell pick', role: 'columnheader' }, this.all));
    }
    this.empty = h('div', { class: 'empty', hidden: true }, empty || 'No rows');
    this.head = h('div', { class: 'head', role: 'row', 'aria-rowindex': '1' }, this.headCells);
    this.table = h('div', { role: 'grid', 'aria-label': label, 'aria-colcount': this.headCells.length, 'aria-multiselectable': pick ? 'true' : null, class: 'inner', style: { display: 'contents' } }, h('div', { role: 'rowgroup' }, this.head), this.view);
    this.root = h('div', { class: `grid ${name}` }, this.table, this.empty);
    this.columns = this.headCells.length;
    this.view.addEventListener('scroll', () => this.later(), { passive: true });
    this.view.addEventListener('keydown', (e) => this.key(e));
    this.view.addEventListener('click', (e) => {
      const el = e.target.closest('.row');
      if (el && pick && e.target.closest('.pick')) { if (e.target.tagName !== 'INPUT') e.preventDefault(); this.toggle(el.index, e.shiftKey); return; }
      if (el && !e.target.closest('a, button') && !e.metaKey && !e.ctrlKey) this.choose(el.index);
    });
    this.watcher = new ResizeObserver(() => { this.resized?.(); this.paint(true); });
    this.watcher.observe(this.view);
  }

  set(rows) {
    this.rows = rows;
    this.at = Math.min(this.at, Math.max(0, rows.length - 1));
    this.sizer.style.height = rows.length * this.height() + 'px';
    this.table.setAttribute('aria-rowcount', rows.length + 1);
    this.empty.hidden = rows.length > 0;
    this.view.hidden = rows.length === 0;
    this.paint(true);
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(false); });
  }

  // paint renders the visible rows. Rows that are rendered already are rendered again only if all is true.
  paint(all) {
    const height = this.height();
    const top = this.view.scrollTop;
    const tall = this.view.clientHeight;
    const first = Math.max(0, Math.floor(top / height) - 4);
    const last = Math.min(this.rows.length, Math.ceil((top + tall) / height) + 4);
    const focused = this.sizer.contains(document.activeElement) ? document.activeElement.closest('.row') : null;
    for (const [i, el] of this.used) {
      if ((i < first || i >= last) && el !== focused) { this.used.delete(i); this.free.push(el); }
    }
    for (let i = first; i < last; i++) {
      let el = this.used.get(i);
      if (el && !all) continue;
      if (!el) {
        el = this.free.pop() || this.row();
        this.used.set(i, el);
      }
      this.fill(el, i, height);
    }
    for (const el of this.free) if (el.parentNode) el.style.display = 'none';
    for (const [i, el] of this.used) if (i >= this.rows.length) { this.used.delete(i); el.style.display = 'none'; this.free.push(el); }
    if (this.nearEnd && last > this.rows.length - 60) this.nearEnd();
  }

  row() {
    const el = h('div', { class: 'row', role: 'row' });
    el.cells = [];
    for (let i = 0; i < this.columns; i++) el.cells.push(el.appendChild(h('div', { class: 'cell', role: 'gridcell' })));
    if (this.pick) {
      el.cells[0].classList.add('pick');
      el.box = el.cells[0].appendChild(h('input', { type: 'checkbox', tabindex: '-1' }));
      el.cells = el.cells.slice(1);
    }
    this.sizer.append(el);
    return el;
  }

  fill(el, i, height) {
    el.index = i;
    el.style.display = '';
    el.style.height = height + 'px';
    el.style.transform = `translateY(${i * height}px)`;
    el.tabIndex = i === this.at ? 0 : -1;
    el.setAttribute('aria-rowindex', i + 2);
    const chosen = this.chosen !== null && this.rows[i] && this.rows[i].key === this.chosen;
    const selected = this.pick ? this.picked.has(this.rows[i]?.key) : chosen;
    el.classList.toggle('chosen', selected);
    el.setAttribute('aria-selected', selected);
    if (el.box) {
      el.box.checked = selected;
      const label = `Select ${this.pick.name(this.rows[i])}`;
      if (el.box.ariaLabel !== label) el.box.ariaLabel = label;
    }
    this.render(this.rows[i], el.cells, el);
  }

  choose(i) {
    this.at = i;
    this.chosen = this.rows[i]?.key ?? null;
    this.paint(true);
    this.open?.(this.rows[i], i);
  }

  // toggle checks or unchecks a row, or with range all rows from the last one to it.
  toggle(i, range) {
    const on = range || !this.picked.has(this.rows[i].key);
    const [a, b] = range ? [Math.min(i, this.anchor), Math.max(i, this.anchor)] : [i, i];
    for (const row of this.rows.slice(a, b + 1)) if (on) this.picked.set(row.key, row); else this.picked.delete(row.key);
    this.anchor = i;
    this.at = i;
    this.pickedChanged();
  }

  pickAll(on) {
    this.picked = new Map(on ? this.rows.map((row) => [row.key, row]) : []);
    this.pickedChanged();
  }

  pickedChanged() {
    this.all.checked = this.picked.size > 0 && this.picked.size === this.rows.length;
    this.all.indeterminate = this.picked.size > 0 && !this.all.checked;
    this.paint(true);
    this.pick.changed();
  }

  focus(i) {
    this.at = Math.max(0, Math.min(i, this.rows.length - 1));
    const height = this.height();
    const y = this.at * height;
    if (y < this.view.scrollTop) this.view.scrollTop = y;
    else if (y + height > this.view.scrollTop + this.view.clientHeight) this.view.scrollTop = y + height - this.view.clientHeight;
    this.paint(true);
    this.used.get(this.at)?.focus({ preventScroll: true });
  }

  key(e) {
    if (e.target.closest('a, button, input') && (e.key === 'Enter' || e.key === ' ')) return;
    const page = Math.max(1, Math.floor(this.view.clientHeight / this.height()) - 1);
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.rows.length - 1 }[e.key];
    if (to !== undefined) this.focus(to);
    else if (e.key === ' ' && this.pick) this.toggle(this.at, e.shiftKey);
    else if (e.key === 'Enter' || e.key === ' ') this.choose(this.at);
    else return;
    e.preventDefault();
  }
}

// put replaces the content of a cell, unless the cell shows the same text.
function put(cell, content) {
  if (typeof content === 'string') {
    if (cell.firstChild?.nodeType === 3 && cell.childNodes.length === 1) { if (cell.firstChild.data !== content) cell.firstChild.data = content; } else cell.textContent = content;
  } else cell.replaceChildren(...[content].flat());
}
