// Counts by status. The API has no counts, so they are those of bounded requests: exact up to 1,000, and otherwise at least that number.

const mostCounted = 1000;
const byConcern = ['Failed', 'Blocked', 'Paused', 'Cancelling', 'Running', 'Pending', 'Completed', 'Cancelled', 'Terminated', 'Deleting'];
const countText = (c) => (c ? `${count(c.n)}${c.more ? '+' : ''}` : '…');

// countStatuses calls told with the count of each status and the instances that it counted. One request counts all instances of a small hub. Otherwise each status takes one request.
async function countStatuses(pairs, keep, signal, told) {
  const read = async (more) => {
    const page = await get(`instances?${query([...pairs, ...more, ['limit', mostCounted]])}`, signal);
    return { items: keep ? page.items.filter(keep) : page.items, more: Boolean(page.nextCursor) };
  };
  const all = await read([]);
  const found = new Map(byConcern.map((s) => [s, 0]));
  for (const s of all.items) found.set(s.status, (found.get(s.status) || 0) + 1);
  for (const [status, n] of found) told(status, { n, more: all.more }, all.items.filter((s) => s.status === status));
  if (!all.more) return;
  const queue = [...byConcern];
  const worker = async () => {
    for (let status = queue.shift(); status; status = queue.shift()) {
      const { items, more } = await read([['status', status]]);
      told(status, { n: more ? Math.max(items.length, found.get(status)) : items.length, more }, items);
    }
  };
  await Promise.all([worker(), worker(), worker()]);
}

// withStatus returns a query with a status, or without one if status is empty.
const withStatus = (status, rest) => [status ? `status:${status.toLowerCase()}` : '', rest].filter(Boolean).join(' ');

// statusCounts is the bar of counts. Each count is a link to the list with its status. rest is the query without a status, and chosen is the status
// of the list. An idle bar shows no counts.
function statusCounts({ rest, chosen, pairs, keep, signal, told, idle }) {
  const links = new Map();
  const link = (label, status, sign) => {
    const number = h('span', { class: 'number' }, status && !idle ? '…' : '');
    const el = h('a', { class: `count ${status}`, href: '?' + query([['q', withStatus(status, rest)]]), 'data-status': status, 'aria-current': chosen === status ? 'true' : null }, h('span', { class: 'sign', 'aria-hidden': 'true' }, sign), h('span', {}, label), number);
    el.hidden = status === 'Deleting' && chosen !== status;
    links.set(status, { el, number });
    return el;
  };
  const root = h('nav', { class: 'counts', 'aria-label': 'Instances by status' }, link('All', '', '≡'), byConcern.map((s) => link(s, s, signs[s])));
  let readAt = 0;
  let reading = false;
  // refresh returns false if the counts could not be read.
  async function refresh(now = false) {
    if (reading || (!now && Date.now() - readAt < countsFor)) return true;
    reading = true;
    readAt = Date.now();
    try {
      await countStatuses(pairs, keep, signal, (status, c, items) => {
        const at = links.get(status);
        if (!at) return;
        at.number.textContent = countText(c);
        at.el.classList.toggle('none', c.n === 0 && !c.more);
        at.el.hidden = status === 'Deleting' && c.n === 0 && chosen !== status;
        at.el.title = c.more ? `At least ${count(c.n)}. A count is the result of one bounded search.` : `${count(c.n)} instance${c.n === 1 ? '' : 's'}`;
        told?.(status, c, items);
      });
    } catch (err) {
      if (err.name === 'AbortError') return true;
      for (const { number } of links.values()) if (number.textContent === '…') number.textContent = '?';
      return false;
    } finally { reading = false; }
    return true;
  }
  return { root, refresh };
}

// A request costs less than $0.0001, so the counts stay for some minutes.
const countsFor = 300_000;
