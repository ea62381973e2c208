package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// TestMove_KeepsEverything moves a workspace that has one of everything: what GET shows is the same,
// credentials are good in the new cluster, and the old one says where it is.
func TestMove_KeepsEverything(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	from, fromData := moveNode(ctx, t, rootToken, "--shards", "2")
	to, toData := moveNode(ctx, t, rootToken, "--shards", "5")
	f := fillWorkspace(t, from.URL, "leaving")
	_, text := f.exported()
	var page struct {
		Issues     []Issue `json:"issues"`
		NextCursor string  `json:"nextCursor"`
	}
	if err := f.c.Decode(ctx, "GET", "/workspaces/"+f.id+"/issues?limit=2", nil, http.StatusOK, &page); err != nil || page.NextCursor == "" {
		t.Fatal(err, page)
	}
	next := "/workspaces/" + f.id + "/issues?limit=2&cursor=" + page.NextCursor
	move := []string{"workspace", "move", f.id, "--from", from.URL, "--to", to.URL}
	if code, out := backupCommand(t, move...); code != 0 || !strings.Contains(out, "has moved") {
		t.Fatalf("the move ended with %d: %s", code, out)
	}
	moved := NewClient(to.URL, f.c.Token, 4)
	if _, got := exportOf(t, moved, f.id, "", 0); string(got) != string(text) {
		t.Errorf("the export in the new cluster differs: %s", firstDifference(got, text))
	}
	compareGets(t, f.c, moved, f.id, f.id, text)
	was, err := f.c.Do(ctx, "GET", next, nil)
	is, err2 := moved.Do(ctx, "GET", next, nil)
	if err != nil || err2 != nil || is.Status != http.StatusOK || !bytes.Equal(was.Body, is.Body) {
		t.Errorf("a cursor is answered %v, %v, %d %s", err, err2, is.Status, is.Body)
	}
	for _, path := range []string{"/tokens", "/members", "/retention", "/audit?limit=20&action=token.*"} {
		was, err := f.c.Do(ctx, "GET", "/workspaces/"+f.id+path, nil)
		is, err2 := moved.Do(ctx, "GET", "/workspaces/"+f.id+path, nil)
		if err != nil || err2 != nil || is.Status != http.StatusOK || string(maskCursors(was.Body)) != string(maskCursors(is.Body)) {
			t.Errorf("GET %s: %v, %v, %d %.600s\nwas %.600s", path, err, err2, is.Status, is.Body, was.Body)
		}
	}
	for _, token := range f.tokens {
		was, err := NewClient(from.URL, token, 1).Do(ctx, "GET", "/workspaces/"+f.id, nil)
		is, err2 := NewClient(to.URL, token, 1).Do(ctx, "GET", "/workspaces/"+f.id, nil)
		if err != nil || err2 != nil || was.Status != is.Status {
			t.Errorf("a token is answered %d in the old cluster and %d in the new one, %v %v", was.Status, is.Status, err, err2)
		}
	}
	refused, err := f.c.Do(ctx, "POST", "/workspaces/"+f.id+"/issues", object{"title": "Late"})
	if err != nil || refused.Status != http.StatusServiceUnavailable || !strings.Contains(string(refused.Body), "Moved to "+to.URL) {
		t.Errorf("a change in the old cluster is answered %v, %d %s", err, refused.Status, refused.Body)
	}
	if err := moved.Decode(ctx, "POST", "/workspaces/"+f.id+"/issues", object{"title": "Goes on"}, http.StatusCreated, nil); err != nil {
		t.Error(err)
	}
	var listed struct {
		Workspaces []struct{ ID string } `json:"workspaces"`
	}
	testkit.Await(ctx, t, "the new cluster's directory knows the owner", func() bool {
		err := moved.Decode(ctx, "GET", "/workspaces", nil, http.StatusOK, &listed)
		return err == nil && len(listed.Workspaces) == 1 && listed.Workspaces[0].ID == f.id
	})

	// A repeat finds that there is nothing left to do, and deletes the old copy.
	for _, args := range [][]string{move, append(move, "--delete"), append(move, "--delete")} {
		if code, out := backupCommand(t, args...); code != 0 || !strings.Contains(out, "was moved before") {
			t.Errorf("the move made again ended with %d: %s", code, out)
		}
	}
	if gone, err := f.c.Do(ctx, "GET", "/workspaces/"+f.id, nil); err != nil || gone.Status == http.StatusOK {
		t.Errorf("the old copy: %v, %d", err, gone.Status)
	}
	for node, data := range map[*Process]string{from: fromData, to: toData} {
		if err := node.Terminate(ctx); err != nil {
			t.Fatal(err)
		}
		if code, out := switchyard(t, "", "verify", "--data", data); code != 0 {
			t.Errorf("the data are not sound: %d %s", code, out)
		}
	}
}

// moveNode runs a node alone.
func moveNode(ctx context.Context, t *testing.T, root string, flags ...string) (node *Process, data string) {
	t.Helper()
	data = t.TempDir()
	node, err := Launch(ctx, binary(t), data, []string{"SWITCHYARD_ROOT_TOKEN=" + root}, append(append(flags, "--sweep-interval", "100ms"), toLocal...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Kill)
	return node, data
}

// moveWriters write to a workspace while it moves, and follow it.
type moveWriters struct {
	old, new  []*Client
	workspace string
	moved     atomic.Int64 // writes acknowledged by the new cluster

	mu    sync.Mutex
	books map[string]string // externalRef -> id of the issue that was acknowledged
}

// write creates issues until ctx ends, each until it is acknowledged.
func (m *moveWriters) write(ctx context.Context, t *testing.T, writer int) {
	clients, moved := m.old, false
	for n := 0; ctx.Err() == nil; n++ {
		ref := fmt.Sprintf("writer-%d-%d", writer, n)
		body := object{"title": "Written while it moves", "externalRef": ref, "description": strings.Repeat(ref+" ", 20)}
		for try := 0; ctx.Err() == nil; try++ {
			answer, err := clients[(writer+try)%len(clients)].Do(ctx, "POST", "/workspaces/"+m.workspace+"/issues", body, "Idempotency-Key", ref)
			if err != nil || answer.Status == http.StatusServiceUnavailable {
				if err == nil && strings.Contains(string(answer.Body), "Moved to") {
					clients, moved = m.new, true
				}
				continue
			}
			var issue Issue
			if answer.Status != http.StatusCreated || json.Unmarshal(answer.Body, &issue) != nil {
				t.Errorf("%s is answered %d %s", ref, answer.Status, answer.Body)
				return
			}
			m.mu.Lock()
			m.books[ref] = issue.ID
			m.mu.Unlock()
			if moved {
				m.moved.Add(1)
			}
			break
		}
	}
}

func (m *moveWriters) written() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.books)
}

// TestMove_UnderLoad moves a workspace out of a cluster of three while it is written to and the
// owner of its shard is killed: each acknowledged write is in the new cluster once.
func TestMove_UnderLoad(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 4*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	to, toData := moveNode(ctx, t, f.Root, "--shards", "3")
	home, err := f.members[0].Client("").onboardInsisting(ctx, "Moving", "moving")
	if err != nil {
		t.Fatal(err)
	}
	m := &moveWriters{new: []*Client{NewClient(to.URL, home.Token.Token, 8)}, workspace: home.Workspace.ID, books: map[string]string{}}
	for _, member := range f.members {
		m.old = append(m.old, member.Client(home.Token.Token))
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() { m.write(writing, t, n) })
	}
	testkit.Await(ctx, t, "there is something to move", func() bool { return m.written() > 500 })

	owner, err := f.members[0].Owner(ctx, m.workspace)
	if err != nil {
		t.Fatal(err)
	}
	var alive, doomed *Member
	for _, member := range f.members {
		if member.Name == owner {
			doomed = member
		} else {
			alive = member
		}
	}
	var killed sync.WaitGroup
	killed.Go(func() {
		root := NewClient(to.URL, f.Root, 1)
		for arrived := false; !arrived && pause(ctx, time.Millisecond); {
			answer, err := root.Do(ctx, "GET", "/cluster/workspaces/"+m.workspace+"/arrival", nil)
			arrived = err == nil && answer.Status == http.StatusOK
		}
		doomed.Kill()
	})
	for try := 1; ; try++ {
		code, out := f.operator(ctx, "workspace", "move", m.workspace, "--from", alive.URL, "--to", to.URL)
		t.Logf("try %d: %d %s", try, code, out)
		if code == 0 {
			break
		}
		// A move that was broken off leaves the workspace where it was.
		if try == 4 {
			t.Fatal("the workspace could not be moved")
		}
	}
	killed.Wait()
	testkit.Await(ctx, t, "the writers have followed", func() bool { return m.moved.Load() > 50 })
	stop()
	writers.Wait()

	c := m.new[0]
	all, err := c.Walk(ctx, m.workspace, "")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, issue := range all {
		if issue.ExternalRef == nil || found[*issue.ExternalRef] != "" {
			t.Errorf("issue %s is there without a reference, or twice", issue.ID)
			continue
		}
		found[*issue.ExternalRef] = issue.ID
	}
	for ref, id := range m.books {
		if found[ref] != id {
			t.Errorf("%s was acknowledged as issue %s, and is %q", ref, id, found[ref])
		}
	}
	if most := len(m.books) + 4; len(found) > most { // a writer may have stopped before its last answer
		t.Errorf("there are %d issues, of %d that were acknowledged", len(found), len(m.books))
	}
	wantOneEventEach(ctx, t, c, m)
	if err := to.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	if err := Verify(ctx, binary(t), toData); err != nil {
		t.Error(err)
	}
}

// wantOneEventEach reads the event log of the moved workspace: it has no gap, and one creation of
// each issue.
func wantOneEventEach(ctx context.Context, t *testing.T, c *Client, m *moveWriters) {
	t.Helper()
	created := map[string]int{}
	before := int64(0)
	for {
		var page struct {
			Events []struct {
				Sequence int64  `json:"sequence"`
				Type     string `json:"type"`
				Data     struct {
					ID string `json:"id"`
				} `json:"data"`
			} `json:"events"`
		}
		path := "/workspaces/" + m.workspace + "/events?limit=100&after=" + strconv.FormatInt(before, 10)
		if err := c.Decode(ctx, "GET", path, nil, http.StatusOK, &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			break
		}
		for _, e := range page.Events {
			if e.Sequence != before+1 {
				t.Fatalf("event %d follows event %d", e.Sequence, before)
			}
			before = e.Sequence
			if e.Type == "issue.created" {
				created[e.Data.ID]++
			}
		}
	}
	for ref, id := range m.books {
		if created[id] != 1 {
			t.Errorf("the creation of %s has %d events", ref, created[id])
		}
	}
}
