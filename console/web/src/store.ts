// A value that components read and that re-renders them when it changes.

import { useEffect, useState } from "preact/hooks";

export interface Store<T> {
  get(): T;
  set(next: T): void;
  update(change: (now: T) => T): void;
  subscribe(listener: () => void): () => void;
}

export function makeStore<T>(first: T): Store<T> {
  let value = first;
  const listeners = new Set<() => void>();
  const store: Store<T> = {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    update: (change) => store.set(change(value)),
    subscribe(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
  return store;
}

export function useStore<T>(store: Store<T>): T {
  const [, render] = useState(0);
  const seen = store.get();
  useEffect(() => {
    // The value may have changed between the render and this effect.
    if (!Object.is(seen, store.get())) render((n) => n + 1);
    return store.subscribe(() => render((n) => n + 1));
  }, [store]);
  return seen;
}
