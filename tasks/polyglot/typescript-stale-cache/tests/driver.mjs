// cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora

// A request is ["run", keys, ticks]: a new cache is taken through the ticks, each a list of steps that are done without a
// pause. The answer says for each tick what there was to see once everything had come to rest.
import { createReadStream, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setImmediate as rest } from "node:timers/promises";

import { Cache } from "./src/cache.ts";

async function run(keys, ticks) {
  const loads = [];
  const cache = new Cache((key) => {
    const answer = Promise.withResolvers();
    loads.push({ key, ...answer });
    return answer.promise;
  });
  let gets = 0;
  let seen = [];
  const steps = {
    get(key) {
      const number = gets++;
      cache.get(key).then(
        (value) => seen.push(["got", number, value]),
        (error) => seen.push(["failed", number, error.message]),
      );
    },
    set: (key, value) => cache.set(key, value),
    invalidate: (key) => cache.invalidate(key),
    clear: () => cache.clear(),
    peek: (key) => seen.push(["peeked", key, cache.peek(key) ?? null]),
    answer: (load, value) => loads[load]?.resolve(value),
    fail: (load, message) => loads[load]?.reject(new Error(message)),
  };
  const found = [];
  for (const tick of ticks) {
    seen = [];
    for (const [step, ...operands] of tick) {
      steps[step](...operands);
    }
    await rest();
    const held = keys.map((key) => cache.peek(key) ?? null);
    found.push({ seen, held, size: cache.size, loads: loads.map((load) => load.key) });
  }
  return found;
}

const operations = { run };
for await (const line of createInterface({ input: createReadStream("", { fd: 3 }) })) {
  const [operation, ...operands] = JSON.parse(line);
  writeSync(4, `${JSON.stringify({ ok: await operations[operation](...operands) })}\n`);
}
