import type { PageRoute } from "../index";

export const workPages: PageRoute[] = [
  { path: "/console/:slug/issues", title: "Issues", load: () => import("./issues"), nav: { section: "Work", icon: "board", keys: "g i" } },
  { path: "/console/:slug/issues/:issue", title: "Issue", load: () => import("./issue") },
  { path: "/console/:slug/search", title: "Search", load: () => import("./search"), nav: { section: "Work", icon: "search", keys: "g s" } },
  { path: "/console/:slug/triage", title: "Triage", load: () => import("./triage"), nav: { section: "Work", icon: "triage", keys: "g t" } },
  { path: "/console/:slug/cycles", title: "Cycles", load: () => import("./cycles"), nav: { section: "Work", icon: "cycle", keys: "g c" } },
  { path: "/console/:slug/cycles/:cycle", title: "Cycle", load: () => import("./cycle") },
];
