// The cluster, for its operator: nodes, shards, fail-overs as they happen, tenants, backups.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, asFailure, type Failure, isAbort, useRead } from "../../api";
import { setQuery, useRoute } from "../../router";
import type { ReadOnlyMode, Topology } from "../../types_admin";
import { Badge, Button, Empty, ErrorPanel, Page, Section, Spinner, Tabs, Time } from "../../ui";
import { plural } from "../agents/session_text";
import { AuditList } from "../audit_list";
import { useEvery } from "../refresh";
import { useRights } from "../rights";
import { Backups } from "./backups";
import { Claims } from "./claims";
import { ClusterChanges } from "./cluster_changes";
import { addToHistory, beginHistory, type ClusterHistory } from "./cluster_history";
import { ClusterMap } from "./cluster_map";
import { ClusterNodes } from "./cluster_nodes";
import { endReadOnly, ReadOnlyDialog } from "./read_only";
import { Tenants } from "./tenants";

/** The cluster has no stream of events, so the page looks this often. */
const lookEvery = 2000;

interface Look {
  history: ClusterHistory | null;
  error: Failure | null;
}

function useCluster(): Look & { look(): void } {
  const [state, setState] = useState<Look>({ history: null, error: null });
  const running = useRef<AbortController | null>(null);
  const look = useCallback(() => {
    // A slow answer is waited for: during a fail-over looks must not pile up.
    if (running.current) return;
    const control = new AbortController();
    running.current = control;
    api
      .get<Topology>("/cluster", undefined, control.signal)
      .then(
        (topology) => {
          if (control.signal.aborted) return;
          const at = Date.now();
          setState((s) => ({ history: s.history ? addToHistory(s.history, topology, at) : beginHistory(topology, at), error: null }));
        },
        (error: unknown) => {
          if (!control.signal.aborted && !isAbort(error)) setState((s) => ({ ...s, error: asFailure(error) }));
        },
      )
      .finally(() => {
        if (running.current === control) running.current = null;
      });
  }, []);
  useEffect(() => {
    look();
    return () => running.current?.abort();
  }, [look]);
  useEvery(look, lookEvery);
  return { ...state, look };
}

function ReadOnly() {
  const mode = useRead<ReadOnlyMode>("/cluster/read-only");
  const [asks, setAsks] = useState(false);
  const now = mode.data?.readOnly ?? null;
  return (
    <Section
      title="Read-only mode"
      actions={
        now ? (
          <Button small icon="play" onClick={() => void endReadOnly("/cluster/read-only").then((ended) => ended && mode.reload())}>
            End
          </Button>
        ) : (
          <Button small icon="pause" onClick={() => setAsks(true)}>
            Make the service read-only
          </Button>
        )
      }
    >
      {mode.error ? (
        <ErrorPanel error={mode.error} retry={mode.reload} />
      ) : now ? (
        <p class="notice notice-warning">
          The service is read-only since <Time at={now.createdAt} />: {now.reason}
        </p>
      ) : (
        <p class="muted">The service takes changes.</p>
      )}
      {asks && (
        <ReadOnlyDialog
          what="the service"
          path="/cluster/read-only"
          onClose={() => setAsks(false)}
          onDone={() => {
            setAsks(false);
            mode.reload();
          }}
        />
      )}
    </Section>
  );
}

const views = ["map", "tenants", "claims", "audit"] as const;

const viewTitle = { map: "Nodes and shards", tenants: "Tenants", claims: "Claims", audit: "Audit" };

function ClusterView() {
  const { history, error, look } = useCluster();
  const { query } = useRoute();
  const view = views.find((v) => v === query.view) ?? "map";
  if (!history) return <Page title="Cluster">{error ? <ErrorPanel error={error} retry={look} /> : <Spinner />}</Page>;
  const { topology } = history;
  const down = topology.shards.filter((shard) => shard.leader === "").length;
  const sick = topology.nodes.filter((node) => node.state === "dead" || node.state === "suspect").length;
  return (
    <Page
      title="Cluster"
      subtitle={
        <span class="badges">
          <span>{`${plural(topology.nodes.length, "node")}, ${plural(topology.shards.length, "shard")}`}</span>
          {down > 0 ? <Badge kind="danger">{`${plural(down, "shard")} without a leader`}</Badge> : <Badge kind="success">Every shard has a leader</Badge>}
          {sick > 0 && <Badge kind="warning">{sick === 1 ? "1 node does not answer" : `${sick} nodes do not answer`}</Badge>}
          <code>{topology.clusterId}</code>
        </span>
      }
    >
      {error && <ErrorPanel error={error} retry={look} />}
      <Tabs
        label="Parts of the cluster"
        active={view}
        onChange={(key) => setQuery({ view: key === "map" ? null : key, action: null, actorId: null, targetId: null, from: null, to: null })}
        tabs={views.map((key) => ({ key, title: viewTitle[key] }))}
      >
        {view === "map" && (
          <>
            <ClusterNodes nodes={topology.nodes} onChanged={look} />
            <div class="columns">
              <div class="column-main">
                <ClusterMap history={history} />
              </div>
              <div class="column-side">
                <ClusterChanges history={history} />
                <Backups backup={topology.backup} />
                <ReadOnly />
              </div>
            </div>
          </>
        )}
        {view === "tenants" && <Tenants topology={topology} />}
        {view === "claims" && <Claims />}
        {view === "audit" && <AuditList path="/cluster/audit" />}
      </Tabs>
    </Page>
  );
}

export default function ClusterPage() {
  if (useRights().root) return <ClusterView />;
  return (
    <Page title="Cluster">
      <Empty title="Only the operator sees the cluster." icon="cluster">
        Sign in with the operator's token of the service.
      </Empty>
    </Page>
  );
}
