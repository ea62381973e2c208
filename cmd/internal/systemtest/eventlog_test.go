package systemtest

import (
	"encoding/json"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// A loggedEvent is what the tests look at of an entry of the event log, about a
// session or an issue.
type loggedEvent struct {
	Type      string    `json:"type"`
	Sequence  uint64    `json:"sequence"`
	CreatedAt time.Time `json:"createdAt"`
	Data      struct {
		ID       string  `json:"id"`
		IssueID  string  `json:"issueId"`
		AgentID  string  `json:"agentId"`
		Status   string  `json:"status"`
		Priority string  `json:"priority"`
		Result   *string `json:"result"`
	} `json:"data"`
	Changes map[string]struct{ From, To json.RawMessage } `json:"changes"`
}

// eventLog reads the log of a workspace from the data of a stopped node, in its
// order.
func eventLog(t *testing.T, data, workspace string) (log []loggedEvent) {
	t.Helper()
	var table storage.TableID
	for _, rows := range tracker.Schema().Rows {
		if rows.Name == "event" {
			table = rows.ID
		}
	}
	store, err := storage.Open(storage.Config{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	eachRow(t, store, func(key, value []byte) {
		shard, of, in, fields, err := storage.SplitKey(key)
		if err != nil || in != table || of.String() != workspace {
			return
		}
		v := storage.NewView(store.State(), shard, of)
		rec, err := tracker.EventRow(&v, fields, value)
		if err != nil {
			t.Fatal(err)
		}
		var e loggedEvent
		if err := json.Unmarshal(rec.JSON(), &e); err != nil {
			t.Fatal(err)
		}
		if n := uint64(len(log) + 1); e.Sequence != n {
			t.Fatalf("event %d stands at %d", e.Sequence, n)
		}
		log = append(log, e)
	})
	return log
}

// ended reports whether a status is one that a session keeps.
func ended(status string) bool {
	return status == "completed" || status == "failed" || status == "canceled"
}
