// Runs cfn-lint, checkov and cdk-nag on templates: node check.mjs TEMPLATE...
// Each finding must have an entry in answers.json with the reason why the finding is accepted. Each entry must match a
// finding, so that an outdated entry cannot hide a new finding.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const venv = (tool) => join(here, '.venv', tool, 'bin', tool);

// output runs a tool and parses its JSON output. codes has the accepted exit codes, because tools exit with other codes
// than 0 if they find something.
function output(command, args, codes) {
  const ran = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (ran.error || !codes.includes(ran.status)) throw new Error(`${command} ${args.join(' ')}: ${ran.error || `exit ${ran.status}`}\n${ran.stderr}${ran.stdout}`.slice(0, 4000));
  return JSON.parse(ran.stdout);
}

const tools = {
  'cfn-lint': (template) => output(venv('cfn-lint'), ['--format', 'json', template], [0, 2, 4, 6, 8, 10, 12, 14])
    .map((f) => ({ rule: f.Rule.Id, resource: String(f.Location.Path?.[1] ?? ''), what: f.Message })),
  checkov: (template) => {
    const { results, summary } = output(venv('checkov'), ['--framework', 'cloudformation', '--skip-download', '--soft-fail', '--quiet', '--compact', '-o', 'json', '-f', template], [0]);
    if (summary.parsing_errors || !summary.passed) throw new Error(`checkov: cannot read ${template}`);
    return results.failed_checks.map((f) => ({ rule: f.check_id, resource: f.resource, what: f.check_name }));
  },
  'cdk-nag': (template) => output(process.execPath, [join(here, 'nag', 'findings.mjs'), template], [0]),
};

const answers = JSON.parse(readFileSync(join(here, 'answers.json'), 'utf8'));
const fits = (pattern, text) => !pattern || new RegExp(pattern).test(text);
const faults = [];
const used = new Set();
for (const template of process.argv.slice(2)) {
  for (const [tool, look] of Object.entries(tools)) {
    const found = look(template);
    console.log(`${tool}: ${basename(template)}: ${found.length} findings`);
    for (const f of found) {
      const answer = answers.find((a) => a.tool === tool && a.rule === f.rule && fits(a.resources, f.resource) && fits(a.findings, f.what));
      if (answer) used.add(answer);
      else faults.push(`${tool}: ${basename(template)}: ${f.resource}: ${f.rule}: ${f.what}`);
    }
  }
}
for (const a of answers) {
  if (!a.reason || !tools[a.tool]) faults.push(`answers.json: the entry for ${a.tool} ${a.rule} has no reason, or an unknown tool`);
  if (!used.has(a)) faults.push(`answers.json: the entry for ${a.tool} ${a.rule}${a.resources ? ` (${a.resources})` : ''} matches no finding; delete the entry`);
}
for (const f of faults) console.error(f);
if (!faults.length) console.log('all findings are accepted in answers.json');
process.exitCode = faults.length ? 1 : 0;
