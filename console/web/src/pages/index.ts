// The pages, by address. Each is a chunk of its own, loaded when it is first opened.

import type { ComponentType } from "preact";
import type { IconName } from "../ui/icons";
import { agentPages } from "./agents/routes";
import { operatorPages } from "./operator/routes";
import { workPages } from "./work/routes";
import { workspacePages } from "./workspace/routes";

export type SectionName = "Work" | "Agents" | "Workspace" | "Operator";

export interface PageRoute {
  /** Such as "/console/:slug/issues/:issue". */
  path: string;
  title: string;
  load(): Promise<{ default: ComponentType<any> }>;
  /** Its place in the sidebar; pages without are reached from others. */
  nav?: {
    section: SectionName;
    icon: IconName;
    /** Two keys that open it, such as "g i". */
    keys?: string;
    /** Only the operator sees it. */
    root?: boolean;
  };
}

export const pages: PageRoute[] = [...workPages, ...agentPages, ...workspacePages, ...operatorPages];
