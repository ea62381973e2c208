// Issues as a list of rows, with selection and changes of many at once.

import { useMemo, useState } from "preact/hooks";
import { useKeys } from "../../keys";
import { navigate } from "../../router";
import type { Priority } from "../../types";
import { priorities } from "../../types";
import { Button } from "../../ui/button";
import { Empty, ErrorPanel, Spinner } from "../../ui/states";
import { VirtualList } from "../../ui/virtual_list";
import { pagePath, useLabels, useNames } from "../../workspace";
import { BulkBar } from "./bulk_bar";
import { apiQuery, suggested, type IssueRow } from "./filters";
import { changeOrTell } from "./issue_change";
import { IssueLine, lineHeight } from "./issue_line";
import { useIssueRows } from "./issue_rows";
import { openQuickCreate } from "./quick_create";

/** The most issues that one request changes. */
const mostSelected = 100;

export function IssueTable({ active, empty = "No issue fits these filters." }: { active: Record<string, string>; empty?: string }) {
  const query = useMemo(() => apiQuery(active), [JSON.stringify(active)]);
  const list = useIssueRows("/issues", query);
  const labels = useLabels();
  const names = useNames();
  const [focused, setFocused] = useState<string | null>(null);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const at = focused === null ? -1 : list.items.findIndex((row) => row.id === focused);

  // Issues that left the list are not selected any more.
  const chosen = useMemo(() => list.items.filter((row) => selected.has(row.id)), [list.items, selected]);

  const step = (by: number) => () => {
    const next = list.items[at < 0 ? 0 : Math.max(0, Math.min(list.items.length - 1, at + by))];
    if (next) setFocused(next.id);
  };
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (next.has(id)) next.delete(id);
    else if (chosen.length < mostSelected) next.add(id);
    setSelected(next);
  };
  const row = list.items[at];
  const shift = (by: number) => () => {
    const to: Priority | undefined = row && priorities[priorities.indexOf(row.priority) + by];
    if (row && to) void changeOrTell(row, { priority: to });
  };
  useKeys("List", {
    arrowdown: { help: "Next issue", run: step(1) },
    arrowup: { help: "Issue before", run: step(-1) },
    j: { help: "", run: step(1) },
    k: { help: "", run: step(-1) },
    o: { help: "Open the issue", run: () => row && navigate(pagePath("issues/" + (row.identifier ?? row.id))) },
    x: { help: "Select the issue", run: () => row && toggle(row.id) },
    "mod+a": { help: "Select the first 100", run: () => setSelected(new Set(list.items.slice(0, mostSelected).map((r) => r.id))) },
    "+": { help: "Raise the priority", run: shift(-1) },
    "-": { help: "Lower the priority", run: shift(1) },
    escape: { help: "Select nothing", run: () => setSelected(new Set()) },
  });

  if (list.error && list.items.length === 0) {
    return (
      <div class="pad">
        <ErrorPanel error={list.error} retry={list.reload} />
      </div>
    );
  }
  if (list.loading && list.items.length === 0) return <Spinner />;
  if (list.items.length === 0) {
    return (
      <Empty title={Object.keys(active).length > 0 ? empty : "There is no issue yet."} icon="list">
        <Button kind="primary" icon="plus" onClick={() => openQuickCreate(suggested(active))}>
          New issue
        </Button>
      </Empty>
    );
  }
  return (
    <div class="issue-table">
      {list.error && <ErrorPanel error={list.error} retry={list.reload} />}
      <VirtualList
        class="issue-lines"
        label={`Issues, ${list.items.length}${list.more ? " or more" : ""}`}
        items={list.items}
        rowHeight={lineHeight}
        keyOf={(r: IssueRow) => r.id}
        onEnd={list.loadMore}
        active={at}
        render={(r: IssueRow, index: number) => (
          <IssueLine row={r} labels={labels} nameOf={names} current={r.id === focused || (at < 0 && index === 0)} focused={r.id === focused} selected={selected.has(r.id)} onFocus={setFocused} onToggle={toggle} />
        )}
      />
      {chosen.length > 0 && <BulkBar rows={chosen} onDone={() => setSelected(new Set())} />}
    </div>
  );
}
