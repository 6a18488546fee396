// AWS's local test runner of Lambda durable functions, not the service. Each line of input starts an orchestration,
// each line of output is a result. The first argument is the directory of the npm packages.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(process.argv[2] + "/package.json");
const { withDurableExecution } = require("@aws/durable-execution-sdk-js");
const { LocalDurableTestRunner } = require("@aws/durable-execution-sdk-js-testing");

let ran = 0;
const noop = async (payload) => {
  ran++;
  return payload.n;
};
const payload = (id, n) => ({ id, n, pad: "x".repeat(28) });
const sum = (xs) => xs.reduce((a, b) => a + b, 0);

const handlers = {
  chain: withDurableExecution(async ({ id, n }, context) => {
    let total = 0;
    for (let i = 0; i < n; i++) total += await context.step("noop", () => noop(payload(id, i)));
    return total;
  }),
  fan: withDurableExecution(async ({ id, n }, context) =>
    sum(await Promise.all(Array.from({ length: n }, (_, i) => context.step("noop", () => noop(payload(id, i)))))),
  ),
};

async function run({ id, kind, n }) {
  const runner = new LocalDurableTestRunner({ handlerFunction: handlers[kind] });
  const execution = await runner.run({ payload: { id, n } });
  if (execution.getStatus() !== "SUCCEEDED") throw new Error(`${id}: ${execution.getStatus()}`);
  return execution.getResult();
}

await LocalDurableTestRunner.setupTestEnvironment({ skipTime: true });
console.log = () => {}; // standard output is for results
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  run(request).then(
    (result) => ({ id: request.id, result }),
    (error) => ({ id: request.id, error: String(error) }),
  ).then((answer) => {
    answer.ran = ran;
    ran = 0;
    process.stdout.write(JSON.stringify(answer) + "\n");
  });
}
process.exit(0);
