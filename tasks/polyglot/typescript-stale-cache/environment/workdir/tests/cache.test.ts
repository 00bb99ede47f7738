import assert from "node:assert/strict";
import { test } from "node:test";

import { Cache } from "../src/cache.ts";

/** A warehouse that answers when it is told to. */
class Warehouse {
  readonly asked: string[] = [];
  readonly #answers: PromiseWithResolvers<number>[] = [];

  readonly load = (key: string): Promise<number> => {
    this.asked.push(key);
    const answer = Promise.withResolvers<number>();
    this.#answers.push(answer);
    return answer.promise;
  };

  answer(place: number, level: number): void {
    this.#answers[place]?.resolve(level);
  }

  fail(place: number): void {
    this.#answers[place]?.reject(new Error("warehouse is closed"));
  }
}

function shop(): { warehouse: Warehouse; cache: Cache<string, number> } {
  const warehouse = new Warehouse();
  return { warehouse, cache: new Cache(warehouse.load) };
}

test("a value is loaded once and held", async () => {
  const { warehouse, cache } = shop();
  const level = cache.get("lamp");
  warehouse.answer(0, 12);
  assert.equal(await level, 12);
  assert.equal(await cache.get("lamp"), 12);
  assert.deepEqual(warehouse.asked, ["lamp"]);
});

test("callers share a load", async () => {
  const { warehouse, cache } = shop();
  const levels = [cache.get("lamp"), cache.get("lamp"), cache.get("desk")];
  warehouse.answer(1, 3);
  warehouse.answer(0, 12);
  assert.deepEqual(await Promise.all(levels), [12, 12, 3]);
  assert.deepEqual(warehouse.asked, ["lamp", "desk"]);
});

test("a failed load is not held", async () => {
  const { warehouse, cache } = shop();
  const level = cache.get("lamp");
  warehouse.fail(0);
  await assert.rejects(level, /closed/);
  const next = cache.get("lamp");
  warehouse.answer(1, 12);
  assert.equal(await next, 12);
});

test("an invalidated value is loaded anew", async () => {
  const { warehouse, cache } = shop();
  cache.set("lamp", 12);
  cache.invalidate("lamp");
  assert.equal(cache.peek("lamp"), undefined);
  const level = cache.get("lamp");
  warehouse.answer(0, 11);
  assert.equal(await level, 11);
});

test("a value that changes while it is loaded is not held", async () => {
  const { warehouse, cache } = shop();
  const before = cache.get("lamp");
  cache.invalidate("lamp");
  warehouse.answer(0, 12);
  assert.equal(await before, 12);
  const after = cache.get("lamp");
  warehouse.answer(1, 11);
  assert.equal(await after, 11);
});
