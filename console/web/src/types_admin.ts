// The objects of the API that the pages about the workspace and the cluster use. docs/api.md
// describes them.

export interface WorkspaceRecord {
  id: string;
  slug: string;
  name: string;
  key: string | null;
  ownerId: string;
  defaultTeamId: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface Token {
  id: string;
  name: string;
  actorId: string;
  actorType: "user" | "agent";
  permissions: string;
  createdAt: string;
  createdById: string | null;
  expiresAt: string | null;
  lastUsedAt: string | null;
}

export interface CreatedToken extends Token {
  token: string;
}

export interface TeamMember {
  teamId: string;
  userId: string;
  createdAt: string;
}

export interface Webhook {
  id: string;
  url: string;
  description: string | null;
  events: string[];
  isActive: boolean;
  disabledReason: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface WebhookWithSecret extends Webhook {
  secret: string;
}

export interface WebhookDelivery {
  id: string;
  subscriptionId: string;
  eventId: string;
  eventType: string;
  eventSequence: number | null;
  status: "pending" | "succeeded" | "failed";
  attempts: number;
  lastStatusCode: number | null;
  lastError: string | null;
  lastAttemptAt: string | null;
  nextAttemptAt: string | null;
  createdAt: string;
  deliveredAt: string | null;
  finishedAt?: string | null;
}

export interface InboundSource {
  source: string;
  createdAt: string;
  updatedAt: string;
}

export interface InboundSecret {
  source: string;
  secret: string;
}

export interface InboundRoute {
  kind: "sms" | "vcs1";
  key: string;
  organizationId: string;
  status: "pending" | "active";
  createdAt: string;
}

export interface OAuthClient {
  id: string;
  name: string;
  permissions: string;
  redirectUris: string[];
  scopes: string[];
  createdAt: string;
}

export interface CreatedOAuthClient extends OAuthClient {
  clientId: string;
  clientSecret: string;
}

export interface SCIMConnection {
  connectionId: string;
  scopes: string[];
  status: "active" | "expired";
  createdAt: string;
  expiresAt: string;
}

export interface CreatedSCIMConnection {
  connectionId: string;
  provisioningDomainId: string;
  baseUrl: string;
  token: string;
}

export interface AuditEntry {
  id: string;
  at: string;
  action: string;
  actor: { id: string; type: string };
  target: { id: string; type: string };
  changes: Record<string, { from: unknown; to: unknown }>;
  requestId: string;
  address: string;
}

export interface Retention {
  closedIssues: "archive" | "delete";
  closedIssuesDays: number | null;
  deliveriesDays: number | null;
  endedSessionsDays: number | null;
}

export type NodeState = "alive" | "suspect" | "dead" | "draining" | "left";

export interface NodeStatus {
  name: string;
  state: NodeState;
  zone: string;
  http: string;
  peer: string;
  gossip: string;
  version: string;
  leads: number;
  replicas: number;
  note?: string;
}

export interface ShardStatus {
  id: number;
  leader: string;
  term: number;
  voters: string[];
  nonVoters: string[];
  applied: number;
  lag: number;
  failed?: { node: string; reason: string }[];
  differing?: string[];
}

export interface BackupStatus {
  to: string;
  everySeconds: number;
  lastName: string | null;
  lastAt: string | null;
  ageSeconds: number | null;
  failures: number;
  error: string | null;
}

export interface Topology {
  clusterId: string;
  nodes: NodeStatus[];
  shards: ShardStatus[];
  backup?: BackupStatus | null;
}

export interface DrainStart {
  node: string;
  moves: "replicas" | "leaderships";
}

/** The names of the limits of a workspace. Those in used are counted. */
export type LimitName = "issues" | "bytes" | "sessions" | "tokens" | "subscriptions" | "requestsPerSecond" | "createsPerSecond";

export interface LimitsAndUsage {
  limits: Record<LimitName, number | null>;
  used: Record<"issues" | "bytes" | "sessions" | "tokens" | "subscriptions", number>;
}

export interface WorkspaceOwner {
  owner: string;
  shard: number;
}

export interface ReadOnlyMode {
  readOnly: { reason: string; createdAt: string } | null;
}
