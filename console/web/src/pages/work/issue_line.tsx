// One issue as a line of a list.

import { A } from "../../router";
import { labelsOf, type Label } from "../../types";
import { Avatar, LabelChip, PriorityIcon, StatusIcon } from "../../ui/marks";
import { Time } from "../../ui/time";
import { pagePath, peek } from "../../workspace";
import type { IssueRow } from "./filters";
import { useRowFocus } from "./row_focus";

/** The height of a line, in pixels. */
export const lineHeight = 40;

interface IssueLineProps {
  row: IssueRow;
  labels: Label[];
  nameOf(id: string | null): string;
  /** The line that the tab key reaches. */
  current: boolean;
  focused?: boolean;
  selected?: boolean;
  onFocus?(id: string): void;
  onToggle?(id: string): void;
}

export function IssueLine({ row, labels, nameOf, current, focused = false, selected, onFocus, onToggle }: IssueLineProps) {
  useRowFocus(row.id, focused);
  const shown = labelsOf(row).slice(0, 3);
  return (
    <div class={selected ? "issue-line issue-selected" : "issue-line"}>
      {onToggle && <input type="checkbox" class="check" checked={selected} aria-label={`Select ${row.identifier}`} tabIndex={current ? 0 : -1} onChange={() => onToggle(row.id)} />}
      <PriorityIcon priority={row.priority} named />
      <StatusIcon status={row.status} named />
      <A href={pagePath("issues/" + (row.identifier ?? row.id))} class="issue-link" data-issue={row.id} tabIndex={current ? 0 : -1} onFocus={() => onFocus?.(row.id)}>
        <span class="identifier">{row.identifier}</span>
        <span class="issue-title clip">{row.title}</span>
      </A>
      <span class="issue-labels wide-only">
        {shown.map((id) => {
          const label = labels.find((l) => l.id === id);
          return <LabelChip key={id} name={label?.name ?? id} color={label?.color ?? null} />;
        })}
      </span>
      <span class="issue-when muted wide-only">
        <Time at={row.updatedAt} />
      </span>
      {row.assigneeId ? (
        <>
          <Avatar id={row.assigneeId} name={nameOf(row.assigneeId)} agent={peek("agents").some((a) => a.id === row.assigneeId)} />
          <span class="visually-hidden">{nameOf(row.assigneeId)}</span>
        </>
      ) : (
        <span class="no-avatar" />
      )}
    </div>
  );
}
