package consoletest

import "testing"

// clusterPage opens the operator's page of the cluster.
func clusterPage(t *testing.T) *visitor {
	t.Helper()
	ctx := limited(t)
	s := onboarded(ctx, t)
	v := signedIn(ctx, t, s, rootToken)
	v.open("/console/cluster")
	v.the("heading", "Shards").appears()
	return v
}

// changesCluster has a statement of JavaScript change the page's answers to GET /cluster, which it has as cluster.
func (v *visitor) changesCluster(statement string) {
	v.t.Helper()
	eval[bool](v, `(() => {
		const real = window.fetch;
		window.fetch = async (path, ...rest) => {
			const answer = await real(path, ...rest);
			if (path !== "/cluster") return answer;
			const cluster = await answer.json();
			`+statement+`
			return new Response(JSON.stringify(cluster), { status: 200, headers: { "Content-Type": "application/json" } });
		};
		return true;
	})()`)
}

// TestCluster_ReplicasThatDiffer: the operator sees in the map of shards which replica has other rows than the
// others, and that it leads. No replica differs here, so the page is given an answer that says so.
func TestCluster_ReplicasThatDiffer(t *testing.T) {
	t.Parallel()
	v := clusterPage(t)
	const marked = `[...document.querySelectorAll(".map tbody tr")].map((row) => row.querySelector(".map-differing")?.title ?? "").filter(Boolean)`
	if got := eval[[]string](v, marked); len(got) != 0 {
		t.Errorf("replicas that differ before: %q", got)
	}
	v.changesCluster(`cluster.shards[2].differing = [cluster.shards[2].leader];`)
	v.holds("the replica is marked", `JSON.stringify(`+marked+`) === '["node-1 leads, and has other rows than the others"]'`)
}

// TestCluster_ManyShards: of many shards the map has those that lack something, and the others when they are asked for.
// The page is given an answer with more shards than the node has.
func TestCluster_ManyShards(t *testing.T) {
	t.Parallel()
	v := clusterPage(t)
	v.changesCluster(`
		const one = cluster.shards[1];
		cluster.shards = Array.from({ length: 129 }, (_, id) => ({ ...one, id, applied: 1 }));
		cluster.shards[77].leader = "";
		cluster.shards[101].nonVoters = ["node-9"];
		cluster.nodes.push({ ...cluster.nodes[0], name: "node-9" });`)
	const rows = `[...document.querySelectorAll(".map tbody th")].map((cell) => cell.textContent).join(" ")`
	v.holds("the shards that lack something are shown", rows+` === "77 101"`)
	v.the("button", "Show all 129").click()
	v.holds("all shards are shown", `document.querySelectorAll(".map tbody tr").length === 129`)
	v.the("button", "Show fewer").click()
	v.holds("few shards are shown again", rows+` === "77 101"`)
}
