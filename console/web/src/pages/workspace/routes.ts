import type { PageRoute } from "../index";

const at = (page: string) => `/console/:slug/settings/${page}`;

export const workspacePages: PageRoute[] = [
  { path: at("members"), title: "Members", load: () => import("./members"), nav: { section: "Workspace", icon: "people", keys: "g m" } },
  { path: at("teams"), title: "Teams", load: () => import("./teams"), nav: { section: "Workspace", icon: "people" } },
  { path: at("labels"), title: "Labels", load: () => import("./labels"), nav: { section: "Workspace", icon: "list" } },
  { path: at("projects"), title: "Projects", load: () => import("./projects"), nav: { section: "Workspace", icon: "board" } },
  { path: at("tokens"), title: "Tokens", load: () => import("./tokens"), nav: { section: "Workspace", icon: "key", keys: "g k" } },
  { path: at("webhooks"), title: "Webhooks", load: () => import("./webhooks"), nav: { section: "Workspace", icon: "out" } },
  { path: at("inbound"), title: "Inbound", load: () => import("./inbound"), nav: { section: "Workspace", icon: "triage" } },
  { path: at("oauth"), title: "OAuth clients", load: () => import("./oauth"), nav: { section: "Workspace", icon: "key" } },
  { path: at("scim"), title: "SCIM", load: () => import("./scim"), nav: { section: "Workspace", icon: "people" } },
  { path: at("audit"), title: "Audit", load: () => import("./audit"), nav: { section: "Workspace", icon: "file" } },
  { path: at("retention"), title: "Retention", load: () => import("./retention"), nav: { section: "Workspace", icon: "clock" } },
  { path: at("usage"), title: "Usage and budgets", load: () => import("./usage"), nav: { section: "Workspace", icon: "queue" } },
];
