/** Asks for the value of a key. */
export type Load<K, V> = (key: K) => Promise<V>;

/** Loads values when they are asked for, and holds them until they are said to have changed. See README.md. */
export class Cache<K, V> {
  readonly #load: Load<K, V>;
  readonly #held = new Map<K, V>();
  readonly #loading = new Map<K, Promise<V>>();
  readonly #stale = new Set<K>();

  constructor(load: Load<K, V>) {
    this.#load = load;
  }

  /** The value of a key: the one that is held, or else a new one. */
  get(key: K): Promise<V> {
    if (this.#held.has(key)) {
      return Promise.resolve(this.#held.get(key) as V);
    }
    return this.#loading.get(key) ?? this.#start(key);
  }

  /** Holds a value that is known to be right. */
  set(key: K, value: V): void {
    this.#markStale(key);
    this.#held.set(key, value);
  }

  /** Says that the value of a key has changed. */
  invalidate(key: K): void {
    this.#markStale(key);
    this.#held.delete(key);
  }

  /** Says that all values have changed. */
  clear(): void {
    for (const key of this.#loading.keys()) {
      this.#markStale(key);
    }
    this.#held.clear();
  }

  /** The value that is held, or undefined. */
  peek(key: K): V | undefined {
    return this.#held.get(key);
  }

  /** How many values are held. */
  get size(): number {
    return this.#held.size;
  }

  /** What is being loaded must not be held when it arrives. */
  #markStale(key: K): void {
    if (this.#loading.has(key)) {
      this.#stale.add(key);
    }
  }

  #start(key: K): Promise<V> {
    const loading = this.#load(key)
      .then((value) => {
        if (!this.#stale.has(key)) {
          this.#held.set(key, value);
        }
        return value;
      })
      .finally(() => {
        this.#loading.delete(key);
        this.#stale.delete(key);
      });
    this.#loading.set(key, loading);
    return loading;
  }
}
