// The titles of issues that sessions and drafts name by id. They are kept in a bounded cache,
// and a few are fetched at a time.

import { useEffect, useState } from "preact/hooks";
import { api, Failure } from "../../api";
import { useEvents } from "../../live";
import { useWorkspace, wsPath } from "../../workspace";

export interface IssueTitle {
  id: string;
  identifier: string | null;
  title: string;
}

const maxKept = 5000;
const maxAtOnce = 6;

// null stands for an issue that the caller can't see.
const kept = new Map<string, IssueTitle | null>();
const wanted: { key: string; path: string }[] = [];
const underWay = new Set<string>();
const watchers = new Set<() => void>();

function keep(key: string, value: IssueTitle | null) {
  kept.delete(key);
  kept.set(key, value);
  for (const oldest of kept.keys()) {
    if (kept.size <= maxKept) break;
    kept.delete(oldest);
  }
  for (const notify of [...watchers]) notify();
}

function fetchNext() {
  while (underWay.size < maxAtOnce) {
    const next = wanted.pop();
    if (!next) return;
    if (kept.has(next.key) || underWay.has(next.key)) continue;
    underWay.add(next.key);
    api
      .get<IssueTitle>(next.path)
      .then(({ id, identifier, title }) => keep(next.key, { id, identifier, title }))
      .catch((err: unknown) => {
        // An issue that can't be read now is asked for again by the next page that shows it.
        if (err instanceof Failure && (err.status === 404 || err.status === 403)) keep(next.key, null);
      })
      .finally(() => {
        underWay.delete(next.key);
        fetchNext();
      });
  }
}

/** Returns the title of an issue: undefined until it is known, null if the caller can't see it. */
export function useIssueTitle(id: string | null): IssueTitle | null | undefined {
  const workspace = useWorkspace();
  const [, redraw] = useState(0);
  const key = `${workspace.id}/${id}`;
  useEffect(() => {
    if (!id) return;
    const notify = () => redraw((n) => n + 1);
    watchers.add(notify);
    if (!kept.has(key)) {
      wanted.push({ key, path: wsPath(`/issues/${id}`) });
      if (wanted.length > maxKept) wanted.shift();
      fetchNext();
    }
    return () => {
      watchers.delete(notify);
    };
  }, [key, id]);
  useEvents(["issue.updated"], (event) => {
    const issue = event.data as IssueTitle | null;
    if (id && issue?.id === id) keep(key, { id, identifier: issue.identifier, title: issue.title });
  });
  return id ? kept.get(key) : null;
}
