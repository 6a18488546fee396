// The query of the list: one line of text, which the URL holds. parseQuery reads it, and completions suggests its next term.

const queryFields = {
  status: 'running, failed, blocked …', name: 'orchestration, with * at the end for a prefix', tag: 'key=value, can be repeated', version: 'version of the orchestration',
  parent: 'instance ID of the parent', started: '<2h in the last 2 hours, >2h earlier, >2026-11-28 since a day',
};
const queryStatus = new Map(statuses.map((s) => [s.toLowerCase(), s]));

// queryValue quotes a value if necessary.
const queryValue = (v) => (/[\s"\\*]/.test(v) || v === '' ? `"${v.replace(/[\\"]/g, '\\$&')}"` : v);
const queryTerm = (name, v) => `${name}:${queryValue(v)}`;

function unquote(raw) {
  return raw.replace(/"((?:[^"\\]|\\.)*)"/g, (_, s) => s.replace(/\\(.)/g, '$1'));
}

// queryTime parses the value of started. It returns the bounds as ISO times, or null.
const queryUnits = { s: 1e3, m: 6e4, min: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
function queryTime(text, now) {
  const m = text.match(/^([<>]?)(?:(\d{1,6}(?:\.\d+)?)(s|m|min|h|d|w)|(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?)$/);
  if (!m) return null;
  const [, sign, amount, unit, day, hour] = m;
  const at = new Date(amount ? now - Number(amount) * queryUnits[unit] : `${day}${hour || 'T00:00'}`); // a day begins in the local time zone
  if (isNaN(at)) return null;
  const iso = at.toISOString();
  if (amount) return { '<': { startedAfter: iso }, '>': { startedBefore: iso } }[sign] || null;
  if (sign) return sign === '>' ? { startedAfter: iso } : { startedBefore: iso };
  if (hour) return null;
  const next = new Date(at);
  next.setDate(next.getDate() + 1);
  return { startedAfter: iso, startedBefore: next.toISOString() };
}

// parseQuery parses a query. pairs are the parameters of a list request, job is the filter of a bulk job, and keep selects instances by the terms
// that the API does not have (null if there are none). id is an instance ID to open. wrong is an error, which disables requests and bulk actions.
// rest is the query without its status.
function parseQuery(text, now = Date.now()) {
  const q = { pairs: [], job: {}, keep: null, id: '', status: '', wrong: '', rest: '' };
  const tests = [];
  const others = [];
  const fail = (why) => { q.wrong ||= why; };
  const once = (name, v) => {
    if (q.pairs.some(([n]) => n === name)) fail(`${name.startsWith('started') ? 'started' : name} is repeated`);
    q.pairs.push([name, v]);
    if (name === 'status') { q.status = v; q.job.statuses = [v]; } else q.job[name] = v;
  };
  const read = (raw) => {
    const colon = raw.startsWith('"') ? -1 : raw.indexOf(':');
    const name = colon < 0 ? '' : raw.slice(0, colon).toLowerCase();
    const value = unquote(raw.slice(colon + 1));
    const prefix = raw.endsWith('*') ? value.slice(0, -1) : null;
    if (colon < 0 || name === 'schedule') { // the ID of a schedule's instance begins with schedule:
      const id = unquote(raw);
      if (raw.endsWith('*')) tests.push((s) => s.instanceId.startsWith(id.slice(0, -1)));
      else if (q.id) fail(`Unexpected “${id}”. Put an instance ID with spaces in quotes.`);
      else q.id = id;
    } else if (!Object.hasOwn(queryFields, name)) fail(`Unknown field “${name}”. Use ${Object.keys(queryFields).join(', ')}, or put an instance ID in quotes: ${JSON.stringify(raw)}.`);
    else if (value === '' && name !== 'version') fail(`${name}: has no value`);
    else if (name === 'status') {
      const s = queryStatus.get(value.toLowerCase());
      if (s) once('status', s); else fail(`Unknown status “${value}”. Use ${[...queryStatus.keys()].join(', ')}.`);
    } else if (name === 'started') {
      const bounds = queryTime(value, now);
      if (bounds) for (const [n, v] of Object.entries(bounds)) once(n, v);
      else fail(`“${value}” is not a time. Write started:<2h, started:>1d or started:>2026-11-28T09:00.`);
    } else if (name === 'tag') {
      const at = value.indexOf('=');
      if (at < 0) return fail(`The tag “${value}” is not key=value`);
      const key = value.slice(0, at);
      if (Object.hasOwn(q.job.tags || {}, key)) fail(`The tag “${key}” is repeated`);
      (q.job.tags ||= Object.create(null))[key] = value.slice(at + 1);
      q.pairs.push(['tag', value]);
    } else if (name === 'name' && prefix !== null) tests.push((s) => s.orchestration.startsWith(prefix));
    else once(name, value);
  };
  for (const [raw] of text.matchAll(/(?:[^\s"]|"(?:[^"\\]|\\.)*"?)+/g)) {
    if (raw.replace(/"(?:[^"\\]|\\.)*"/g, '').includes('"')) fail('A closing quote is missing');
    else read(raw);
    if (!/^status:/i.test(raw)) others.push(raw);
  }
  q.rest = others.join(' ');
  if (q.id && others.length + (q.status ? 1 : 0) > 1) fail(`Unexpected “${q.id}”. An instance ID stands alone; add * to search for IDs with this prefix.`);
  if (tests.length) q.keep = (s) => tests.every((t) => t(s));
  return q;
}

// queryOf returns the query of a URL. It also reads the parameters of the API, with which earlier releases formed their URLs.
function queryOf(address) {
  if (address.has('q')) return address.get('q').trim();
  const terms = [];
  for (const name of ['status', 'name', 'version', 'tag', 'parent']) for (const v of address.getAll(name)) if (v) terms.push(queryTerm(name, v));
  for (const [name, sign] of [['startedAfter', '>'], ['startedBefore', '<']]) for (const v of address.getAll(name)) if (v) terms.push(queryTerm('started', sign + v));
  return terms.join(' ');
}

// listURL returns the URL of a list with terms, each a name and a value.
const listURL = (...terms) => '?' + query([['q', terms.map(([name, v]) => queryTerm(name, v)).join(' ')]]);

// completions suggests ends of the term at a position of a text: names of fields, and values that known has for them.
const mostSuggested = 9;
function completions(text, at, known) {
  let from = at;
  let quoted = (text.slice(0, at).match(/"/g) || []).length % 2 === 1;
  for (; from > 0 && (quoted || !/\s/.test(text[from - 1])); from--) if (text[from - 1] === '"') quoted = !quoted;
  const term = text.slice(from, at);
  const colon = term.indexOf(':');
  let options;
  if (colon < 0) options = Object.entries(queryFields).filter(([f]) => f.startsWith(term.toLowerCase())).map(([f, about]) => ({ text: `${f}:`, about }));
  else {
    const name = term.slice(0, colon).toLowerCase();
    const typed = unquote(term.slice(colon + 1)).replace(/^"/, '').toLowerCase();
    const values = {
      status: statuses.map((s) => [s.toLowerCase()]), name: [...(known.name || [])].sort().map((v) => [v]), version: [...(known.version || [])].sort().map((v) => [v]), tag: [...(known.tag || [])].sort().map((v) => [v]),
      started: [['<1h', 'in the last hour'], ['<1d', 'in the last day'], ['<7d', 'in the last week'], ['>1h', 'more than an hour ago'], ['>1d', 'more than a day ago'], [`>${moment(Date.now()).slice(0, 10)}`, 'today']],
    }[name] || [];
    options = values.filter(([v]) => v.toLowerCase().startsWith(typed) && v.toLowerCase() !== typed).map(([v, about]) => ({ text: queryTerm(name, v), about: about || '' }));
  }
  return { from, to: at, options: options.slice(0, mostSuggested) };
}
