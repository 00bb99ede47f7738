/** Asks for the value of a key. */
export type Load<K, V> = (key: K) => Promise<V>;

/** Loads values when they are asked for, and holds them until they are said to have changed. See README.md. */
export class Cache<K, V> {
  readonly #load: Load<K, V>;
  readonly #held = new Map<K, V>();
  /** Loads whose answer will be held. One that was overtaken by a change is no longer among them. */
  readonly #loading = new Map<K, Promise<V>>();

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
    this.#loading.delete(key);
    this.#held.set(key, value);
  }

  /** Says that the value of a key has changed. */
  invalidate(key: K): void {
    this.#loading.delete(key);
    this.#held.delete(key);
  }

  /** Says that all values have changed. */
  clear(): void {
    this.#loading.clear();
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

  #start(key: K): Promise<V> {
    const loading: Promise<V> = this.#load(key)
      .then((value) => {
        if (this.#loading.get(key) === loading) {
          this.#held.set(key, value);
        }
        return value;
      })
      .finally(() => {
        if (this.#loading.get(key) === loading) {
          this.#loading.delete(key);
        }
      });
    this.#loading.set(key, loading);
    return loading;
  }
}
