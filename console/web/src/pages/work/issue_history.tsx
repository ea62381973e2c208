// The changes of an issue's fields, with their times and authors.

import { usePages } from "../../api";
import { useEvents } from "../../live";
import type { HistoryEntry } from "../../types";
import { Button } from "../../ui/button";
import { Empty, ErrorPanel, Spinner } from "../../ui/states";
import { Time } from "../../ui/time";
import { useCycles, useLabels, useProjects, useTeams, wsPath } from "../../workspace";
import { useThrottled } from "../refresh";
import { fieldNames, fieldText } from "./field_text";

const long = new Set(["description"]);

export function IssueHistory({ issueId, nameOf }: { issueId: string; nameOf(id: string | null): string }) {
  const list = usePages<HistoryEntry>(wsPath(`/issues/${issueId}/history`), "history", { limit: 50 });
  // The names in the entries are from these lists.
  useTeams();
  useProjects();
  useCycles();
  useLabels();
  const again = useThrottled(list.reload, 1000);
  useEvents(["issue.updated", "issue.archived"], (event) => {
    if (event.data?.id === issueId) again();
  });
  if (list.error && list.items.length === 0) return <ErrorPanel error={list.error} retry={list.reload} />;
  if (list.loading && list.items.length === 0) return <Spinner />;
  if (list.items.length === 0) return <Empty title="Nothing has changed since the creation." />;
  return (
    <>
      <ul class="history">
        {list.items.map((entry) => (
          <li key={entry.id + entry.field} class="history-entry">
            <span class="grow">
              <strong>{entry.actorType === "system" ? "The service" : nameOf(entry.actorId)}</strong> changed {fieldNames[entry.field] ?? entry.field}
              {long.has(entry.field) ? (
                <details>
                  <summary>Show the texts</summary>
                  <div class="conflict">
                    <div class="conflict-side">
                      <h4>Before</h4>
                      <pre tabIndex={0}>{fieldText(entry.field, entry.from)}</pre>
                    </div>
                    <div class="conflict-side">
                      <h4>After</h4>
                      <pre tabIndex={0}>{fieldText(entry.field, entry.to)}</pre>
                    </div>
                  </div>
                </details>
              ) : (
                <>
                  {" "}
                  from <em>{fieldText(entry.field, entry.from)}</em> to <em>{fieldText(entry.field, entry.to)}</em>
                </>
              )}
            </span>
            <span class="muted">
              <Time at={entry.createdAt} />
            </span>
          </li>
        ))}
      </ul>
      {list.error && <ErrorPanel error={list.error} retry={list.reload} />}
      {list.more && (
        <Button onClick={list.loadMore} busy={list.loading}>
          Show older changes
        </Button>
      )}
    </>
  );
}
