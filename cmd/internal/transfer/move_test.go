package transfer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
)

// fakeCluster answers requests of a move, and notes those that change something.
type fakeCluster struct {
	id      string
	ahead   time.Duration // of its clock
	arrival string        // answer about the arrival; empty: there is none
	mode    string        // reason of the read-only mode; empty: there is none
	modes   int           // how often a mode was set
	older   bool          // it sets a mode whatever the condition
	preset  func()        // is called before a mode is set; may be nil
	cutSet  bool          // the answer to the setting of a mode is lost, once
	reclose func()        // is called before a mode is ended; may be nil
	cutEnd  bool          // the answer to the mode's end is lost, once
	rows    func(w http.ResponseWriter, after string)
	take    func(r *http.Request) // is told of a block before it is answered; may be nil
	end     func(w http.ResponseWriter)
	drop    func(w http.ResponseWriter, path string) // answers the end of an arrival; nil: it was given up
	show    func(w http.ResponseWriter) bool         // reports whether it has answered about the arrival; may be nil
	refuses func(r *http.Request) bool               // reports whether a block is refused, as without an arrival; may be nil

	mu      sync.Mutex
	changes []string
	taken   [][]byte
}

func (f *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/cluster/workspaces/moving")
	if r.Method != http.MethodGet && !strings.HasSuffix(path, "/rows") {
		f.mu.Lock()
		f.changes = append(f.changes, r.Method+" "+path)
		f.mu.Unlock()
	}
	switch r.Method + " " + path {
	case "GET /cluster":
		w.Header().Set("Date", time.Now().Add(f.ahead).UTC().Format(http.TimeFormat))
		_, _ = fmt.Fprintf(w, `{"clusterId":%q,"format":2}`, f.id)
	case "GET /read-only":
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.mode == "" {
			_, _ = io.WriteString(w, `{"readOnly":null}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"readOnly":{"reason":%q,"createdAt":"%d"}}`, f.mode, f.modes)
	case "PUT /read-only":
		var in struct{ Reason string }
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &in); err != nil {
			refuse(w, http.StatusBadRequest)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.preset != nil {
			f.preset()
		}
		match, noneMatch := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
		if !f.older && (match != "" && (f.mode == "" || match != fmt.Sprintf(`"%d"`, f.modes)) || noneMatch == "*" && f.mode != "") {
			refuse(w, http.StatusPreconditionFailed)
			return
		}
		f.mode, f.modes = in.Reason, f.modes+1
		if f.cutSet {
			f.cutSet = false
			panic(http.ErrAbortHandler)
		}
	case "DELETE /read-only":
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.reclose != nil {
			f.reclose()
		}
		if tag := r.Header.Get("If-Match"); f.mode == "" && tag != "" || tag != "" && tag != fmt.Sprintf(`"%d"`, f.modes) {
			refuse(w, http.StatusPreconditionFailed)
			return
		}
		f.mode = ""
		if f.cutEnd {
			f.cutEnd = false
			panic(http.ErrAbortHandler)
		}
	case "GET /arrival":
		if f.show != nil && f.show(w) {
			return
		}
		if f.arrival == "" {
			refuse(w, http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, f.arrival)
	case "POST /arrival":
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"arrival":{"id":"a","state":"running"}}`)
	case "GET /rows":
		f.rows(w, r.URL.Query().Get("after"))
	case "POST /arrival/a/rows":
		if f.refuses != nil && f.refuses(r) {
			refuse(w, http.StatusNotFound)
			return
		}
		block, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.taken = append(f.taken, block)
		f.mu.Unlock()
		if f.take != nil {
			f.take(r)
		}
		_, _ = io.WriteString(w, `{}`)
	case "POST /arrival/a/end":
		f.end(w)
	case "DELETE /arrival", "DELETE /arrival/a":
		if f.drop != nil {
			f.drop(w, path)
		}
	default:
		http.Error(w, r.Method+" "+path, http.StatusNotImplemented)
	}
}

// sendRows answers with blocks of rows behind an index.
func sendRows(w io.Writer, after string, blocks ...string) {
	if after == "" {
		after = "0"
	}
	_, _ = fmt.Fprintf(w, `{"version":1,"workspace":"moving","index":7,"after":%s}`+"\n", after)
	for _, block := range append(blocks, "") {
		header := binary.BigEndian.AppendUint32(nil, uint32(len(block)))
		header = binary.BigEndian.AppendUint64(header, xxhash.Sum64String(block))
		_, _ = w.Write(append(header, block...))
	}
}

func refuse(w http.ResponseWriter, status int) {
	code := "CONFLICT"
	if status == http.StatusNotFound {
		code = "NOT_FOUND"
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"code":%q,"message":"No.","hint":"None."}`, code)
}

// TestMove_UndoesWhatFails: whatever ends a move, the workspace takes changes again in its old
// place, and the rows are gone from the new one.
func TestMove_UndoesWhatFails(t *testing.T) {
	t.Parallel()
	const lock, unlock, drop = "PUT /read-only", "DELETE /read-only", "DELETE /arrival/a"
	damaged := func(w http.ResponseWriter, _ string) {
		_, _ = io.WriteString(w, `{"version":1,"workspace":"moving","index":7}`+"\n\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00x")
	}
	lost := true  // the proxy's connection to the node
	stops := true // the node that is asked
	for name, c := range map[string]struct {
		mode     string
		rows     func(w http.ResponseWriter, after string)
		end      func(w http.ResponseWriter)
		fails    string
		old, new []string
	}{
		"it moves": {old: []string{lock, lock}, new: []string{"POST /arrival", "POST /arrival/a/end"}},
		"a damaged block": {
			rows:  damaged,
			fails: "damaged", new: []string{"POST /arrival", drop},
		},
		"a damaged block, behind a run that was killed when it had closed the workspace": {
			mode: movingTo + "there", rows: damaged,
			fails: "damaged", old: []string{unlock}, new: []string{"POST /arrival", drop},
		},
		"a proxy that lost the node, which has begun": {
			end: func(w http.ResponseWriter) {
				if lost {
					lost = false
					refuse(w, http.StatusBadGateway)
				}
			},
			old: []string{lock, lock}, new: []string{"POST /arrival", "POST /arrival/a/end", "POST /arrival/a/end"},
		},
		"a node that stops while the request arrives": {
			end: func(w http.ResponseWriter) {
				if stops {
					stops = false
					refuse(w, http.StatusRequestTimeout)
				}
			},
			old: []string{lock, lock}, new: []string{"POST /arrival", "POST /arrival/a/end", "POST /arrival/a/end"},
		},
		"rows of another workspace": {
			rows: func(w http.ResponseWriter, _ string) {
				_, _ = io.WriteString(w, `{"version":1,"workspace":"other","index":7}`+"\n")
			},
			fails: "other", new: []string{"POST /arrival", drop},
		},
		"a workspace that is gone": {
			rows:  func(w http.ResponseWriter, _ string) { refuse(w, http.StatusNotFound) },
			fails: "404", new: []string{"POST /arrival", drop},
		},
		"the log does not reach back": {
			rows: func(w http.ResponseWriter, after string) {
				if after != "" {
					refuse(w, http.StatusConflict)
					return
				}
				sendRows(w, after, "rows")
			},
			fails: "does not reach back",
			old:   slices.Repeat([]string{lock, unlock}, mostStarts),
			new:   slices.Repeat([]string{"POST /arrival", drop}, mostStarts),
		},
		"a taken slug": {
			end:   func(w http.ResponseWriter) { refuse(w, http.StatusConflict) },
			fails: "409", old: []string{lock, unlock}, new: []string{"POST /arrival", "POST /arrival/a/end", drop},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := &fakeCluster{id: "old", mode: c.mode, rows: c.rows}
			to := &fakeCluster{id: "new", end: c.end}
			if from.rows == nil {
				from.rows = func(w http.ResponseWriter, after string) { sendRows(w, after, "rows", "more") }
			}
			if to.end == nil {
				to.end = func(http.ResponseWriter) {}
			}
			moved, err := runMove(t, t.Context(), from, to, 0)
			if c.fails == "" && (err != nil || moved.Passes != 2 || moved.Bytes != 16 || len(to.taken) != 4) ||
				c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("%+v, %v", moved, err)
			}
			if !slices.Equal(from.changes, c.old) || !slices.Equal(to.changes, c.new) {
				t.Errorf("the old cluster was asked for %q, and the new one for %q", from.changes, to.changes)
			}
		})
	}
}

// An interruption while rows are read undoes the move, too.
func TestMove_Interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	from := &fakeCluster{id: "old"}
	from.rows = func(w http.ResponseWriter, after string) {
		if after != "" { // the workspace is closed by now
			cancel()
			<-ctx.Done()
		}
		sendRows(w, after, "rows")
	}
	to := &fakeCluster{id: "new", end: func(http.ResponseWriter) {}}
	if moved, err := runMove(t, ctx, from, to, 0); err == nil {
		t.Fatalf("it moved: %+v", moved)
	}
	if !slices.Equal(from.changes, []string{"PUT /read-only", "DELETE /read-only"}) || !slices.Equal(to.changes, []string{"POST /arrival", "DELETE /arrival/a"}) {
		t.Errorf("the old cluster was asked for %q, and the new one for %q", from.changes, to.changes)
	}
}

// A copy that an earlier move left in the new cluster is not taken for that of a workspace which has
// been in use in the old one since: nothing is changed, let alone deleted.
func TestMove_RefusesAnEarlierCopy(t *testing.T) {
	t.Parallel()
	for mode, before := range map[string]bool{"": false, "Disks are replaced.": false, movingTo + "there": true, movedTo + "there": true} {
		from := &fakeCluster{id: "old", mode: mode}
		to := &fakeCluster{id: "new", arrival: `{"arrival":{"id":"a","from":"old","state":"done"}}`}
		moved, err := runMove(t, t.Context(), from, to, 0)
		switch {
		case before && (err != nil || !moved.Before || !slices.Equal(from.changes, []string{"PUT /read-only"})):
			t.Errorf("read-only by %q: %+v, %v, %q", mode, moved, err, from.changes)
		case !before && (err == nil || !strings.Contains(err.Error(), "earlier move") || len(from.changes) > 0):
			t.Errorf("read-only by %q: %+v, %v, %q", mode, moved, err, from.changes)
		}
		if len(to.changes) > 0 {
			t.Errorf("read-only by %q: the new cluster was asked for %q", mode, to.changes)
		}
	}
}

// A mode that names another place is not this move's: the workspace may have begun there, or the operator has
// closed it. Nothing is changed.
func TestMove_RefusesAWorkspaceThatMovesElsewhere(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{movingTo + "elsewhere", movedTo + "elsewhere", movingTo + "there and back", movingTo + "new disks tonight."} {
		for _, state := range []string{"", "running", "done"} {
			from, to := &fakeCluster{id: "old", mode: mode}, &fakeCluster{id: "new"}
			if state != "" {
				to.arrival = fmt.Sprintf(`{"arrival":{"id":"a","from":"old","state":%q}}`, state)
			}
			moved, err := runMove(t, t.Context(), from, to, 0)
			if err == nil || !strings.Contains(err.Error(), "("+mode+")") || from.mode != mode || len(from.changes)+len(to.changes) > 0 {
				t.Errorf("read-only by %q, arrival %q: %+v, %v; asked for %q and %q", mode, state, moved, err, from.changes, to.changes)
			}
		}
	}
}

// A block whose answer does not come may have been taken. Rows that are read later, which are others,
// are not sent under its number: the copy begins anew.
func TestMove_BeginsAnewAfterABlockInDoubt(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"0", "1"} {
		var reads atomic.Int32
		from := &fakeCluster{id: "old"}
		from.rows = func(w http.ResponseWriter, after string) { sendRows(w, after, fmt.Sprint("rows ", reads.Add(1))) }
		to := &fakeCluster{id: "new", end: func(http.ResponseWriter) {}}
		var hung atomic.Bool
		to.take = func(r *http.Request) {
			if r.URL.Query().Get("n") == number && hung.CompareAndSwap(false, true) {
				<-r.Context().Done()
			}
		}
		moved, err := runMove(t, t.Context(), from, to, 500*time.Millisecond)
		if err != nil || len(to.taken) < 3 {
			t.Fatalf("block %s: %+v, %v, %q", number, moved, err, to.taken)
		}
		if n := len(to.changes); n < 2 || !slices.Equal(to.changes[n-2:], []string{"POST /arrival", "POST /arrival/a/end"}) || to.changes[1] != "DELETE /arrival/a" {
			t.Errorf("block %s: the new cluster was asked for %q", number, to.changes)
		}
	}
}

func runMove(t *testing.T, ctx context.Context, from, to *fakeCluster, silence time.Duration) (*Moved, error) { //nolint:revive // t comes first in tests
	t.Helper()
	var clients []*Client
	for _, f := range []*fakeCluster{from, to} {
		server := httptest.NewServer(f)
		t.Cleanup(server.Close)
		c, err := NewClient(server.URL, "token")
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	move := Move{From: clients[0], To: clients[1], Workspace: "moving", Where: "there", silence: silence}
	return move.Run(ctx)
}
