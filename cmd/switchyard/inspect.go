package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"switchyard/cluster"
	"switchyard/storage"
)

type inspectCmd struct {
	Data        string `help:"Directory of the node's state." default:"./data"`
	Fingerprint bool   `help:"Read every row and print what replicas of a shard can be compared by."`
}

func (c inspectCmd) Run() error {
	ctx, cancel := interruptible()
	defer cancel()
	store, err := openStopped(c.Data)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	seen, err := cluster.Inspect(store)
	if err != nil {
		return err
	}
	workspaces := map[storage.Shard]int{}
	err = storage.NewWalk(store.State()).Workspaces(func(v *storage.View) (bool, error) {
		workspaces[v.Shard()]++
		return true, nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("cluster %s, node %s\n\n", seen.Cluster, seen.Node)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprint(w, "shard\tworkspaces\tapplied\tepoch\towner\treleased\tbytes\t")
	if c.Fingerprint {
		_, _ = fmt.Fprint(w, "fingerprint\t")
	}
	_, _ = fmt.Fprintln(w)
	for _, s := range seen.Shards {
		start, end := storage.ShardRange(s.Shard)
		bytes, err := store.State().EstimateDiskUsage(start, end)
		if err != nil {
			return fmt.Errorf("measure shard %d: %w", s.Shard, err)
		}
		_, _ = fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%s\t%t\t%d\t", s.Shard, workspaces[s.Shard], s.Applied, s.Epoch, s.Owner, s.Released, bytes)
		if c.Fingerprint {
			sum, err := cluster.Fingerprint(ctx, store, s.Shard)
			if err != nil {
				return interrupted(ctx, err)
			}
			_, _ = fmt.Fprintf(w, "%s\t", sum)
		}
		_, _ = fmt.Fprintln(w)
	}
	return w.Flush()
}
