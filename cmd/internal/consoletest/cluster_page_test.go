package consoletest

import "testing"

// TestCluster_ReplicasThatDiffer: the operator sees in the map of shards which replica has other rows than the
// others, and that it leads. No replica differs here, so the page is given an answer that says so.
func TestCluster_ReplicasThatDiffer(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	v := signedIn(ctx, t, s, rootToken)
	v.open("/console/cluster")
	v.the("heading", "Shards").appears()
	const marked = `[...document.querySelectorAll(".map tbody tr")].map((row) => row.querySelector(".map-differing")?.title ?? "").filter(Boolean)`
	if got := eval[[]string](v, marked); len(got) != 0 {
		t.Errorf("replicas that differ before: %q", got)
	}
	eval[bool](v, `(() => {
		const real = window.fetch;
		window.fetch = async (path, ...rest) => {
			const answer = await real(path, ...rest);
			if (path !== "/cluster") return answer;
			const cluster = await answer.json();
			cluster.shards[2].differing = [cluster.shards[2].leader];
			return new Response(JSON.stringify(cluster), { status: 200, headers: { "Content-Type": "application/json" } });
		};
		return true;
	})()`)
	v.holds("the replica is marked", `JSON.stringify(`+marked+`) === '["node-1 leads, and has other rows than the others"]'`)
}
