package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
)

type clusterAuditCmd struct {
	clusterFlags
	Workspace *string `env:"-" help:"Id of a workspace, for its audit; without it, the cluster's." placeholder:"ID"`
	Action    string  `env:"-" help:"Entries of an action alone, such as token.created or node.*." placeholder:"ACTION"`
	ActorID   string  `name:"actor" env:"-" help:"Entries of an actor alone: root, or an id." placeholder:"ID"`
	TargetID  string  `name:"target" env:"-" help:"Entries of a target alone." placeholder:"ID"`
	From      string  `env:"-" help:"Entries from a moment on, in RFC 3339." placeholder:"TIME"`
	To        string  `env:"-" help:"Entries before a moment, in RFC 3339." placeholder:"TIME"`
}

// Validate refuses an empty workspace, such as that of a variable that is not set: the audit of the cluster is about
// all workspaces.
func (a clusterAuditCmd) Validate() error {
	if a.Workspace != nil && *a.Workspace == "" {
		return errors.New("--workspace: is empty; leave it out for the audit of the cluster")
	}
	return nil
}

func (a clusterAuditCmd) Run() error {
	c, ctx, cancel, err := a.connect()
	if err != nil {
		return err
	}
	defer cancel()
	out := bufio.NewWriter(os.Stdout)
	if err := a.run(ctx, c, out); err != nil {
		return errors.Join(err, out.Flush())
	}
	return out.Flush()
}

// run writes all entries, each as a line of JSON, the newest first.
func (a clusterAuditCmd) run(ctx context.Context, c *clusterClient, out io.Writer) error {
	path := "/cluster/audit"
	if a.Workspace != nil {
		path = "/workspaces/" + url.PathEscape(*a.Workspace) + "/audit"
	}
	query := url.Values{"limit": {"100"}}
	for name, value := range map[string]string{"action": a.Action, "actorId": a.ActorID, "targetId": a.TargetID, "from": a.From, "to": a.To} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for {
		raw, err := c.do(ctx, "GET", path+"?"+query.Encode())
		if err != nil {
			return err
		}
		var page struct {
			Entries    []json.RawMessage `json:"entries"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return fmt.Errorf("read the answer of %s: %w", c.base, err)
		}
		for _, entry := range page.Entries {
			var line bytes.Buffer
			if err := json.Compact(&line, entry); err != nil {
				return fmt.Errorf("read the answer of %s: %w", c.base, err)
			}
			if _, err := fmt.Fprintf(out, "%s\n", &line); err != nil {
				return fmt.Errorf("write the entries: %w", err)
			}
		}
		if page.NextCursor == "" {
			return nil
		}
		if page.NextCursor == query.Get("cursor") {
			return fmt.Errorf("%s gives the same page again", c.base)
		}
		query.Set("cursor", page.NextCursor)
	}
}
