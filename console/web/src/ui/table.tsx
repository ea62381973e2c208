import type { ComponentChildren } from "preact";

export interface Column<Row> {
  key: string;
  title: string;
  render(row: Row): ComponentChildren;
  align?: "start" | "end";
  width?: string;
  /** Left out on narrow screens. */
  wide?: boolean;
}

interface TableProps<Row> {
  /** The table's name for assistive technology. */
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey(row: Row): string;
  empty?: ComponentChildren;
}

/** A table that scrolls sideways by itself where the screen is too narrow. */
export function Table<Row>({ label, columns, rows, rowKey, empty }: TableProps<Row>) {
  if (rows.length === 0 && empty) return <>{empty}</>;
  const classOf = (c: Column<Row>) => `${c.align === "end" ? "end" : ""} ${c.wide ? "wide-only" : ""}`.trim() || undefined;
  return (
    <div class="table-box" role="group" aria-label={label} tabIndex={0}>
      <table class="table" aria-label={label}>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.key} scope="col" class={classOf(c)} style={c.width ? { width: c.width } : undefined}>
                {c.title || <span class="visually-hidden">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((c) => (
                <td key={c.key} class={classOf(c)}>
                  {c.render(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
