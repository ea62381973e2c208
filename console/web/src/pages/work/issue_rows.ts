// A list of issues that stays up to date: pages from the API, changed by the event stream
// and by this tab's own changes.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, asFailure, isAbort, queryString, type Failure, type Query } from "../../api";
import { useEvents, useReset } from "../../live";
import { currentSession } from "../../session";
import type { Issue } from "../../types";
import { wsPath } from "../../workspace";
import { matches, rowOf, type IssueRow } from "./filters";
import { useToldIssues } from "./issue_bus";

export interface IssueRows {
  items: IssueRow[];
  more: boolean;
  loading: boolean;
  error: Failure | null;
  loadMore(): void;
  reload(): void;
}

interface State {
  at: string | null;
  items: IssueRow[];
  next: string | null;
  pages: number;
  loading: boolean;
  error: Failure | null;
}

/** Changes of a tenth of a second are applied together. */
const gather = 100;
/** So many pages without an issue are read at once, at most. */
const mostEmpty = 200;
/** Above so many unclear changes the list is read again instead of asking for each. */
const mostAsked = 8;

/** Newest first, as the API lists them: ids sort by creation. */
function place(items: IssueRow[], id: string): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle]!.id > id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Puts issues in, in their order, or takes them out (null). complete: there are no more pages. */
export function applyChanges(items: IssueRow[], changes: Map<string, IssueRow | null>, complete: boolean): IssueRow[] {
  const out = items.slice();
  for (const [id, row] of changes) {
    const at = place(out, id);
    const there = out[at]?.id === id;
    if (row === null) {
      if (there) out.splice(at, 1);
    } else if (there) {
      if (out[at]!.updatedAt <= row.updatedAt) out[at] = row;
    } else if (complete || at < out.length) {
      out.splice(at, 0, row);
    }
  }
  return out;
}

function merge(items: IssueRow[], page: IssueRow[]): IssueRow[] {
  const last = items[items.length - 1];
  // Pages don't overlap, except where an event has put an issue in already.
  return last ? items.concat(page.filter((row) => row.id < last.id)) : page;
}

export function useIssueRows(path: string, query: Query | null): IssueRows {
  const at = query === null ? null : path + queryString(query);
  const empty = (): State => ({ at, items: [], next: null, pages: 0, loading: at !== null, error: null });
  const [state, setState] = useState<State>(empty);
  const latest = useRef(state);
  latest.current = state;
  const running = useRef<AbortController | null>(null);
  const asking = useRef<AbortController | null>(null);

  // Changes that were applied while a read of the first pages runs, to be applied to it, too.
  const meanwhile = useRef<Map<string, IssueRow | null> | null>(null);

  const load = useCallback(
    async (pages: number, from: { next: string | null; pages: number } | null) => {
      running.current?.abort();
      if (at === null) return;
      const control = new AbortController();
      running.current = control;
      meanwhile.current = from === null ? new Map() : null;
      setState((s) => ({ ...(s.at === at ? s : empty()), loading: true }));
      let next = from?.next ?? null;
      let read = from?.pages ?? 0;
      let rows: IssueRow[] = [];
      try {
        for (let left = pages; left > 0; left--) {
          const page = await api.get<{ issues: Issue[]; nextCursor?: string }>(wsPath(path), { limit: 100, ...query, cursor: next }, control.signal);
          rows = rows.concat(page.issues.map(rowOf));
          next = page.nextCursor ?? null;
          read++;
          if (next === null) break;
          // A selective query may answer an empty page and still have more.
          if (page.issues.length === 0 && left === 1 && read < mostEmpty) left++;
        }
        if (control.signal.aborted) return;
        const changes = meanwhile.current;
        meanwhile.current = null;
        setState((s) => {
          let items = from === null ? rows : merge(s.at === at ? s.items : [], rows);
          if (changes) items = applyChanges(items, changes, next === null);
          return { at, items, next, pages: read, loading: false, error: null };
        });
      } catch (error) {
        if (control.signal.aborted || isAbort(error)) return;
        setState((s) => ({ ...s, loading: false, error: asFailure(error) }));
      }
    },
    [at],
  );

  const reload = useCallback(() => {
    const now = latest.current;
    void load(now.at === at ? Math.max(1, now.pages) : 1, null);
  }, [load]);

  useEffect(() => {
    void load(1, null);
    return () => {
      running.current?.abort();
      asking.current?.abort();
    };
  }, [load]);
  useReset(reload);

  // Changes that are not applied yet.
  const pending = useRef(new Map<string, IssueRow | null>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
      pending.current.clear();
    },
    [at],
  );

  const ask = async (rows: IssueRow[]) => {
    const control = new AbortController();
    asking.current = control;
    const changes = new Map<string, IssueRow | null>();
    for (const row of rows) {
      try {
        const page = await api.get<{ issues: Issue[] }>(wsPath(path), { ...query, identifier: row.identifier, limit: 1 }, control.signal);
        const found = page.issues.find((issue) => issue.id === row.id);
        changes.set(row.id, found ? rowOf(found) : null);
      } catch {
        return; // The next change, or a reload, tries again.
      }
    }
    if (!control.signal.aborted) setState((s) => (s.at === at ? { ...s, items: applyChanges(s.items, changes, s.next === null) } : s));
  };

  const flush = () => {
    timer.current = undefined;
    const changes = new Map<string, IssueRow | null>();
    const unclear: IssueRow[] = [];
    const me = currentSession()?.actorId ?? "";
    for (const [id, row] of pending.current) {
      if (row === null) {
        changes.set(id, null);
        continue;
      }
      const fits = matches(row, query ?? {}, me);
      if (fits === null) unclear.push(row);
      else changes.set(id, fits ? row : null);
    }
    pending.current.clear();
    for (const [id, row] of changes) meanwhile.current?.set(id, row);
    setState((s) => (s.at === at ? { ...s, items: applyChanges(s.items, changes, s.next === null) } : s));
    if (unclear.length > mostAsked) reload();
    else if (unclear.length > 0) void ask(unclear);
  };

  const note = (id: string, row: IssueRow | null) => {
    if (at === null) return;
    if (row !== null) {
      const known = pending.current.get(id) ?? latest.current.items[place(latest.current.items, id)];
      // An event may be older than a change of this tab.
      if (known && known.id === id && known.updatedAt > row.updatedAt) return;
    }
    pending.current.set(id, row);
    timer.current ??= setTimeout(flush, gather);
  };

  useEvents(["issue.*"], (event) => {
    const issue = event.data as Issue | null;
    if (!issue || typeof issue.id !== "string") return;
    note(issue.id, event.type === "issue.deleted" ? null : rowOf(issue));
  });
  useToldIssues((told) => {
    if (told.kind === "deleted") note(told.id, null);
    else note(told.issue.id, rowOf(told.issue as Issue));
    // The person's own changes are shown at once.
    clearTimeout(timer.current);
    if (timer.current !== undefined) flush();
  });

  const loadMore = useCallback(() => {
    const now = latest.current;
    if (now.at === at && !now.loading && !now.error && now.next !== null) void load(1, now);
  }, [load]);

  const shown = state.at === at ? state : empty();
  return { items: shown.items, more: shown.next !== null, loading: shown.loading, error: shown.error, loadMore, reload };
}
