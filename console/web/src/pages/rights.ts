// The caller's rights, so that a page offers only the acts that the service would accept. The
// service decides in any case; a refusal is shown with its hint.

import { useSession } from "../session";
import { useMembers } from "../workspace";

export interface Rights {
  /** The operator, with the root token. */
  root: boolean;
  /** May read everything that the actor sees, not only issues or sessions. */
  read: boolean;
  /** May change settings of the workspace. */
  admin: boolean;
  /** May change issues, teams, labels and projects. */
  write: boolean;
  /** May cancel, retry and release sessions. */
  sessions: boolean;
  /** May reply to sessions: people only. */
  reply: boolean;
  /** May publish and discard drafts. */
  decide: boolean;
}

export function useRights(): Rights {
  const session = useSession();
  const members = useMembers();
  if (!session) return { root: false, read: false, admin: false, write: false, sessions: false, reply: false, decide: false };
  const root = session.kind === "root";
  const words = session.permissions.split(",").map((word) => word.trim());
  const has = (...any: string[]) => root || any.some((word) => words.includes(word));
  // The session names one role, and a person may have another one in this workspace.
  const role = members.find((m) => m.userId === session.actorId)?.role ?? session.role;
  const adminRole = root || role === "owner" || role === "admin" || session.actorType === "agent";
  const sessions = has("admin", "write", "sessions:write");
  return {
    root,
    read: has("admin", "write", "read"),
    admin: adminRole && has("admin"),
    write: has("admin", "write"),
    sessions,
    reply: sessions && session.actorType !== "agent",
    decide: has("admin", "write", "issues:write"),
  };
}
