// Charts as SVG. Line charts have their numbers in a table below, for screen readers.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { A } from "../router";

export interface Line {
  name: string;
  values: number[];
  /** A line of a plan, drawn with dashes. */
  dashed?: boolean;
}

interface LineChartProps {
  label: string;
  /** The words under the horizontal axis, one for each value. */
  at: string[];
  lines: Line[];
  height?: number;
}

function niceMax(most: number): number {
  if (most <= 4) return 4;
  const size = 10 ** Math.floor(Math.log10(most));
  for (const step of [1, 2, 2.5, 5, 10]) if (step * size >= most) return step * size;
  return most;
}

function DataTable({ label, head, rows }: { label: string; head: string[]; rows: (string | number)[][] }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="chart-data" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show the numbers of “{label}”</summary>
      {open && (
        <div class="table-box" tabIndex={0} role="group" aria-label={label + ", numbers"}>
          <table class="table">
            <thead>
              <tr>
                {head.map((title) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row, i) => (
                <tr key={i}>
                  {row.map((cell, j) => (
                    <td key={j}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

export function LineChart({ label, at, lines, height = 220 }: LineChartProps) {
  const figure = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(720);
  useLayoutEffect(() => {
    // A chart is drawn in the pixels it has, so that its words keep their size.
    const measure = () => setWidth(Math.max(240, figure.current!.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(figure.current!);
    return () => observer.disconnect();
  }, []);
  const pad = { left: 40, right: 12, top: 12, bottom: 28 };
  const most = niceMax(Math.max(1, ...lines.flatMap((line) => line.values)));
  const x = (i: number) => pad.left + (at.length < 2 ? 0 : (i / (at.length - 1)) * (width - pad.left - pad.right));
  const y = (v: number) => height - pad.bottom - (v / most) * (height - pad.top - pad.bottom);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => part * most);
  const every = Math.max(1, Math.ceil(at.length / Math.max(2, Math.floor(width / 88))));
  return (
    <figure class="chart" ref={figure}>
      <svg viewBox={`0 0 ${width} ${height}`} height={height} role="img" aria-label={label}>
        {ticks.map((tick) => (
          <g key={tick}>
            <line class="chart-grid" x1={pad.left} x2={width - pad.right} y1={y(tick)} y2={y(tick)} />
            <text class="chart-text" x={pad.left - 6} y={y(tick) + 4} text-anchor="end">
              {Number.isInteger(tick) ? tick : ""}
            </text>
          </g>
        ))}
        {at.map((word, i) =>
          i % every === 0 ? (
            <text key={i} class="chart-text" x={x(i)} y={height - 8} text-anchor={i === 0 ? "start" : i === at.length - 1 ? "end" : "middle"}>
              {word}
            </text>
          ) : null,
        )}
        {lines.map((line, n) => (
          <g key={line.name} class={`series-${n % 4}`}>
            <polyline class="chart-line" points={line.values.map((v, i) => `${x(i)},${y(v)}`).join(" ")} stroke-dasharray={line.dashed ? "5 4" : undefined} />
            {line.values.length === 1 && <circle class="chart-dot" cx={x(0)} cy={y(line.values[0]!)} r="3" />}
          </g>
        ))}
      </svg>
      <figcaption class="chart-legend">
        {lines.map((line, n) => (
          <span key={line.name} class={`legend series-${n % 4}`}>
            <svg width="18" height="8" aria-hidden="true">
              <line class="chart-line" x1="0" x2="18" y1="4" y2="4" stroke-dasharray={line.dashed ? "5 4" : undefined} />
            </svg>
            {line.name}
          </span>
        ))}
      </figcaption>
      <DataTable label={label} head={["", ...lines.map((line) => line.name)]} rows={at.map((word, i) => [word, ...lines.map((line) => line.values[i] ?? "")])} />
    </figure>
  );
}

export interface Bar {
  name: string;
  value: number;
  /** A second number, shown behind the value. */
  note?: string;
  href?: string;
}

export function BarChart({ label, bars, unit = "" }: { label: string; bars: Bar[]; unit?: string }) {
  const most = Math.max(1, ...bars.map((bar) => bar.value));
  return (
    <figure class="bars" aria-label={label}>
      <ul class="bar-list">
        {bars.map((bar) => (
          <li key={bar.name} class="bar-row">
            <span class="bar-name clip" title={bar.name}>
              {bar.href ? <A href={bar.href}>{bar.name}</A> : bar.name}
            </span>
            <svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect class="bar-fill" width={Math.max(0.5, (bar.value / most) * 100)} height="10" />
            </svg>
            <span class="bar-value">
              {bar.value}
              {unit} {bar.note && <span class="muted">{bar.note}</span>}
            </span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** A small line without axes, as of the last minutes. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  const most = Math.max(1, ...values);
  const points = values.map((v, i) => `${(i / Math.max(1, values.length - 1)) * 100},${24 - (v / most) * 22}`).join(" ");
  return (
    <svg class="sparkline series-0" viewBox="0 0 100 26" preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline class="chart-line" points={points} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
