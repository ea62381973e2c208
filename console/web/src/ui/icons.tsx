// The icons, as SVG paths on a grid of 16 by 16. They are decoration: the words beside
// them, or the label of their button, say the same.

const paths = {
  board: "M2 3h3v10H2zM6.5 3h3v7h-3zM11 3h3v4h-3z",
  list: "M2 4h12M2 8h12M2 12h12",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5 14 14",
  triage: "M2 9h3.5l1 2h3l1-2H14M2 9l2-6h8l2 6v4H2z",
  cycle: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3",
  queue: "M2 3h12v3H2zM2 8h12v3H2zM2 13.5h12",
  inbox: "M2 4h12v9H2zM2 4l6 5 6-5",
  agent: "M4 6h8v7H4zM8 6V3M6 9h.01M10 9h.01M2 9v2M14 9v2",
  settings: "M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4",
  cluster: "M8 2v3M3 11V8h10v3M8 5v3M6.5 2h3M2 11h2.5v3H2zM11.5 11H14v3h-2.5zM6.8 11h2.4v3H6.8z",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.5 6.5 12 13 4.5",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4 6 8l4 4",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  menu: "M2 4h12M2 8h12M2 12h12",
  link: "M6.5 9.5l3-3M7 5l1.5-1.5a2.5 2.5 0 0 1 4 4L11 9M9 11l-1.5 1.5a2.5 2.5 0 0 1-4-4L5 7",
  edit: "M3 13l.8-3L11 2.8 13.2 5 6 12.2z",
  trash: "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5 5 13.5h6l.5-9",
  filter: "M2 3h12l-4.5 5.5V13L6.5 11.5v-3z",
  sun: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  clock: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 5v3.2l2 1.3",
  comment: "M2.5 3h11v8H7l-3 2.5V11H2.5z",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  warning: "M8 2.5 14.5 13.5h-13zM8 6.5v3.2M8 11.7h.01",
  play: "M5 3l8 5-8 5z",
  pause: "M5 3v10M11 3v10",
  refresh: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  people: "M6 3a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM1.5 13.5c0-3 9-3 9 0M11 4a2 2 0 0 1 0 4M12.5 10c1.4.5 2 1.5 2 3.5",
  out: "M9 3h4v10H9M7 5 4 8l3 3M4 8h6",
  key: "M10 3a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8 8l-5 5M4.5 11.5 6 13",
};

export type IconName = keyof typeof paths;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
