// Prints the findings of cdk-nag's AWS Solutions rules for a template as JSON: node findings.mjs TEMPLATE

import { mkdtempSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Aspects, Stack } from 'aws-cdk-lib';
import { CfnInclude } from 'aws-cdk-lib/cloudformation-include';
import { AwsSolutionsChecks } from 'cdk-nag';

const found = [];
const note = (data, what) => found.push({ rule: data.ruleId, resource: data.resource.node.id, what });
const quiet = () => {};
const logger = {
  onNonCompliance: (d) => note(d, `${d.findingId ? `${d.findingId}: ` : ''}${d.ruleInfo}`),
  onError: (d) => note(d, `the rule could not be checked: ${d.errorMessage}`),
  onCompliance: quiet, onSuppressed: quiet, onSuppressedError: quiet, onNotApplicable: quiet,
};

const outdir = mkdtempSync(join(tmpdir(), 'perdure-nag-'));
try {
  const app = new App({ outdir, analyticsReporting: false });
  const stack = new Stack(app, 'Stack');
  new CfnInclude(stack, 'T', { templateFile: process.argv[2] });
  Aspects.of(app).add(new AwsSolutionsChecks({ reports: false, additionalLoggers: [logger] }));
  app.synth();
} finally {
  rmSync(outdir, { recursive: true });
}
const text = Buffer.from(JSON.stringify(found));
for (let at = 0; at < text.length;) at += writeSync(1, text, at); // write all bytes before the process exits
