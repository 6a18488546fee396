// Changes: a view subscribes to its source and reads again after a change.

const longestPause = 60_000; // milliseconds, between two polls or connections that fail

// subscribe calls read when the source of a view may have changed, until stop. It polls at an interval (every, in milliseconds) while the document is
// visible, the user wants updates and live returns true. Consecutive failures double the interval, up to longestPause. A view with a stream
// (followStream) is read soon after its events, and polled half as often while nothing happens.
function subscribe({ every, live, read, told, stream }) {
  let timer = 0;
  let failures = 0;
  let polling = false;
  let polledAt = Date.now();
  let changedAt = 0;
  const stop = new AbortController();
  const wanted = () => isLive() && !document.hidden && live();
  const next = (pause) => { clearTimeout(timer); timer = setTimeout(poll, pause); };
  async function poll() {
    polling = true;
    polledAt = Date.now();
    if (wanted() && !document.querySelector('dialog')) {
      const ok = await read();
      if (stop.signal.aborted) return;
      failures = ok === false ? failures + 1 : 0;
      told(ok);
    } else told(false);
    polling = false;
    const quiet = stream?.open && Date.now() - changedAt > every;
    next(Math.min(longestPause, every * 2 ** failures * (quiet ? 2 : 1)));
  }
  next(every);
  if (stream) {
    followStream(stream, wanted, () => {
      changedAt = Date.now();
      if (!polling && !failures) next(Math.max(0, polledAt + every - changedAt));
    }, stop.signal);
  }
  return { stop: () => { stop.abort(); clearTimeout(timer); } };
}

const isLive = () => $('live').getAttribute('aria-pressed') === 'true';

// Times of a stream in milliseconds. The API sends a comment every 15 s, or responds to a long poll after 20 s at the latest.
const mostSilence = 40_000;
const leastLife = 5000; // a connection that ends sooner without an event has failed
const firstPause = 1000;
const streamCheck = 500;

// followStream keeps one connection to a stream of events until stop. A source has the path of the stream, position, which returns the ID of the last
// event or '' if there is nothing to follow, and take, which adds an event and returns false if an earlier event is missing. followStream sets
// source.open while the stream delivers events, and calls changed after each change. Behind a gateway that buffers responses, the API answers with a
// long poll instead, and the next connection follows at once. There is no connection while the document is hidden, because a browser allows only
// six of them to a server with HTTP/1.1.
async function followStream(source, wanted, changed, stop) {
  let connection = new AbortController();
  let wake = () => {};
  const rest = (ms) => new Promise((done) => { const timer = setTimeout(done, ms); wake = () => { clearTimeout(timer); done(); }; });
  const look = () => { if (stop.aborted || !wanted()) connection.abort(); wake(); };
  stop.addEventListener('abort', look);
  document.addEventListener('visibilitychange', look, { signal: stop });
  $('live').addEventListener('click', look, { signal: stop });
  for (let failures = 0, buffered = false; !stop.aborted;) {
    const from = wanted() ? source.position() : '';
    if (!from) {
      source.open = false;
      await rest(streamCheck);
      continue;
    }
    connection = new AbortController();
    const began = Date.now();
    const { good, added, silent } = await readStream(source, from, buffered, changed, connection);
    buffered ||= silent; // a proxy may withhold the stream until it ends
    if (!wanted()) continue;
    failures = added || (good && Date.now() - began >= leastLife) ? 0 : failures + 1;
    source.open = failures === 0;
    if (failures) await rest(Math.min(longestPause, firstPause * 2 ** failures) * (0.5 + Math.random() / 2));
  }
}

// readStream reads one connection until it ends or an event is missing. In its result, good means that the response is a stream without a problem,
// added that it had a new event, and silent that the connection was closed because nothing arrived.
async function readStream(source, from, buffered, changed, connection) {
  const { signal } = connection;
  const result = { good: false, added: false, silent: false };
  let timer = 0;
  const heard = () => { clearTimeout(timer); timer = setTimeout(() => { result.silent = true; connection.abort(); }, mostSilence); };
  try {
    heard();
    const answer = await fetch(new URL(`v1/${source.path}${buffered ? '?wait=20s' : ''}`, document.baseURI), { headers: { Accept: 'text/event-stream', 'Last-Event-ID': from }, cache: 'no-store', signal });
    if (answer.status !== 200 || !answer.headers.get('Content-Type')?.startsWith('text/event-stream')) return result;
    result.good = source.open = true;
    for await (const { event, data } of messages(answer.body, heard)) {
      if (signal.aborted) break;
      if (event === 'problem') result.good = false;
      const inOrder = /^[a-z]/.test(event) || source.take(parse(data)); // the kinds of the history start with a capital letter
      result.added ||= source.position() !== from;
      changed();
      if (!inOrder || !source.position()) break;
    }
  } catch { // the connection was lost or closed
  } finally {
    clearTimeout(timer);
    connection.abort();
  }
  return result;
}

// messages yields the server-sent events of a response. It holds one chunk and the beginning of one event.
async function* messages(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ''; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const blocks = (text + value).split('\n\n');
    text = blocks.pop();
    for (const lines of blocks.map((block) => block.split('\n'))) {
      const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (field('event')) yield { event: field('event'), data: field('data') };
    }
  }
}
