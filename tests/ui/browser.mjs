// Test fixture of the web UI: the server, a headless Chromium from npm, and checks for browser errors and accessibility.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import chromiumBinary from '@sparticuz/chromium';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// serve starts the server, which exits when its standard input closes.
export async function serve(env = {}) {
  const server = spawn(process.env.UI_SERVER, [], { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } });
  const [line] = await once(server.stdout, 'data');
  return { base: String(line).trim(), stop: () => server.stdin.end() };
}

// proxy starts the signing proxy of make run in front of a server.
export async function proxy(base) {
  const python = fileURLToPath(new URL('../../localstack/.venv/bin/python', import.meta.url));
  const program = 'import proxy, sys; l = proxy.listen(0); proxy.serve(l, sys.argv[1], "a1.execute-api.us-east-1.amazonaws.com"); '
    + 'print("http://127.0.0.1:%d" % l.getsockname()[1], flush=True); sys.stdin.read()';
  const cwd = fileURLToPath(new URL('../../localstack/', import.meta.url));
  const server = spawn(python, ['-c', program, base], { stdio: ['pipe', 'pipe', 'inherit'], cwd });
  const [line] = await once(server.stdout, 'data');
  return { base: String(line).trim(), stop: () => server.stdin.end() };
}

export async function browse(...args) {
  return chromium.launch({ executablePath: await chromiumBinary.executablePath(), args: ['--no-sandbox', '--disable-gpu', ...args], headless: true });
}

// open opens a view. wrong collects browser errors, such as violations of the Content-Security-Policy.
export async function open(browser, base, path, { width = 1280, height = 760, dark = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', acceptDownloads: true });
  const page = await context.newPage();
  page.setDefaultTimeout(12_000); // tolerates a busy machine
  const wrong = [];
  page.on('console', (m) => { if (m.type() === 'error' || m.type() === 'warning') wrong.push(m.text()); });
  page.on('pageerror', (e) => wrong.push(String(e)));
  page.on('request', (r) => { if (!r.url().startsWith(base) && !r.url().startsWith('data:') && !r.url().startsWith('blob:')) wrong.push(`requested ${r.url()}`); });
  await page.goto(`${base}/ui${path}`);
  const close = async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' }); // the page may still refresh, and its requests end with it
    await context.close();
  };
  return { page, wrong, close };
}

// violations returns the axe violations of WCAG 2.2 A and AA and of best practices.
export async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })).violations);
  return found.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} ${n.any.map((a) => a.message).join('; ').slice(0, 200)}`).join(' | ')}`);
}
