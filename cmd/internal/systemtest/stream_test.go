package systemtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/cmd/internal/node"
)

// streamFixture is a workspace on a node, for tests of its event streams.
type streamFixture struct {
	*testing.T
	node  *node.Node
	stop  func()
	admin *Client
	id    string
}

func newStreamFixture(t *testing.T) *streamFixture {
	t.Helper()
	h := &streamFixture{T: t}
	h.node, h.stop = stoppable(t, nil)
	base := "http://" + h.node.HTTPAddr()
	home, err := NewClient(base, "", 1).Onboard(t.Context(), "Hall", "hall")
	if err != nil {
		t.Fatal(err)
	}
	h.admin, h.id = NewClient(base, home.Token.Token, 4), home.Workspace.ID
	return h
}

func (h *streamFixture) do(method, path string, body any, want int) object {
	h.Helper()
	answer, err := h.admin.Do(h.Context(), method, "/workspaces/"+h.id+path, body)
	if err != nil || answer.Status != want {
		h.Fatalf("%s %s: %v, %d %s; want %d", method, path, err, answer.Status, answer.Body, want)
	}
	if len(answer.Body) == 0 {
		return nil
	}
	return decoded(h.T, answer)
}

// issue makes one and gives its id.
func (h *streamFixture) issue(title string) string {
	h.Helper()
	return h.do("POST", "/issues", object{"title": title}, http.StatusCreated)["id"].(string)
}

// somebody makes a member and a token of theirs.
func (h *streamFixture) somebody(role string) (c *Client, user, token string) {
	h.Helper()
	user = h.do("POST", "/members", object{"name": role, "role": role}, http.StatusCreated)["userId"].(string)
	made := h.do("POST", "/tokens", object{"name": role, "userId": user}, http.StatusCreated)
	return NewClient(h.admin.URL, made["token"].(string), 2), user, made["id"].(string)
}

func (h *streamFixture) listen(c *Client, query, last string) *Stream {
	h.Helper()
	s, err := c.Listen(h.Context(), h.id, query, last)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(s.Close)
	return s
}

// next is the next event of a stream, as "type title".
func (h *streamFixture) next(s *Stream) string {
	h.Helper()
	type got struct {
		e   *Told
		err error
	}
	c := make(chan got, 1)
	go func() {
		e, err := s.Next()
		c <- got{e, err}
	}()
	select {
	case g := <-c:
		if g.err != nil {
			return g.err.Error()
		}
		return g.e.Type + " " + g.e.Data.Title + g.e.Data.Body
	case <-time.After(20 * time.Second):
		h.Fatal("no event came")
	}
	return ""
}

func (h *streamFixture) wantNext(s *Stream, want string) {
	h.Helper()
	if got := h.next(s); got != want {
		h.Errorf("the stream has %q, want %q", got, want)
	}
}

func TestStream_TellsAndResumes(t *testing.T) {
	t.Parallel()
	h := newStreamFixture(t)
	h.issue("before")
	live := h.listen(h.admin, "", "")
	comments := h.listen(h.admin, "?types=comment.*&after=0", "")
	all := h.listen(h.admin, "?after=0", "")
	first := h.issue("one")
	h.do("POST", "/issues/"+first+"/comments", object{"body": "talk"}, http.StatusCreated)
	h.wantNext(live, "issue.created one")
	h.wantNext(live, "comment.created talk")
	h.wantNext(comments, "comment.created talk")
	for _, want := range []string{"issue.created before", "issue.created one", "comment.created talk"} {
		h.wantNext(all, want)
	}
	live.Close()
	h.issue("two")
	h.wantNext(h.listen(h.admin, "", live.Last), "issue.created two")
	// Last-Event-ID says more than the address, which a browser repeats.
	h.wantNext(h.listen(h.admin, "?after=0", live.Last), "issue.created two")
	h.wantNext(all, "issue.created two")

	// A request that waits for a page gets it with the first event.
	done := make(chan string, 1)
	go func() {
		var page struct{ Events []Told }
		err := h.admin.Decode(t.Context(), "GET", "/workspaces/"+h.id+"/events?wait=10&types=issue.deleted&after="+all.Last, nil, 200, &page)
		done <- fmt.Sprint(len(page.Events), err)
	}()
	h.do("DELETE", "/issues/"+first, nil, http.StatusNoContent)
	if got := <-done; got != "1<nil>" && got != "1 <nil>" {
		t.Errorf("the page that was waited for: %s", got)
	}

	h.stop()
	for got := ""; got != io.EOF.Error(); got = h.next(all) {
		if strings.HasPrefix(got, "listen:") {
			t.Fatalf("at shutdown: %s", got)
		}
	}
}

func TestStream_EndsWithItsRights(t *testing.T) {
	t.Parallel()
	h := newStreamFixture(t)
	mel, user, token := h.somebody("member")
	gus, guest, _ := h.somebody("guest")
	secret := h.issue("secret")
	mels, guss := h.listen(mel, "", ""), h.listen(gus, "", "")
	h.issue("open")
	h.wantNext(mels, "issue.created open")
	h.wantNext(guss, "issue.created open")

	// Restricted, it is told to nobody but its listed actors.
	h.do("PUT", "/issues/"+secret+"/permissions", object{"actorId": user}, http.StatusOK)
	h.do("PATCH", "/issues/"+secret, object{"title": "more secret"}, http.StatusOK)
	h.issue("next")
	h.wantNext(mels, "issue.updated more secret")
	h.wantNext(mels, "issue.created next")
	h.wantNext(guss, "issue.created next")

	// So in a team that turns private.
	team := h.do("POST", "/teams", object{"name": "Private", "key": "PRV"}, http.StatusCreated)["id"].(string)
	h.do("POST", "/issues", object{"title": "in the team", "teamId": team}, http.StatusCreated)
	h.wantNext(guss, "issue.created in the team")
	h.wantNext(mels, "issue.created in the team")
	h.do("PATCH", "/teams/"+team, object{"isPublic": false}, http.StatusOK)
	h.do("POST", "/issues", object{"title": "hidden", "teamId": team}, http.StatusCreated)
	h.issue("seen")
	h.wantNext(guss, "issue.created seen")
	h.wantNext(mels, "issue.created seen")

	// A token that is deleted ends its stream, and so does a membership.
	h.do("DELETE", "/tokens/"+token, nil, http.StatusNoContent)
	h.do("DELETE", "/members/"+guest, nil, http.StatusNoContent)
	h.issue("last")
	h.wantNext(mels, io.EOF.Error())
	h.wantNext(guss, io.EOF.Error())
	var told *refusal
	if _, err := mel.Listen(t.Context(), h.id, "", mels.Last); !errors.As(err, &told) || told.Status != http.StatusUnauthorized {
		t.Errorf("listening again: %v", err)
	}
	if _, err := gus.Listen(t.Context(), h.id, "", ""); !errors.As(err, &told) || told.Status != http.StatusNotFound {
		t.Errorf("listening again: %v", err)
	}
}

// TestStream_WhoDoesNotReadHoldsNobodyUp opens streams that nobody reads, and writes
// more than the machine keeps for them.
func TestStream_WhoDoesNotReadHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	h := newStreamFixture(t)
	idle := make([]net.Conn, 20)
	for i := range idle {
		c, err := net.Dial("tcp", h.node.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		idle[i] = c
		t.Cleanup(func() { _ = c.Close() })
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "GET /workspaces/%s/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n", h.id, h.admin.Token); err != nil {
			t.Fatal(err)
		}
		head, err := bufio.NewReaderSize(c, 16).ReadString('\n')
		if err != nil || !strings.Contains(head, "200") {
			t.Fatalf("head %q, %v", head, err)
		}
	}
	live := h.listen(h.admin, "", "")
	long := strings.Repeat("It goes on and on. ", 12_000)
	for i := range 40 { // about 9 MB for each
		began := time.Now()
		h.do("POST", "/issues", object{"title": fmt.Sprint(i), "description": long}, http.StatusCreated)
		if took := time.Since(began); took > 9*time.Second { // streams that held it up would do so for 15 s
			t.Errorf("a creation took %s", took)
		}
		h.wantNext(live, fmt.Sprint("issue.created ", i))
	}
}

// heard is what a listener was told, on how many streams.
type heard struct {
	mu      sync.Mutex
	events  []Told
	streams int
}

func (h *heard) add(e *Told) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, *e)
}

func (h *heard) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.events)
}

// TestCluster_StreamsLoseNothingAndRepeatNothing listens at every node of a cluster
// while owners die, drain and stop under writes. Each listener goes on from the last
// event it has, wherever it finds a node, and ends up with the whole log.
func TestCluster_StreamsLoseNothingAndRepeatNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 5*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "2")
	home, err := f.members[0].Client("").onboardInsisting(ctx, "Streams", "streams")
	if err != nil {
		t.Fatal(err)
	}
	workspace, token := home.Workspace.ID, home.Token.Token
	elsewhere, err := f.members[0].Client("").onboardInsisting(ctx, "Elsewhere", "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	// A user of the other workspace is a member here: its token may live on another node.
	admin := f.members[0].Client(token)
	var who struct{ OwnerID string }
	if err := f.members[0].Client(elsewhere.Token.Token).Decode(ctx, "GET", "/workspaces/"+elsewhere.Workspace.ID, nil, 200, &who); err != nil {
		t.Fatal(err)
	}
	if err := admin.Decode(ctx, "POST", "/workspaces/"+workspace+"/members", object{"userId": who.OwnerID, "name": "Visitor", "role": "admin"}, 201, nil); err != nil {
		t.Fatal(err)
	}

	writing, stopWriting := context.WithCancel(ctx)
	var writers, listeners sync.WaitGroup
	var mu sync.Mutex
	made := map[string]bool{}
	for i, m := range f.members {
		writers.Go(func() {
			c := m.Client(token)
			for n := 0; writing.Err() == nil; n++ {
				var out Issue
				if c.Decode(ctx, "POST", "/workspaces/"+workspace+"/issues", object{"title": fmt.Sprintf("%d of %d", n, i)}, 201, &out) == nil {
					mu.Lock()
					made[out.ID] = true
					mu.Unlock()
				}
				pause(writing, 5*time.Millisecond)
			}
		})
	}
	const each = 4
	heards := make([]*heard, each*len(f.members))
	listening, stopListening := context.WithCancel(ctx)
	for i := range heards {
		heards[i] = &heard{}
		listeners.Go(func() {
			own := token
			if i%2 == 1 {
				own = elsewhere.Token.Token
			}
			last := "0"
			for at := i; listening.Err() == nil; at++ {
				s, err := f.members[at%len(f.members)].Client(own).Listen(listening, workspace, "", last)
				if err != nil {
					pause(listening, 50*time.Millisecond)
					continue
				}
				heards[i].streams++
				for {
					e, err := s.Next()
					if err != nil {
						break
					}
					heards[i].add(e)
				}
				last = s.Last
				s.Close()
			}
		})
	}
	for _, strike := range []string{"kill", "drain", "terminate", "pause"} {
		pause(ctx, time.Second)
		var owner *Member
		for owner == nil {
			name, err := f.members[0].Owner(ctx, workspace)
			for _, m := range f.members {
				if err == nil && m.Name == name {
					owner = m
				}
			}
			if !pause(ctx, 20*time.Millisecond) {
				t.Fatal("no owner")
			}
		}
		switch strike {
		case "kill":
			owner.Kill()
			err = owner.Start()
		case "drain":
			if err = f.other(owner).operate(ctx, "POST", "/cluster/nodes/"+owner.Name+"/drain"); err == nil {
				pause(ctx, 2*time.Second)
				err = f.other(owner).operate(ctx, "POST", "/cluster/nodes/"+owner.Name+"/undrain")
			}
		case "terminate":
			if err = owner.Terminate(ctx); err == nil {
				err = owner.Start()
			}
		case "pause":
			if err = owner.Pause(); err == nil {
				pause(ctx, 4*time.Second)
				err = owner.Resume()
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", strike, err)
		}
		if err := f.stand(ctx, 3); err != nil {
			t.Fatal(err)
		}
	}
	stopWriting()
	writers.Wait()
	// The rest may be late, as on a busy machine, but it comes; so may writes that
	// nobody waited for any more.
	behind := func() bool {
		want, err := admin.Events(ctx, workspace, "")
		return err != nil || slices.ContainsFunc(heards, func(h *heard) bool { return h.count() < len(want) })
	}
	for deadline := time.Now().Add(time.Minute); behind() && time.Now().Before(deadline); {
		pause(ctx, 20*time.Millisecond)
	}
	pause(ctx, time.Second) // for what is told twice
	stopListening()
	listeners.Wait()
	want, err := admin.Events(ctx, workspace, "")
	if err != nil {
		t.Fatal(err)
	}
	created := map[string]bool{}
	for _, e := range want {
		created[e.Data.ID] = true
	}
	for id := range made {
		if !created[id] {
			t.Errorf("issue %s was acknowledged and is not in the log", id)
		}
	}
	for i, h := range heards {
		if len(h.events) != len(want) {
			t.Errorf("listener %d has %d events of %d", i, len(h.events), len(want))
		}
		for n, e := range h.events {
			if n < len(want) && e.ID != want[n].ID {
				t.Errorf("listener %d: event %d is %d, want %d", i, n, e.Sequence, want[n].Sequence)
				break
			}
		}
	}
	t.Logf("%d events, the first listener heard them on %d streams", len(want), heards[0].streams)
}
