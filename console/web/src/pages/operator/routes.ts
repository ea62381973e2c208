import type { PageRoute } from "../index";

export const operatorPages: PageRoute[] = [
  { path: "/console/cluster", title: "Cluster", load: () => import("./cluster"), nav: { section: "Operator", icon: "cluster", keys: "g o", root: true } },
];
