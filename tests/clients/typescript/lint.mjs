// Validates an OpenAPI document with the recommended rules of Redocly. A warning fails too.

import { createConfig, lint } from '@redocly/openapi-core';

const problems = await lint({ ref: process.argv[2], config: await createConfig({ extends: ['recommended'] }) });
for (const p of problems) console.error(`${p.severity} ${p.ruleId}: ${p.location[0]?.pointer}: ${p.message}`);
process.exitCode = problems.length ? 1 : 0;
