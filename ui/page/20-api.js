// The HTTP API, which is beside the page.

class Problem extends Error {
  constructor(status, body) {
    super(body.detail || (typeof body.message === 'string' && status ? `the gateway answered ${status}: ${body.message}` : `the API answered ${status}`));
    this.status = status;
    this.code = body.code || '';
  }
}

// parse reads JSON, and keeps the text of numbers that a browser's cannot hold, such as 9007199254740993 and 1.0, where the browser can: payloads
// are shown and downloaded as they are.
const unusual = /\d{16}|\d[eE][+-]?\d|\.\d*0[,\]}\s]|-0[,\]}\s]/;
function parse(text) {
  if (!JSON.rawJSON || !unusual.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, v, { source }) => (typeof v === 'number' && String(v) !== source ? JSON.rawJSON(source) : v));
}

const patience = 35_000; // longer than a gateway waits

// send makes a call whose body is JSON already, as it is. What is not answered in time is an error: nothing waits for ever.
async function send(method, path, text, { signal, headers } = {}) {
  const late = AbortSignal.timeout(patience);
  const init = { method, signal: signal ? AbortSignal.any([signal, late]) : late, headers: { ...headers } };
  if (text !== undefined) {
    init.body = text;
    init.headers['Content-Type'] = 'application/json';
  }

  let answer;
  let said;
  try {
    answer = await fetch(new URL('v1/' + path, document.baseURI), init);
    said = await answer.text();
  } catch (err) {
    if (late.aborted && !signal?.aborted) throw new Problem(0, { detail: `the API has not answered within ${patience / 1000} s${method === 'GET' ? '' : '; it may have done it all the same'}` });
    throw err;
  }
  if (answer.status === 204) return null;
  let doc;
  try { doc = parse(said); } catch { /* a gateway's own answer, or a page to sign in */ }
  if (!answer.ok) throw new Problem(answer.status, doc || {});
  if (doc === undefined) throw new Problem(answer.status, { detail: 'the answer is not of the API: the session may have ended, so load the page again' });
  return doc;
}

const call = (method, path, body, signal) => send(method, path, body === undefined ? undefined : JSON.stringify(body), { signal });

const get = (path, signal) => call('GET', path, undefined, signal);

// idPath is how an id travels in a path: what is not plain goes as base64url.
function idPath(id) {
  if (/^[A-Za-z0-9._-]+$/.test(id) && !/^\.+$/.test(id)) return id;
  const bytes = utf8.encode(id);
  let raw = '';
  for (const b of bytes) raw += String.fromCharCode(b);
  return '~' + btoa(raw).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

const instancePath = (id, rest) => `instances/${idPath(id)}${rest || ''}`;
const query = (pairs) => new URLSearchParams(pairs.filter(([, v]) => v !== '' && v !== undefined && v !== null)).toString();
