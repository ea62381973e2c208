// A table of a list that the API gives page by page, with its states: loading, empty, failed.

import type { ComponentChildren } from "preact";
import type { Pages } from "../reads";
import { Button, type Column, ErrorPanel, Spinner, Table } from "../ui";

interface PagedTableProps<Row> {
  label: string;
  pages: Pages<Row>;
  columns: Column<Row>[];
  rowKey(row: Row): string;
  empty: ComponentChildren;
}

export function PagedTable<Row>({ label, pages, columns, rowKey, empty }: PagedTableProps<Row>) {
  if (pages.error && pages.items.length === 0) return <ErrorPanel error={pages.error} retry={pages.reload} />;
  if (pages.loading && pages.items.length === 0) return <Spinner />;
  return (
    <>
      <Table label={label} columns={columns} rows={pages.items} rowKey={rowKey} empty={empty} />
      <MoreRows pages={pages} />
    </>
  );
}

/** The end of a list that has further pages. */
export function MoreRows<Row>({ pages }: { pages: Pages<Row> }) {
  return (
    <>
      {pages.error && pages.items.length > 0 && <ErrorPanel error={pages.error} retry={pages.reload} />}
      {pages.more && (
        <p class="more">
          <Button small busy={pages.loading} onClick={pages.loadMore}>
            Show more
          </Button>
        </p>
      )}
    </>
  );
}
