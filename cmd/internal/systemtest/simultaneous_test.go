package systemtest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// simultaneousClients is many connections to one workspace.
type simultaneousClients struct {
	clients   []*Client
	workspace string
}

// newSimultaneousClients opens the connections before anything is asked for.
func newSimultaneousClients(t *testing.T, connections int) *simultaneousClients {
	t.Helper()
	n := inProcess(t, nil)
	home, err := NewClient("http://"+n.HTTPAddr(), "", 1).Onboard(t.Context(), "Crowd", "crowd")
	if err != nil {
		t.Fatal(err)
	}
	c := &simultaneousClients{workspace: home.Workspace.ID}
	for range connections {
		one := NewClient("http://"+n.HTTPAddr(), home.Token.Token, 1)
		if err := one.Decode(t.Context(), "GET", "/workspaces/"+c.workspace, nil, http.StatusOK, nil); err != nil {
			t.Fatal(err)
		}
		c.clients = append(c.clients, one)
	}
	return c
}

// create makes an issue from every connection at once. It counts the statuses, and
// gives the ids that were answered as the issue's.
func (c *simultaneousClients) create(t *testing.T, query string, body func(n int) object) (statuses map[int]int, ids map[string]bool) {
	t.Helper()
	start := make(chan struct{})
	var all sync.WaitGroup
	answers := make([]Answer, len(c.clients))
	for i, one := range c.clients {
		all.Go(func() {
			<-start
			var err error
			if answers[i], err = one.Do(t.Context(), "POST", "/workspaces/"+c.workspace+"/issues"+query, body(i)); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	all.Wait()
	statuses, ids = map[int]int{}, map[string]bool{}
	for _, answer := range answers {
		statuses[answer.Status]++
		_, id, _ := strings.Cut(string(answer.Body), `"id":"`)
		ids[id[:min(36, len(id))]] = true
	}
	return statuses, ids
}

// TestCreateIssue_OneReferenceFromManyConnections makes the same issue from 50
// connections at once (Decision 18).
func TestCreateIssue_OneReferenceFromManyConnections(t *testing.T) {
	t.Parallel()
	const rounds = 10
	c := newSimultaneousClients(t, 50)
	for round := range rounds {
		ref := fmt.Sprintf("ref %d", round)
		statuses, ids := c.create(t, "", func(n int) object { return object{"title": fmt.Sprintf("From %d", n), "externalRef": ref} })
		if statuses[201] != 1 || statuses[200] != 49 || len(ids) != 1 {
			t.Fatalf("statuses %v, ids %v", statuses, ids)
		}
		listed, err := c.clients[0].Walk(t.Context(), c.workspace, url.Values{"externalRef": {ref}}.Encode())
		if err != nil || len(listed) != 1 || !ids[listed[0].ID] {
			t.Fatalf("listed %v, %v; want %v", listed, err, ids)
		}
	}
	if listed, err := c.clients[0].Walk(t.Context(), c.workspace, ""); err != nil || len(listed) != rounds {
		t.Errorf("%d issues, %v; want %d", len(listed), err, rounds)
	}
}

// TestCreateIssue_OneTitleFromManyConnections makes issues with one title from 50
// connections at once, none of which wants a duplicate: each sees the one that was
// made (Decision 19).
func TestCreateIssue_OneTitleFromManyConnections(t *testing.T) {
	t.Parallel()
	const rounds = 10
	c := newSimultaneousClients(t, 50)
	for round := range rounds {
		title := fmt.Sprintf("Points%d frozen%d", round, round)
		statuses, ids := c.create(t, "?dedupe=block", func(int) object { return object{"title": title} })
		if statuses[201] != 1 || statuses[409] != 49 || len(ids) != 1 {
			t.Fatalf("statuses %v, ids %v", statuses, ids)
		}
	}
	if listed, err := c.clients[0].Walk(t.Context(), c.workspace, ""); err != nil || len(listed) != rounds {
		t.Errorf("%d issues, %v; want %d", len(listed), err, rounds)
	}
}
