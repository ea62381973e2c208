import type { ComponentType } from "preact";
import type { PageRoute } from "../index";

type Chunk = typeof import("./chunk");

/** Returns the way to load one page of the chunk. */
function chunk(pick: (chunk: Chunk) => ComponentType): PageRoute["load"] {
  return () => import("./chunk").then((loaded) => ({ default: pick(loaded) }));
}

export const agentPages: PageRoute[] = [
  { path: "/console/:slug/queue", title: "Queue", load: chunk((c) => c.queue), nav: { section: "Agents", icon: "queue", keys: "g q" } },
  { path: "/console/:slug/inbox", title: "Inbox", load: chunk((c) => c.inbox), nav: { section: "Agents", icon: "inbox", keys: "g n" } },
  { path: "/console/:slug/agents", title: "Agents", load: chunk((c) => c.agents), nav: { section: "Agents", icon: "agent", keys: "g a" } },
  { path: "/console/:slug/agents/:agent", title: "Agent", load: chunk((c) => c.agent) },
  { path: "/console/:slug/sessions/:session", title: "Session", load: chunk((c) => c.session) },
];
