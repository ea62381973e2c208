// Issues that this tab has changed, told to the lists that show them before the event
// stream tells everybody.

import { useEffect, useRef } from "preact/hooks";
import type { Issue } from "../../types";
import type { IssueRow } from "./filters";

type Told = { kind: "changed"; issue: IssueRow | Issue } | { kind: "deleted"; id: string };

const listeners = new Set<(told: Told) => void>();

export function tellIssue(issue: IssueRow | Issue): void {
  for (const listen of [...listeners]) listen({ kind: "changed", issue });
}

export function tellDeleted(id: string): void {
  for (const listen of [...listeners]) listen({ kind: "deleted", id });
}

export function useToldIssues(handler: (told: Told) => void): void {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    const listen = (told: Told) => latest.current(told);
    listeners.add(listen);
    return () => {
      listeners.delete(listen);
    };
  }, []);
}
