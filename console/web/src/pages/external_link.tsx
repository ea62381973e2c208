// Links to other sites that agents and providers report.

import type { ComponentChildren } from "preact";

/** Returns an address if a link may lead there: other schemes could run code in the page. */
export function webAddress(text: string | null | undefined): string | null {
  if (!text) return null;
  try {
    const { protocol, href } = new URL(text);
    return protocol === "https:" || protocol === "http:" ? href : null;
  } catch {
    return null;
  }
}

export function ExternalLink({ href, children }: { href: string | null; children: ComponentChildren }) {
  const address = webAddress(href);
  if (!address) return <span>{children}</span>;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
