// The board: a column for each status, each a virtual list. Cards move by mouse, or with
// Shift and the arrow keys.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useKeys } from "../../keys";
import { navigate, useRoute } from "../../router";
import { statuses, type Status } from "../../types";
import { StatusIcon, statusNames } from "../../ui/marks";
import { IconButton } from "../../ui/button";
import { ErrorPanel } from "../../ui/states";
import { VirtualList } from "../../ui/virtual_list";
import { pagePath, useLabels, useNames } from "../../workspace";
import { Card, cardHeight } from "./card";
import { useCardDrag } from "./card_drag";
import { activeFilters, apiQuery, suggested, type IssueRow } from "./filters";
import { changeOrTell } from "./issue_change";
import { useIssueRows, type IssueRows } from "./issue_rows";
import { openQuickCreate } from "./quick_create";

const inView: Record<string, Status[]> = {
  active: ["todo", "in_progress"],
  backlog: ["backlog"],
  triage: ["triage"],
  completed: ["done", "canceled"],
};

/** The columns that the filters leave. */
function shownStatuses(active: Record<string, string>): Status[] {
  const status = active.status as Status | undefined;
  return statuses.filter((s) => (!status || s === status) && (inView[active.show ?? ""]?.includes(s) ?? true));
}

export function Board() {
  const { query } = useRoute();
  const active = activeFilters(query);
  const columns = shownStatuses(active);
  const rows = useRef(new Map<Status, IssueRows>());
  const [focused, setFocused] = useState<string | null>(null);
  const box = useRef<HTMLDivElement>(null);

  const move = useCallback((row: IssueRow, to: Status) => {
    if (row.status === to) return;
    void changeOrTell(row, { status: to }, `${row.identifier} moved to ${statusNames[to]}.`);
  }, []);

  const rowOf = useCallback((id: string) => {
    for (const list of rows.current.values()) {
      const row = list.items.find((r) => r.id === id);
      if (row) return row;
    }
    return undefined;
  }, []);
  const drag = useCardDrag(box, rowOf, move);

  const find = () => {
    for (const status of columns) {
      const items = rows.current.get(status)?.items ?? [];
      const index = items.findIndex((row) => row.id === focused);
      if (index >= 0) return { column: columns.indexOf(status), index, row: items[index]! };
    }
    return null;
  };
  const itemsAt = (column: number) => rows.current.get(columns[column]!)?.items ?? [];
  const step = (columnsBy: number, rowsBy: number) => () => {
    const at = find();
    if (!at) {
      const first = columns.findIndex((_, i) => itemsAt(i).length > 0);
      if (first >= 0) setFocused(itemsAt(first)[0]!.id);
      return;
    }
    if (rowsBy !== 0) {
      const next = itemsAt(at.column)[at.index + rowsBy];
      if (next) setFocused(next.id);
      return;
    }
    for (let c = at.column + columnsBy; c >= 0 && c < columns.length; c += columnsBy) {
      const items = itemsAt(c);
      if (items.length === 0) continue;
      setFocused(items[Math.min(at.index, items.length - 1)]!.id);
      return;
    }
  };
  const carry = (by: number) => () => {
    const at = find();
    const to = at && columns[at.column + by];
    if (at && to) move(at.row, to);
  };
  const open = () => {
    const at = find();
    if (at) navigate(pagePath("issues/" + (at.row.identifier ?? at.row.id)));
  };
  useKeys("Board", {
    arrowdown: { help: "Next card", run: step(0, 1) },
    arrowup: { help: "Card before", run: step(0, -1) },
    arrowright: { help: "Next column", run: step(1, 0) },
    arrowleft: { help: "Column before", run: step(-1, 0) },
    j: { help: "", run: step(0, 1) },
    k: { help: "", run: step(0, -1) },
    "]": { help: "Move the card to the next column", run: carry(1) },
    "[": { help: "Move the card to the column before", run: carry(-1) },
    o: { help: "Open the card", run: open },
  });

  return (
    <div class="board" ref={box} onPointerDown={drag}>
      {columns.map((status) => (
        <Column key={status} status={status} active={active} rows={rows.current} focused={focused} onFocus={setFocused} onMove={move} />
      ))}
    </div>
  );
}

interface ColumnProps {
  status: Status;
  active: Record<string, string>;
  rows: Map<Status, IssueRows>;
  focused: string | null;
  onFocus(id: string): void;
  onMove(row: IssueRow, to: Status): void;
}

function Column({ status, active, rows, focused, onFocus, onMove }: ColumnProps) {
  const query = useMemo(() => ({ ...apiQuery(active), status }), [JSON.stringify(active), status]);
  const list = useIssueRows("/issues", query);
  rows.set(status, list);
  useEffect(
    () => () => {
      rows.delete(status);
    },
    [status],
  );
  const labels = useLabels();
  const names = useNames();
  const at = focused === null ? -1 : list.items.findIndex((row) => row.id === focused);
  const title = `${statusNames[status]}, ${list.items.length}${list.more ? " or more" : ""} issues`;
  return (
    <section class="board-column" aria-label={title} data-status={status}>
      <header class="board-head">
        <StatusIcon status={status} />
        <h2>{statusNames[status]}</h2>
        <span class="muted grow">
          {list.items.length}
          {list.more ? "+" : ""}
        </span>
        <IconButton label={"New issue in " + statusNames[status]} icon="plus" onClick={() => openQuickCreate({ status, ...suggested(active) })} />
      </header>
      {list.error && <ErrorPanel error={list.error} retry={list.reload} />}
      <VirtualList
        class="board-cards"
        label={title}
        items={list.items}
        rowHeight={cardHeight}
        keyOf={(row) => row.id}
        onEnd={list.loadMore}
        active={at}
        render={(row, index) => <Card row={row} labels={labels} nameOf={names} current={row.id === focused || (at < 0 && index === 0)} focused={row.id === focused} onFocus={onFocus} onMove={onMove} />}
      />
      {list.loading && list.items.length === 0 && <p class="board-note muted">Loading…</p>}
      {!list.loading && !list.error && list.items.length === 0 && <p class="board-note muted">No issues</p>}
    </section>
  );
}
