// The issues of the workspace, as a board or a list; the choice and the filters are in the
// address.

import { useKeys } from "../../keys";
import { setQuery, useRoute } from "../../router";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { Page } from "../../ui/page";
import { Board } from "./board";
import { FilterBar } from "./filter_bar";
import { activeFilters, suggested } from "./filters";
import { IssueTable } from "./issue_table";
import { openQuickCreate } from "./quick_create";

export default function Issues() {
  const { query } = useRoute();
  const view = query.view === "list" ? "list" : "board";
  const active = activeFilters(query);
  useKeys("Issues", {
    b: { help: "Show the board", run: () => setQuery({ view: "board" }) },
    l: { help: "Show the list", run: () => setQuery({ view: "list" }) },
    f: { help: "Search in these issues", run: () => document.querySelector<HTMLElement>(".search-input")?.focus() },
  });
  return (
    <Page
      title="Issues"
      fill
      actions={
        <>
          <div class="switch" role="group" aria-label="Layout">
            <button type="button" class="switch-button" aria-pressed={view === "board"} onClick={() => setQuery({ view: "board" })}>
              <Icon name="board" /> Board
            </button>
            <button type="button" class="switch-button" aria-pressed={view === "list"} onClick={() => setQuery({ view: "list" })}>
              <Icon name="list" /> List
            </button>
          </div>
          <Button kind="primary" icon="plus" onClick={() => openQuickCreate(suggested(active))}>
            New issue
          </Button>
        </>
      }
    >
      <FilterBar />
      {view === "board" ? <Board /> : <IssueTable active={active} />}
    </Page>
  );
}
