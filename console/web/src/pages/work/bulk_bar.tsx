// Changes of all selected issues at once: the service makes all of them, or none.

import { useState } from "preact/hooks";
import { api, newKey } from "../../api";
import type { Issue } from "../../types";
import { Button, IconButton } from "../../ui/button";
import { toast, toastFailure } from "../../ui/toast";
import { wsPath } from "../../workspace";
import { DispatchDialog } from "./dispatch_dialog";
import type { IssueRow } from "./filters";
import { tellIssue } from "./issue_bus";
import { applyPatch, type IssuePatch } from "./issue_change";
import { AssigneePick, CyclePick, LabelsPick, PriorityPick, ProjectPick, StatusPick } from "./pickers";

function shared<Value>(rows: IssueRow[], read: (row: IssueRow) => Value): Value | null {
  const first = read(rows[0]!);
  return rows.every((row) => read(row) === first) ? first : null;
}

export function BulkBar({ rows, onDone }: { rows: IssueRow[]; onDone(): void }) {
  const [busy, setBusy] = useState(false);
  const [dispatching, setDispatching] = useState(false);

  const change = async (patch: IssuePatch) => {
    setBusy(true);
    for (const row of rows) tellIssue(applyPatch(row, patch));
    try {
      const { data } = await api.send<{ issues: Issue[] }>("POST", wsPath("/issues/batch"), { ids: rows.map((row) => row.id), patch }, { key: newKey() });
      for (const issue of data.issues) tellIssue(issue);
      toast(`${rows.length} issues changed.`, { kind: "success" });
      onDone();
    } catch (error) {
      for (const row of rows) tellIssue(row);
      toastFailure(error, () => void change(patch));
    } finally {
      setBusy(false);
    }
  };

  return (
    <div class="bulk-bar" role="region" aria-label="Selected issues">
      <span class="bulk-count">{rows.length} selected</span>
      <StatusPick placeholder="Status" value={shared(rows, (r) => r.status) as any} onChange={(status) => void change({ status })} class="pick pick-boxed" disabled={busy} />
      <PriorityPick placeholder="Priority" value={shared(rows, (r) => r.priority) as any} onChange={(priority) => void change({ priority })} class="pick pick-boxed" disabled={busy} />
      <AssigneePick placeholder="Assignee" value={shared(rows, (r) => r.assigneeId)} onChange={(assigneeId) => void change({ assigneeId })} class="pick pick-boxed" disabled={busy} />
      <ProjectPick placeholder="Project" value={shared(rows, (r) => r.projectId)} onChange={(projectId) => void change({ projectId })} class="pick pick-boxed" disabled={busy} />
      <CyclePick placeholder="Cycle" value={shared(rows, (r) => r.cycleId)} onChange={(cycleId) => void change({ cycleId })} class="pick pick-boxed" disabled={busy} />
      <LabelEdit onChange={(labelIds) => void change({ labelIds })} disabled={busy} />
      <Button icon="agent" disabled={busy} onClick={() => setDispatching(true)}>
        Dispatch
      </Button>
      <IconButton label="Select nothing" icon="close" onClick={onDone} />
      {dispatching && <DispatchDialog issues={rows} onClose={() => setDispatching(false)} onDone={onDone} />}
    </div>
  );
}

/** Labels replace those that the issues have, so they are chosen first and then set. */
function LabelEdit({ onChange, disabled }: { onChange(ids: string[]): void; disabled: boolean }) {
  const [ids, setIds] = useState<string[]>([]);
  return (
    <>
      <LabelsPick placeholder="Labels" value={ids} onChange={setIds} class="pick pick-boxed" disabled={disabled} />
      {ids.length > 0 && (
        <Button small disabled={disabled} onClick={() => onChange(ids)}>
          Set labels
        </Button>
      )}
    </>
  );
}
