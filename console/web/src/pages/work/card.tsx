// A card of the board.

import { memo } from "../../ui/memo";
import { A } from "../../router";
import { labelsOf, statuses, type Label, type Status } from "../../types";
import { Avatar, LabelChip, PriorityIcon, StatusIcon, statusNames } from "../../ui/marks";
import { Menu } from "../../ui/menu";
import { pagePath, peek } from "../../workspace";
import type { IssueRow } from "./filters";
import { useRowFocus } from "./row_focus";

/** The height of a card with the space below it, in pixels. */
export const cardHeight = 104;

interface CardProps {
  row: IssueRow;
  labels: Label[];
  nameOf(id: string | null): string;
  /** The card that the tab key reaches. */
  current: boolean;
  focused: boolean;
  onFocus(id: string): void;
  onMove(row: IssueRow, to: Status): void;
}

function isAgent(id: string): boolean {
  return peek("agents").some((agent) => agent.id === id);
}

export const Card = memo(function Card({ row, labels, nameOf, current, focused, onFocus, onMove }: CardProps) {
  useRowFocus(row.id, focused);
  const mine = labelsOf(row);
  const shown = mine.slice(0, 2);
  return (
    <article class="board-card" data-card={row.id}>
      <div class="card-top">
        <span class="identifier">{row.identifier}</span>
        <span class="grow" />
        <Menu
          label={`Move ${row.identifier}`}
          items={statuses.filter((s) => s !== row.status).map((s) => ({ label: "Move to " + statusNames[s], onSelect: () => onMove(row, s) }))}
          class="card-status"
        >
          <StatusIcon status={row.status} />
        </Menu>
      </div>
      <A href={pagePath("issues/" + (row.identifier ?? row.id))} class="card-title" data-issue={row.id} tabIndex={current ? 0 : -1} draggable={false} onFocus={() => onFocus(row.id)}>
        {row.title}
      </A>
      <div class="card-foot">
        <PriorityIcon priority={row.priority} named />
        {row.estimate !== null && <span class="muted">{row.estimate}</span>}
        {row.isDraft && <span class="muted">Draft</span>}
        <span class="card-labels">
          {shown.map((id) => {
            const label = labels.find((l) => l.id === id);
            return <LabelChip key={id} name={label?.name ?? id} color={label?.color ?? null} />;
          })}
          {mine.length > shown.length && <span class="muted">+{mine.length - shown.length}</span>}
        </span>
        {row.assigneeId && (
          <>
            <Avatar id={row.assigneeId} name={nameOf(row.assigneeId)} agent={isAgent(row.assigneeId)} />
            <span class="visually-hidden">{nameOf(row.assigneeId)}</span>
          </>
        )}
      </div>
    </article>
  );
});
