// Addresses of pages, by the History API.

import { createContext, type ComponentChildren, type JSX } from "preact";
import { useContext } from "preact/hooks";
import { makeStore, useStore } from "./store";

export interface Route {
  path: string;
  params: Record<string, string>;
  query: Record<string, string>;
}

const base = "/console";

function here(): { path: string; search: string } {
  return { path: location.pathname, search: location.search };
}

const place = makeStore(here());

/** The parts of the address that the shown page's pattern names. app.tsx provides them. */
export const Params = createContext<Record<string, string>>({});

addEventListener("popstate", () => place.set(here()));

/** Goes to a page of the console, such as "/console/acme/issues?view=board". */
export function navigate(path: string, opts: { replace?: boolean } = {}): void {
  if (opts.replace) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  place.set(here());
}

export function useRoute(): Route {
  const { path, search } = useStore(place);
  const params = useContext(Params);
  return { path, params, query: Object.fromEntries(new URLSearchParams(search)) };
}

/** Changes parts of the query in place; null and "" remove one. */
export function setQuery(patch: Record<string, string | null | undefined>, opts: { push?: boolean } = {}): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const path = location.pathname + (text === "" ? "" : "?" + text);
  if (opts.push) history.pushState(null, "", path);
  else history.replaceState(null, "", path);
  place.set(here());
}

/** Matches a path against a pattern such as "/console/:slug/issues/:issue"; null where it differs. */
export function matchPath(pattern: string, path: string): Record<string, string> | null {
  const want = pattern.split("/").filter(Boolean);
  const got = path.split("/").filter(Boolean);
  if (want.length !== got.length) return null;
  const out: Record<string, string> = {};
  for (let i = 0; i < want.length; i++) {
    const part = want[i]!;
    if (!part.startsWith(":")) {
      if (part !== got[i]) return null;
      continue;
    }
    try {
      out[part.slice(1)] = decodeURIComponent(got[i]!);
    } catch {
      return null;
    }
  }
  return out;
}

type LinkProps = Omit<JSX.AnchorHTMLAttributes<HTMLAnchorElement>, "href"> & { href: string; children?: ComponentChildren };

/** A link; one to a page of the console changes the page without a reload. */
export function A({ href, onClick, ...rest }: LinkProps) {
  const click = (event: JSX.TargetedMouseEvent<HTMLAnchorElement>) => {
    onClick?.(event as any);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (rest.target && rest.target !== "_self") return;
    if (!href.startsWith(base)) return;
    event.preventDefault();
    navigate(href);
  };
  return <a href={href} onClick={click} {...rest} />;
}
