import type { ComponentType } from "preact";
import type { PageRoute } from "../index";

type Chunk = typeof import("./chunk");

/** Returns the way to load one page of the chunk. */
function chunk(pick: (chunk: Chunk) => ComponentType): PageRoute["load"] {
  return () => import("./chunk").then((loaded) => ({ default: pick(loaded) }));
}

const at = (page: string) => `/console/:slug/settings/${page}`;

export const workspacePages: PageRoute[] = [
  { path: at("members"), title: "Members", load: chunk((c) => c.members), nav: { section: "Workspace", icon: "people", keys: "g m" } },
  { path: at("teams"), title: "Teams", load: chunk((c) => c.teams), nav: { section: "Workspace", icon: "people" } },
  { path: at("labels"), title: "Labels", load: chunk((c) => c.labels), nav: { section: "Workspace", icon: "list" } },
  { path: at("projects"), title: "Projects", load: chunk((c) => c.projects), nav: { section: "Workspace", icon: "board" } },
  { path: at("tokens"), title: "Tokens", load: chunk((c) => c.tokens), nav: { section: "Workspace", icon: "key", keys: "g k" } },
  { path: at("webhooks"), title: "Webhooks", load: chunk((c) => c.webhooks), nav: { section: "Workspace", icon: "out" } },
  { path: at("inbound"), title: "Inbound", load: chunk((c) => c.inbound), nav: { section: "Workspace", icon: "triage" } },
  { path: at("oauth"), title: "OAuth clients", load: chunk((c) => c.oauth), nav: { section: "Workspace", icon: "key" } },
  { path: at("scim"), title: "SCIM", load: chunk((c) => c.scim), nav: { section: "Workspace", icon: "people" } },
  { path: at("audit"), title: "Audit", load: chunk((c) => c.audit), nav: { section: "Workspace", icon: "file" } },
  { path: at("retention"), title: "Retention", load: chunk((c) => c.retention), nav: { section: "Workspace", icon: "clock" } },
  { path: at("usage"), title: "Usage and budgets", load: chunk((c) => c.usage), nav: { section: "Workspace", icon: "queue" } },
];
