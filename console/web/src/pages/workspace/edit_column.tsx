// The last column of a list whose rows are changed in a dialog: its buttons.

import { Button, type Column } from "../../ui";

/** The column with the buttons of a row. It is empty for people who may not change the list. */
export function editColumn<Item>(write: boolean, change: (item: Item) => void, remove: (item: Item) => Promise<void>): Column<Item> {
  return {
    key: "acts",
    title: "",
    align: "end",
    render: (item) =>
      write && (
        <span class="row row-end">
          <Button small onClick={() => change(item)}>
            Change
          </Button>
          <Button small kind="quiet" onClick={() => void remove(item)}>
            Delete
          </Button>
        </span>
      ),
  };
}
