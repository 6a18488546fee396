// The mark of the hub's verdict in the header of every view.

const hubHealth = new Health();

// readHealth reads one part of the hub's health, the queues or the blocked instances. It returns whether it succeeded.
const mostMarked = 100;
async function readHealth(what) {
  try {
    if (what === 'queues') hubHealth.takeQueues((await get('queues')).queues, Date.now());
    else {
      const page = await get(`instances?${query([['status', 'Blocked'], ['limit', mostMarked]])}`);
      hubHealth.takeBlocked({ n: page.items.length, more: Boolean(page.nextCursor) }, Date.now());
    }
    return true;
  } catch (err) {
    hubHealth.took(what, Date.now(), err.message);
    return false;
  }
}

// watchHealth makes one request every 15 s while the document is visible, for the part that was read first. A view that reads a part itself saves
// the request. A queue without a worker is read again sooner, to be certain.
const healthEvery = 15_000;
async function watchHealth(failures = 0) {
  let ok = true;
  if (isLive() && !document.hidden) {
    const { queues, blocked } = hubHealth.readAt;
    ok = await readHealth(queues <= blocked || hubHealth.unconfirmed() ? 'queues' : 'blocked');
  }
  nextHealth(ok ? 0 : failures + 1);
}

const nextHealth = (failures) => setTimeout(watchHealth, hubHealth.unconfirmed() ? confirmAfter : Math.min(longestPause, healthEvery * 2 ** failures), failures);

const markSigns = { Healthy: '✓', 'Not healthy': '▲', Unknown: '?', Checking: '…' };
function drawMark() {
  const { verdict, parts, unread } = healthOf(hubHealth, Date.now());
  const mark = $('health');
  const unsure = hubHealth.unconfirmed() ? ', checking …' : '';
  const about = [...parts.map((p) => p.text), unread].filter(Boolean).join(' · ') || (verdict === 'Healthy' ? 'No dead letters, no blocked instances, and no work without a worker' : '');
  if (mark.about === verdict + about + unsure) return;
  mark.about = verdict + about + unsure;
  mark.className = `health ${verdict === 'Healthy' ? 'ok' : parts.length ? 'bad' : ''}`;
  mark.title = about;
  mark.querySelector('.sign').textContent = markSigns[verdict];
  mark.querySelector('.word').textContent = verdict;
  mark.querySelector('.why').textContent = parts.length ? `: ${parts[0].short || parts[0].text}${parts.length > 1 ? ` + ${parts.length - 1}` : ''}${unsure}` : '';
}

function startHealth() {
  hubHealth.changed.add(drawMark);
  Promise.all(['queues', 'blocked'].map(readHealth)).then(() => nextHealth(0));
}
