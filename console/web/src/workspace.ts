// The current workspace, and the small lists that every page needs: members, agents,
// labels, teams, projects, cycles. Each list is read once, when something first needs it.

import { createContext } from "preact";
import { useContext, useEffect, useMemo } from "preact/hooks";
import { api, asFailure, type Failure } from "./api";
import { makeStore, useStore, type Store } from "./store";
import type { Agent, Cycle, Label, Member, Project, Team } from "./types";

export interface Workspace {
  id: string;
  slug: string;
  name: string;
}

export const WorkspaceContext = createContext<Workspace | null>(null);

export function useWorkspace(): Workspace {
  const workspace = useContext(WorkspaceContext);
  if (workspace === null) throw new Error("no workspace on this page");
  return workspace;
}

let current: Workspace | null = null;

/** Changes the current workspace and forgets the lists of the former one. */
export function enter(workspace: Workspace | null): void {
  if (current?.id === workspace?.id) {
    current = workspace;
    return;
  }
  current = workspace;
  for (const list of Object.values(lists)) list.forget();
}

/** The path of the API under the current workspace: wsPath("/issues"). */
export function wsPath(rest = ""): string {
  return `/workspaces/${current?.id ?? ""}${rest}`;
}

/** The address of a page of the current workspace: pagePath("issues/ACME-1"). */
export function pagePath(rest: string): string {
  return `/console/${current?.slug ?? ""}/${rest}`;
}

/** The most entries that a list keeps: at 100 a page, ten requests. */
const mostPages = 10;

/** A list that could not be read is tried again after this many milliseconds, when something needs it. */
const retryAfter = 10_000;

class WorkspaceList<Item> {
  readonly items: Store<Item[]> = makeStore<Item[]>([]);
  readonly error: Store<Failure | null> = makeStore<Failure | null>(null);
  private state: "empty" | "reading" | "read" | "failed" = "empty";
  private failedAt = 0;
  private turn = 0;

  constructor(
    private path: string,
    private key: string,
  ) {}

  need(): void {
    if (!current) return;
    if (this.state === "empty" || (this.state === "failed" && Date.now() - this.failedAt > retryAfter)) void this.read();
  }

  forget(): void {
    this.turn++;
    this.state = "empty";
    this.items.set([]);
    this.error.set(null);
  }

  async read(): Promise<void> {
    const turn = ++this.turn;
    this.state = "reading";
    try {
      let all: Item[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < mostPages; page++) {
        const answer: any = await api.get<any>(wsPath(this.path), { limit: 100, cursor });
        if (turn !== this.turn) return;
        all = all.concat(answer[this.key]);
        cursor = answer.nextCursor;
        if (!cursor) break;
      }
      this.items.set(all);
      this.error.set(null);
      this.state = "read";
    } catch (error) {
      if (turn !== this.turn) return;
      this.error.set(asFailure(error));
      this.state = "failed";
      this.failedAt = Date.now();
    }
  }
}

const lists = {
  members: new WorkspaceList<Member>("/members", "members"),
  agents: new WorkspaceList<Agent>("/agents", "agents"),
  labels: new WorkspaceList<Label>("/labels", "labels"),
  teams: new WorkspaceList<Team>("/teams", "teams"),
  projects: new WorkspaceList<Project>("/projects", "projects"),
  cycles: new WorkspaceList<Cycle>("/cycles", "cycles"),
};

export type ListName = keyof typeof lists;

/** Reads a list again, after a page has changed it. */
export function refresh(name: ListName): void {
  void lists[name].read();
}

/** The entries of a list that were read so far, for texts outside of components. */
export function peek<Name extends ListName>(name: Name): ReturnType<(typeof lists)[Name]["items"]["get"]> {
  return lists[name].items.get() as ReturnType<(typeof lists)[Name]["items"]["get"]>;
}

function useList<Item>(list: WorkspaceList<Item>): Item[] {
  const items = useStore(list.items);
  useEffect(() => list.need());
  return items;
}

export const useMembers = (): Member[] => useList(lists.members);
export const useAgents = (): Agent[] => useList(lists.agents);
export const useLabels = (): Label[] => useList(lists.labels);
export const useTeams = (): Team[] => useList(lists.teams);
export const useProjects = (): Project[] => useList(lists.projects);
export const useCycles = (): Cycle[] => useList(lists.cycles);

/** The name of a member or agent, for use in pages that call useMembers and useAgents. */
export function nameOf(id: string | null | undefined): string {
  if (!id) return "Nobody";
  const member = lists.members.items.get().find((m) => m.userId === id);
  if (member) return member.name ?? member.email ?? "Member " + id.slice(-4);
  const agent = lists.agents.items.get().find((a) => a.id === id);
  if (agent) return agent.name;
  if (id === "root") return "Operator";
  return id.length > 12 ? "…" + id.slice(-6) : id;
}

/** Loads members and agents, and returns nameOf. */
export function useNames(): (id: string | null | undefined) => string {
  const members = useMembers();
  const agents = useAgents();
  // Another function when the lists change, so that components which keep it render again.
  return useMemo(() => (id) => nameOf(id), [members, agents]);
}
