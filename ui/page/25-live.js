// Changes: a view subscribes to its source and reads again after a change.

// subscribe calls read when the source of a view may have changed, until stop. It polls every few milliseconds (every) while the document is
// visible, the user wants updates and live returns true. Consecutive failures double the interval, up to longestPause. A source that sends its
// changes, such as a stream of events, replaces the timer and calls read for each change.
const longestPause = 60_000;
function subscribe({ every, live, read, told }) {
  let timer = 0;
  let failures = 0;
  let stopped = false;
  const next = () => { timer = setTimeout(poll, Math.min(longestPause, every * 2 ** failures)); };
  async function poll() {
    if (isLive() && !document.hidden && live() && !document.querySelector('dialog')) {
      const ok = await read();
      if (stopped) return;
      failures = ok === false ? failures + 1 : 0;
      told(ok);
    } else told(false);
    next();
  }
  next();
  return { stop: () => { stopped = true; clearTimeout(timer); } };
}

const isLive = () => $('live').getAttribute('aria-pressed') === 'true';
