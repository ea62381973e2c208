import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

interface PageProps {
  title: string;
  /** Buttons at the upper right. */
  actions?: ComponentChildren;
  /** A line under the title. */
  subtitle?: ComponentChildren;
  children: ComponentChildren;
  /** The page fills the window, and its parts scroll. */
  fill?: boolean;
  /** The heading, where it is more than the title's words. */
  heading?: ComponentChildren;
}

/** The frame of each page: its one heading, its buttons, its content. */
export function Page({ title, actions, subtitle, children, fill, heading }: PageProps) {
  useEffect(() => {
    document.title = title + " · Switchyard";
  }, [title]);
  return (
    <div class={fill ? "page page-fill" : "page"}>
      <header class="page-head">
        <div class="grow">
          <h1>{heading ?? title}</h1>
          {subtitle && <p class="page-subtitle">{subtitle}</p>}
        </div>
        {actions && <div class="page-actions">{actions}</div>}
      </header>
      <div class="page-body">{children}</div>
    </div>
  );
}

/** A part of a page with a heading of its own. */
export function Section({ title, actions, children }: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="section" aria-label={title}>
      <div class="section-head">
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}
