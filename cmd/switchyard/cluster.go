package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"switchyard/actors/tracker"
	"switchyard/httpapi"
)

type clusterCmd struct {
	Status  clusterStatusCmd  `cmd:"" help:"Show nodes and shards."`
	Top     clusterTopCmd     `cmd:"" help:"Show nodes, shards with trouble, rates and the busiest and slowest workspaces, again and again."`
	Audit   clusterAuditCmd   `cmd:"" help:"Print the audit of the cluster or of a workspace, an entry of JSON in each line."`
	Drain   clusterDrainCmd   `cmd:"" help:"Move leaderships and replicas off a node, and wait until it is empty."`
	Undrain clusterUndrainCmd `cmd:"" help:"Let a drained or removed node take work again."`
	Remove  clusterRemoveCmd  `cmd:"" help:"Take a node out of the cluster, running or dead; its replicas are made anew elsewhere."`
}

// clusterFlags say whom the cluster's commands ask, and as whom.
type clusterFlags struct {
	URL       string `name:"url" help:"Any node of the cluster." default:"http://127.0.0.1:8080"`
	TokenFile string `help:"File with the operator's token; SWITCHYARD_ROOT_TOKEN holds the token itself." placeholder:"FILE"`
}

// connect makes the client, and a context that ends with Ctrl-C.
func (f clusterFlags) connect() (*clusterClient, context.Context, context.CancelFunc, error) {
	token, err := rootToken(f.TokenFile)
	if err != nil {
		return nil, nil, nil, err
	}
	c, err := newClusterClient(f.URL, token)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := interruptible()
	return c, ctx, cancel, nil
}

type clusterStatusCmd struct {
	clusterFlags
	JSON   bool `name:"json" env:"-" help:"Print what GET /cluster answers."`
	Shards bool `env:"-" help:"List all shards, not only those that lack something."`
}

func (s clusterStatusCmd) Run() error {
	c, ctx, cancel, err := s.connect()
	if err != nil {
		return err
	}
	defer cancel()
	return s.run(ctx, c, os.Stdout)
}

func (s clusterStatusCmd) run(ctx context.Context, c *clusterClient, out io.Writer) error {
	raw, err := c.do(ctx, "GET", "/cluster")
	if err != nil {
		return err
	}
	if s.JSON {
		_, err := fmt.Fprintf(out, "%s\n", raw)
		return err
	}
	var t httpapi.Topology
	if err := json.Unmarshal(raw, &t); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	return writeTopology(out, &t, s.Shards)
}

// formatState says which format the cluster writes and, while some nodes know a newer one, which
// nodes hold it back. It is empty for a service that does not tell its format.
func formatState(t *httpapi.Topology) string {
	if t.Format == 0 {
		return ""
	}
	state := fmt.Sprintf(", format %d", t.Format)
	newest, behind := t.Format, []string{}
	for _, n := range t.Nodes {
		newest = max(newest, n.NewestFormat)
		if n.NewestFormat <= t.Format {
			behind = append(behind, n.Name)
		}
	}
	switch {
	case newest == t.Format:
		return state
	case len(behind) == 0:
		return fmt.Sprintf("%s (going over to %d)", state, newest)
	}
	return fmt.Sprintf("%s (not %d: %s)", state, newest, strings.Join(behind, ", "))
}

// writeTopology prints the cluster as two tables: its nodes, and the shards that lack something, or all of them.
func writeTopology(out io.Writer, t *httpapi.Topology, allShards bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "cluster %s: %s, %s%s\n\n", t.ClusterID, plural(len(t.Nodes), "node"), plural(len(t.Shards), "shard"), formatState(t))
	_, _ = fmt.Fprintln(w, "NODE\tSTATE\tZONE\tLEADS\tREPLICAS\tHTTP\tPEER\tGOSSIP\tVERSION")
	for _, n := range t.Nodes {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", n.Name, n.State, orDash(n.Zone), n.Leads, n.Replicas, orDash(n.HTTP), orDash(n.Peer), orDash(n.Gossip), orDash(n.Version))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := writeShards(out, t, allShards); err != nil {
		return err
	}
	if b := t.Backup; b != nil {
		_, _ = fmt.Fprintf(out, "\nbackups to %s every %s: %s\n", b.To, time.Duration(b.EverySeconds)*time.Second, backupState(b))
		if b.Log != nil {
			_, _ = fmt.Fprintf(out, "logs are archived every %s: %s\n", time.Duration(b.Log.EverySeconds)*time.Second, backupLogState(b.Log))
		}
	}
	for _, n := range t.Nodes {
		if n.Note != "" {
			_, _ = fmt.Fprintf(out, "\n%s: %s\n", n.Name, n.Note)
		}
	}
	for _, s := range t.Shards {
		for _, r := range s.Failed {
			_, _ = fmt.Fprintf(out, "\nshard %d on %s has failed and is being replaced: %s\n", s.ID, r.Node, r.Reason)
		}
		if len(s.Differing) > 0 {
			_, _ = fmt.Fprintf(out, "\nshard %d has other rows on %s than on the other nodes: see \"Replicas that differ\" in docs/operations.md\n", s.ID, strings.Join(s.Differing, ", "))
		}
	}
	return nil
}

// listedShards is the most shards that are listed if not all are asked for.
const listedShards = 20

// writeShards prints how many shards lack nothing, and a table of the others, or of all.
func writeShards(out io.Writer, t *httpapi.Topology, all bool) error {
	voters, lag, down := 0, uint64(0), map[string]bool{}
	for i := range t.Shards {
		voters, lag = max(voters, len(t.Shards[i].Voters)), max(lag, t.Shards[i].Lag)
	}
	for _, n := range t.Nodes {
		down[n.Name] = n.State == "dead" || n.State == "left"
	}
	lacking := slices.DeleteFunc(slices.Clone(t.Shards), func(s httpapi.ShardStatus) bool { return lacksNothing(&s, voters, down) })
	// Those without a leader come first.
	slices.SortStableFunc(lacking, func(a, b httpapi.ShardStatus) int { return min(1, len(a.Leader)) - min(1, len(b.Leader)) })
	_, _ = fmt.Fprintf(out, "\n%d of %s with a leader and %s that %s not dead; the slowest replica is %s behind\n",
		len(t.Shards)-len(lacking), plural(len(t.Shards), "shard"), plural(voters, "voter"), map[bool]string{true: "is", false: "are"}[voters == 1], tracker.Counted(lag, "entry", "entries"))
	listed := lacking[:min(len(lacking), listedShards)]
	if all {
		listed = t.Shards
	}
	if len(listed) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nSHARD\tLEADER\tTERM\tAPPLIED\tLAG\tVOTERS\tNON-VOTERS")
	for _, s := range listed {
		_, _ = fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%s\t%s\n", s.ID, orDash(s.Leader), s.Term, s.Applied, s.Lag, orDash(strings.Join(s.Voters, ",")), orDash(strings.Join(s.NonVoters, ",")))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if more := len(lacking) - len(listed); more > 0 {
		_, _ = fmt.Fprintf(out, "and %d more: --shards lists all\n", more)
	}
	return nil
}

// manyEntries is the lag of a replica above which its shard is listed, as in the console.
const manyEntries = 1000

// lacksNothing reports whether a shard has a leader, as many voters as any shard, all of them on nodes that are not
// down, and only replicas that follow.
func lacksNothing(s *httpapi.ShardStatus, voters int, down map[string]bool) bool {
	return s.Leader != "" && len(s.Voters) == voters && len(s.NonVoters) == 0 && s.Lag <= manyEntries && len(s.Failed) == 0 && len(s.Differing) == 0 &&
		!slices.ContainsFunc(s.Voters, func(node string) bool { return down[node] })
}

// backupState says how the scheduled backups stand.
func backupState(b *httpapi.BackupStatus) string {
	text := "there is none yet"
	if b.LastName != nil && b.AgeSeconds != nil {
		text = fmt.Sprintf("%s is the newest, %s old", *b.LastName, time.Duration(*b.AgeSeconds)*time.Second)
	}
	if b.Error != nil {
		text += fmt.Sprintf("; %s since: %s", plural(b.Failures, "failure"), *b.Error)
	}
	return text
}

// backupLogState says how the archived logs stand.
func backupLogState(l *httpapi.BackupLogStatus) string {
	text := "none is yet"
	if l.ReachesAt != nil && l.AgeSeconds != nil {
		text = fmt.Sprintf("they have everything but the last %s", time.Duration(*l.AgeSeconds)*time.Second)
	}
	if len(l.Gaps) > 0 {
		text += fmt.Sprintf("; entries are missing of shards %v until the next backup", l.Gaps)
	}
	if l.Error != nil {
		text += fmt.Sprintf("; %s since: %s", plural(l.Failures, "failure"), *l.Error)
	}
	return text
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func plural(n int, noun string) string { return tracker.Counted(n, noun, noun+"s") }

type clusterDrainCmd struct {
	clusterFlags
	Node    string        `arg:"" help:"Name of the node."`
	NoWait  bool          `help:"Return once the drain has begun."`
	Timeout time.Duration `help:"Stop waiting after this time; the drain continues." default:"30m"`
}

func (d clusterDrainCmd) Run() error {
	c, ctx, cancel, err := d.connect()
	if err != nil {
		return err
	}
	defer cancel()
	return d.run(ctx, c, newProgress(os.Stdout))
}

type clusterUndrainCmd struct {
	clusterFlags
	Node string `arg:"" help:"Name of the node."`
}

func (u clusterUndrainCmd) Run() error {
	c, ctx, cancel, err := u.connect()
	if err != nil {
		return err
	}
	defer cancel()
	if _, err := c.do(ctx, "POST", nodePath(u.Node)+"/undrain"); err != nil {
		return err
	}
	fmt.Printf("%s accepts work again; the cluster moves some back to it gradually.\n", u.Node)
	return nil
}

type clusterRemoveCmd struct {
	clusterFlags
	Node string `arg:"" help:"Name of the node."`
}

func (r clusterRemoveCmd) Run() error {
	c, ctx, cancel, err := r.connect()
	if err != nil {
		return err
	}
	defer cancel()
	if _, err := c.do(ctx, "DELETE", nodePath(r.Node)); err != nil {
		return err
	}
	fmt.Printf("%s is removed: its replicas are being rebuilt on the other nodes. If it runs, it ends when none of them needs it any more; until then `switchyard cluster undrain %s` takes it back.\n", r.Node, r.Node)
	return nil
}
