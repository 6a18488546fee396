// Pages loads a list of instances, newest first: further pages on request, and the newest ones at each refresh.

class Pages {
  // pairs are the parameters of the request. keep selects items by what the API cannot select by. status drops items that leave it. show is called
  // with new items, tell after a request, and fail with an error. visible returns the items whose status matters now, and first the number of rows that came in front.
  constructor({ pairs, keep, status, show, tell, fail, well, visible, front }) {
    Object.assign(this, { pairs, keep, status, show, tell, fail, well, visible, front });
    this.items = [];
    this.known = new Map();
    this.seen = new Set();
    this.newest = '';
    this.cursor = '';
    this.reading = false;
    this.complete = false;
    this.paused = false;
    this.stop = new AbortController();
  }

  // take returns the new items of a page that the list shows.
  take(items) {
    const fresh = [];
    for (const s of items) {
      if (s.createdAt > this.newest) this.newest = s.createdAt;
      if (this.seen.has(s.instanceId)) { const old = this.known.get(s.instanceId); if (old) Object.assign(old, s); continue; }
      this.seen.add(s.instanceId);
      if (this.keep && !this.keep(s)) continue;
      s.key = s.instanceId;
      this.known.set(s.instanceId, s);
      fresh.push(s);
    }
    return fresh;
  }

  // more loads further pages. A page can be empty without being the last one, because the API limits the items that it reads per page. After many
  // empty pages, or while the document is hidden, more pauses until the user continues the search.
  async more() {
    if (this.reading || this.complete) return;
    this.reading = true;
    this.paused = false;
    let empty = 0;
    const goal = this.items.length + (this.items.length ? 1000 : firstPage);
    try {
      do {
        const limit = this.items.length || this.keep ? 1000 : firstPage;
        const page = await get(`instances?${query([...this.pairs, ['limit', limit], ['cursor', this.cursor]])}`, this.stop.signal);
        const fresh = this.take(page.items);
        this.items.push(...fresh);
        this.cursor = page.nextCursor || '';
        this.complete = !this.cursor;
        empty = fresh.length ? 0 : empty + 1;
        this.paused = !this.complete && (empty >= mostEmpty || document.hidden);
        this.show();
      } while (!this.paused && !this.complete && this.items.length < goal);
      this.well();
    } catch (err) { this.failed(err); }
    this.reading = false;
    this.tell();
  }

  failed(err) { if (err.name !== 'AbortError') this.fail(err); }

  // between loads the instances that started between the newest known one and the newest page. It returns null if they are too many, for example
  // after the document was hidden for a night.
  async between(page) {
    if (!this.newest || !page.nextCursor || page.items.some((s) => this.seen.has(s.instanceId))) return [];
    const since = new Date(Date.parse(this.newest) - 5000).toISOString();
    const asked = [...this.pairs.filter(([name]) => name !== 'startedAfter'), ['startedAfter', since], ['limit', 1000]];
    const found = new Set(page.items.map((s) => s.instanceId));
    const missing = [];
    let cursor = '';
    let requests = 0;
    do {
      if (++requests > mostBetween) return null;
      const next = await get(`instances?${query([...asked, ['cursor', cursor]])}`, this.stop.signal);
      for (const s of next.items) if (!found.has(s.instanceId)) { found.add(s.instanceId); missing.push(s); }
      cursor = next.nextCursor || '';
    } while (cursor);
    return missing;
  }

  // refresh loads the newest page and the visible instances that have not ended. It returns whether it succeeded, and nothing if it did not run.
  async refresh() {
    if (this.reading || this.refreshing) return undefined;
    this.refreshing = true;
    try {
      const page = await get(`instances?${query([...this.pairs, ['limit', 100]])}`, this.stop.signal);
      const missing = await this.between(page);
      if (!missing && this.reading) return true; // more is loading the end of the old list, so the next refresh reloads it
      if (!missing) this.restart(page);
      else await this.merge([...page.items, ...missing]);
      this.well();
      this.show();
      return true;
    } catch (err) { this.failed(err); return false; } finally { this.refreshing = false; }
  }

  // restart begins the list anew. It loads more pages while it scrolls.
  restart(page) {
    Object.assign(this, { items: [], known: new Map(), seen: new Set(), newest: '', cursor: page.nextCursor || '', complete: !page.nextCursor });
    this.items = this.take(page.items);
    this.front(-1);
  }

  async merge(items) {
    const fresh = this.take(items);
    const first = new Set(items.map((s) => s.instanceId));
    const looked = this.visible().filter((s) => s && !over(s.status) && !first.has(s.instanceId)).slice(0, 20);
    await Promise.all(looked.map(async (s) => {
      try { Object.assign(s, await get(instancePath(s.instanceId, '?pending=false'), this.stop.signal)); } catch (err) { if (err.status === 404) s.gone = true; }
    }));
    const stays = (s) => !s.gone && (!this.status || s.status === this.status);
    this.items = [...fresh, ...this.items].filter(stays);
    for (const [id, s] of this.known) if (!stays(s)) { this.known.delete(id); this.seen.delete(id); }
    if (fresh.length) this.front(fresh.length);
  }
}

const firstPage = 200;
const mostEmpty = 10; // consecutive pages
const mostBetween = 10; // requests of a refresh
