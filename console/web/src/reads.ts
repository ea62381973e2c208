// Hooks that read from the API: one object, or the pages of a list.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, asFailure, isAbort, type Failure, type Query, queryString } from "./api";
import { useReset } from "./live";

export interface Read<T> {
  data: T | undefined;
  etag: string | null;
  error: Failure | null;
  loading: boolean;
  reload(): void;
  set(data: T, etag?: string | null): void;
}

interface ReadState<T> {
  at: string | null;
  data: T | undefined;
  etag: string | null;
  error: Failure | null;
  loading: boolean;
}

/** Reads an object. The former answer stays while it is read again. A null path reads nothing. */
export function useRead<T>(path: string | null, query?: Query): Read<T> {
  const at = path === null ? null : path + queryString(query);
  const [state, setState] = useState<ReadState<T>>({ at, data: undefined, etag: null, error: null, loading: at !== null });
  const running = useRef<AbortController | null>(null);

  const load = useCallback(() => {
    running.current?.abort();
    if (at === null) {
      setState({ at, data: undefined, etag: null, error: null, loading: false });
      return;
    }
    const control = new AbortController();
    running.current = control;
    setState((s) => (s.at === at ? { ...s, loading: true } : { at, data: undefined, etag: null, error: null, loading: true }));
    api.read<T>(at, undefined, control.signal).then(
      ({ data, etag }) => {
        if (!control.signal.aborted) setState({ at, data, etag, error: null, loading: false });
      },
      (error) => {
        if (control.signal.aborted || isAbort(error)) return;
        setState((s) => ({ ...s, error: asFailure(error), loading: false }));
      },
    );
  }, [at]);

  useEffect(() => {
    load();
    return () => running.current?.abort();
  }, [load]);
  useReset(load);

  const set = useCallback((data: T, etag?: string | null) => {
    setState((s) => ({ ...s, data, etag: etag === undefined ? s.etag : etag, error: null }));
  }, []);

  const current = state.at === at;
  return {
    data: current ? state.data : undefined,
    etag: current ? state.etag : null,
    error: current ? state.error : null,
    loading: current ? state.loading : at !== null,
    reload: load,
    set,
  };
}

export interface Pages<Item> {
  items: Item[];
  more: boolean;
  error: Failure | null;
  loading: boolean;
  loadMore(): void;
  reload(): void;
  set(items: Item[]): void;
}

interface PagesState<Item> {
  at: string | null;
  items: Item[];
  next: string | null;
  pages: number;
  error: Failure | null;
  loading: boolean;
}

/** Reads a list page by page. key names the list in the answer; a reload reads as many pages again. */
export function usePages<Item>(path: string | null, key: string, query?: Query): Pages<Item> {
  const at = path === null ? null : path + queryString(query);
  const empty = (): PagesState<Item> => ({ at, items: [], next: null, pages: 0, error: null, loading: at !== null });
  const [state, setState] = useState<PagesState<Item>>(empty);
  const latest = useRef(state);
  latest.current = state;
  const running = useRef<AbortController | null>(null);

  const load = useCallback(
    async (pages: number, from: PagesState<Item>) => {
      running.current?.abort();
      if (path === null) return;
      const control = new AbortController();
      running.current = control;
      setState((s) => ({ ...(s.at === at ? s : empty()), loading: true }));
      let next = from.next;
      let items = from.items;
      let read = from.pages;
      try {
        for (let n = 0; n < pages; n++) {
          const page = await api.get<any>(path, { ...query, cursor: next }, control.signal);
          items = items.concat(page[key] as Item[]);
          next = page.nextCursor ?? null;
          read++;
          if (next === null) break;
        }
        if (!control.signal.aborted) setState({ at, items, next, pages: read, error: null, loading: false });
      } catch (error) {
        if (control.signal.aborted || isAbort(error)) return;
        setState((s) => ({ ...s, error: asFailure(error), loading: false }));
      }
    },
    [at, key],
  );

  const reload = useCallback(() => {
    const now = latest.current;
    void load(now.at === at ? Math.max(1, now.pages) : 1, empty());
  }, [load]);

  useEffect(() => {
    void load(1, empty());
    return () => running.current?.abort();
  }, [load]);
  useReset(reload);

  const loadMore = useCallback(() => {
    const now = latest.current;
    if (now.at === at && !now.loading && now.next !== null) void load(1, now);
  }, [load]);

  const set = useCallback((items: Item[]) => setState((s) => ({ ...s, items })), []);
  const shown = state.at === at ? state : empty();
  return { items: shown.items, more: shown.next !== null, error: shown.error, loading: shown.loading, loadMore, reload, set };
}
