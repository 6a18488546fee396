// The HTTP API, at v1 relative to the document.

class Problem extends Error {
  constructor(status, body) {
    super(body.detail || (typeof body.message === 'string' && status ? `The gateway returned ${status}: ${body.message}` : `The API returned ${status}`));
    this.status = status;
    this.code = body.code || '';
  }
}

// parse reads JSON and keeps the source text of numbers that JavaScript cannot represent, such as 9007199254740993 and 1.0, if the browser
// supports JSON.rawJSON. Payloads are shown and downloaded unchanged.
const unusual = /\d{16}|\d[eE][+-]?\d|\.\d*0[,\]}\s]|-0[,\]}\s]/;
function parse(text) {
  if (!JSON.rawJSON || !unusual.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, v, { source }) => (typeof v === 'number' && String(v) !== source ? JSON.rawJSON(source) : v));
}

const patience = 35_000; // milliseconds, longer than a gateway's timeout

// send makes a request with a JSON text as body. It fails if the response does not arrive in time.
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
    if (late.aborted && !signal?.aborted) throw new Problem(0, { detail: `No response from the API within ${patience / 1000} s${method === 'GET' ? '' : '. The request may have taken effect.'}` });
    throw err;
  }
  if (answer.status === 204) return null;
  let doc;
  try { doc = parse(said); } catch { /* an error of a gateway, or a sign-in form */ }
  if (!answer.ok) throw new Problem(answer.status, doc || {});
  if (doc === undefined) throw new Problem(answer.status, { detail: 'The response is not from the API. Your session may have expired. Reload to sign in again.' });
  return doc;
}

const call = (method, path, body, signal) => send(method, path, body === undefined ? undefined : JSON.stringify(body), { signal });

const get = (path, signal) => call('GET', path, undefined, signal);

// idPath encodes an ID for a URL path: base64url with the prefix ~, unless all characters are safe.
function idPath(id) {
  if (/^[A-Za-z0-9._-]+$/.test(id) && !/^\.+$/.test(id)) return id;
  const bytes = utf8.encode(id);
  let raw = '';
  for (const b of bytes) raw += String.fromCharCode(b);
  return '~' + btoa(raw).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

const instancePath = (id, rest) => `instances/${idPath(id)}${rest || ''}`;
const query = (pairs) => new URLSearchParams(pairs.filter(([, v]) => v !== '' && v !== undefined && v !== null)).toString();
