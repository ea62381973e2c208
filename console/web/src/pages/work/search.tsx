// Search over all issues, as one types. The words and the choice of the archive are in the
// address.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useKeys } from "../../keys";
import { navigate, setQuery, useRoute } from "../../router";
import { Checkbox } from "../../ui/field";
import { Icon } from "../../ui/icons";
import { Page } from "../../ui/page";
import { Empty, ErrorPanel, Spinner } from "../../ui/states";
import { VirtualList } from "../../ui/virtual_list";
import { pagePath, useLabels, useNames } from "../../workspace";
import type { IssueRow } from "./filters";
import { IssueLine, lineHeight } from "./issue_line";
import { useIssueRows } from "./issue_rows";

const typingPause = 150;
const identifier = /^[a-z0-9]{1,10}-\d+$/i;

export default function Search() {
  const { query } = useRoute();
  const words = query.q ?? "";
  const archived = query.archived === "true";
  const [text, setText] = useState(words);
  const [focused, setFocused] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);

  useEffect(() => input.current?.focus(), []);
  useEffect(() => {
    if (text.trim() === words) return;
    const timer = setTimeout(() => setQuery({ q: text.trim() || null }), typingPause);
    return () => clearTimeout(timer);
  }, [text]);

  const search = useMemo(() => (words === "" ? null : { search: words, includeSnoozed: true, archived: archived ? true : undefined }), [words, archived]);
  const list = useIssueRows("/issues", search);
  const labels = useLabels();
  const names = useNames();
  const at = focused === null ? -1 : list.items.findIndex((row) => row.id === focused);

  const go = (index: number) => {
    const row = list.items[index];
    if (!row) return;
    setFocused(row.id);
    // The focus leaves the input for the list; a line that is not in view takes it when it is.
    const line = document.querySelector<HTMLElement>(`[data-issue="${row.id}"]`);
    if (line) line.focus();
    else input.current?.blur();
  };
  const open = (row: IssueRow | undefined) => row && navigate(pagePath("issues/" + (row.identifier ?? row.id)));
  useKeys("Search", {
    arrowdown: { help: "Next issue", run: () => go(at + 1) },
    arrowup: {
      help: "Issue before",
      run: () => {
        if (at > 0) go(at - 1);
        else {
          setFocused(null);
          input.current?.focus();
        }
      },
    },
    o: { help: "Open the issue", run: () => open(list.items[at]) },
  });

  return (
    <Page title="Search" fill>
      <div class="search-page">
        <label class="search-big">
          <Icon name="search" />
          <span class="visually-hidden">Words of the title, the description or the identifier</span>
          <input
            ref={input}
            type="search"
            placeholder="Words of the title, the description or the identifier"
            maxLength={1000}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "ArrowDown") {
                event.preventDefault();
                go(0);
              } else if (event.key === "Enter") {
                event.preventDefault();
                if (identifier.test(text.trim())) navigate(pagePath("issues/" + text.trim().toUpperCase()));
                else open(list.items[0]);
              }
            }}
          />
        </label>
        <Checkbox label="In the archive" checked={archived} onChange={(on) => setQuery({ archived: on ? "true" : null })} />
      </div>
      <p class="visually-hidden" role="status">
        {words !== "" && !list.loading ? `${list.items.length}${list.more ? " or more" : ""} issues found` : ""}
      </p>
      {list.error && (
        <div class="pad">
          <ErrorPanel error={list.error} retry={list.reload} />
        </div>
      )}
      {list.loading && list.items.length === 0 && <Spinner />}
      {words === "" && (
        <Empty title="Type some words" icon="search">
          Each word is the beginning of a word in the issue. An identifier and Enter open the issue itself.
        </Empty>
      )}
      {words !== "" && !list.loading && !list.error && list.items.length === 0 && <Empty title="Nothing found." icon="search" />}
      {list.items.length > 0 && (
        <div class="issue-table">
          <VirtualList
            class="issue-lines"
            label="Found issues"
            items={list.items}
            rowHeight={lineHeight}
            keyOf={(row) => row.id}
            onEnd={list.loadMore}
            active={at}
            render={(row, index) => <IssueLine row={row} labels={labels} nameOf={names} current={row.id === focused || (at < 0 && index === 0)} focused={row.id === focused} onFocus={setFocused} />}
          />
        </div>
      )}
    </Page>
  );
}
