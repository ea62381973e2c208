package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"switchyard/cmd/internal/backup"
)

type recoverCmd struct {
	From       []string `required:"" sep:"none" help:"Data directory of a node that is left; repeat it for each." placeholder:"DIR"`
	Data       string   `help:"Data directory of the new node, which must be empty." placeholder:"DIR"`
	NodeName   string   `help:"Name of the new node (${default_node} when not given)." placeholder:"NAME"`
	AcceptLoss bool     `help:"Make the new cluster, although acknowledged changes may be missing from it. Without this flag the command only shows what is left."`
}

func (c recoverCmd) Run() error {
	if c.AcceptLoss && c.Data == "" {
		return errors.New("recover: --accept-loss needs --data, the directory of the new node")
	}
	ctx, cancel := interruptible()
	defer cancel()
	show := newStepProgress(os.Stderr)
	r, err := backup.Recover(ctx, backup.Recovering{
		From: c.From, AcceptLoss: c.AcceptLoss, Data: c.Data, Node: c.NodeName, Now: time.Now, Progress: show.restoring,
	})
	show.end()
	if r != nil {
		if err := tellLeft(r); err != nil {
			return err
		}
	}
	if err != nil {
		return interrupted(ctx, fmt.Errorf("recover: %w", err))
	}
	if r.Cluster == "" {
		fmt.Println("Nothing was made. Repeat the command with --accept-loss and --data to make a new cluster of this.")
		return nil
	}
	tellRecovered(r)
	fmt.Printf("%s is the data of a new cluster, %s. Prove it with: switchyard verify --data %[1]s\nStart it with: switchyard serve --data %[1]s\n", c.Data, r.Cluster)
	return nil
}

// tellLeft prints what is left of each shard.
func tellLeft(r *backup.Recovery) error {
	fmt.Printf("cluster %s\n\n", r.Former)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "shard\ttaken from\tup to entry\tvoters\tfound\twhat may be missing")
	for i := range r.Shards {
		s := &r.Shards[i]
		missing := "nothing"
		switch {
		case s.Node == "":
			missing = "everything: no replica is left"
		case len(s.Voters) == 0:
			missing = "acknowledged changes of any age: the replica was being filled"
		case !s.Certain():
			missing = "the last acknowledged changes"
		}
		_, _ = fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\n", s.Shard, s.Node, s.Last, strings.Join(s.Voters, " "), strings.Join(s.Left, " "), missing)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print what is left: %w", err)
	}
	fmt.Println()
	if r.Certain() {
		fmt.Println("A majority of every shard's voters is left. Start their nodes again instead, if you can: then nothing is missing, and clients need not change.")
	}
	return nil
}

// tellRecovered says how the directory and the workspaces differed.
func tellRecovered(r *backup.Recovery) {
	if len(r.Kept) > 0 {
		fmt.Printf("The directory had not heard of %s yet: %s.\n", plural(len(r.Kept), "workspace"), strings.Join(r.Kept, ", "))
	}
	if r.Forgotten > 0 {
		fmt.Printf("%s had no data left and will be forgotten by the first start.\n", plural(r.Forgotten, "workspace"))
	}
	if r.Erased > 0 {
		fmt.Printf("%s had been deleted in part and will be erased by the first start.\n", plural(r.Erased, "workspace"))
	}
	if r.Memberships > 0 {
		fmt.Printf("%s differed and are as their workspaces have them.\n", plural(r.Memberships, "membership"))
	}
}
