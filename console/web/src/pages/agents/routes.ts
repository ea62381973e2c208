import type { PageRoute } from "../index";

export const agentPages: PageRoute[] = [
  { path: "/console/:slug/queue", title: "Queue", load: () => import("./queue"), nav: { section: "Agents", icon: "queue", keys: "g q" } },
  { path: "/console/:slug/inbox", title: "Inbox", load: () => import("./inbox"), nav: { section: "Agents", icon: "inbox", keys: "g n" } },
  { path: "/console/:slug/agents", title: "Agents", load: () => import("./agents"), nav: { section: "Agents", icon: "agent", keys: "g a" } },
  { path: "/console/:slug/agents/:agent", title: "Agent", load: () => import("./agent") },
  { path: "/console/:slug/sessions/:session", title: "Session", load: () => import("./session") },
];
