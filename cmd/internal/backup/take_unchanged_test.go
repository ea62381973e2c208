package backup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
	"switchyard/httpapi"
)

// head asks for the image of a shard, and returns the head of the answer.
func (s *service) head(shard int, unless uint64) httpapi.ImageHead {
	s.t.Helper()
	url := fmt.Sprintf("%s/cluster/backup/shards/%d?unless=%d", s.url, shard, unless)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+rootToken)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	lines := json.NewDecoder(res.Body)
	head := httpapi.ImageHead{Copying: true}
	for err == nil && head.Copying {
		head = httpapi.ImageHead{}
		err = lines.Decode(&head)
	}
	if err := errors.Join(err, res.Body.Close()); err != nil || head.Error != "" {
		s.t.Fatalf("%v, %+v", err, head)
	}
	return head
}

// applied returns the last applied entry of a shard.
func (s *service) applied(shard int) uint64 {
	s.t.Helper()
	var topology httpapi.Topology
	s.get("/cluster", &topology)
	return topology.Shards[shard].Applied
}

// A node calls a shard unchanged only at the index of an image that it has made since its start: when its data
// was put back to an earlier state, it comes to the same indexes with other entries.
func TestImage_UnchangedOnlyBehindAnImageOfThisProcess(t *testing.T) {
	t.Parallel()
	s := startService(t, 1)
	first := s.head(1, s.applied(1))
	if first.Unchanged || first.Bytes == 0 {
		t.Fatalf("at first: %+v", first)
	}
	// The service may write by itself, such as to its search index.
	again := s.head(1, first.Index)
	for try := 0; !again.Unchanged && try < 5; try++ {
		first = again
		again = s.head(1, first.Index)
	}
	want := first
	if want.Unchanged, want.Bytes = true, 0; again != want {
		t.Errorf("again: %+v, want %+v", again, want)
	}
	s.write("A change")
	if later := s.head(1, first.Index); later.Unchanged || later.Index <= first.Index {
		t.Errorf("after a change: %+v, the first one %+v", later, first)
	}
}

// A backup takes no file of an earlier one for that of an unchanged shard unless the node means the same image.
// A node of an older version does not say which one it means.
func TestTake_CopiesAShardOfAnotherHistory(t *testing.T) {
	t.Parallel()
	s := startService(t, 2)
	for name, change := range map[string]func(h *httpapi.ImageHead){
		"the same image": nil,
		"other rows":     func(h *httpapi.ImageHead) { h.Fingerprint = strings.Repeat("0", 32) + "/1" },
		"another owner":  func(h *httpapi.ImageHead) { h.Epoch++ },
		"an older version": func(h *httpapi.ImageHead) {
			*h = httpapi.ImageHead{Version: h.Version, ClusterID: h.ClusterID, Shard: h.Shard, Unchanged: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "backups")
			s := &service{t: t, url: s.url}
			first, _ := s.take(dir, 0)
			m, err := plain(dir).Open(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			unchanged, images := 0, 0
			url := s.front(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/cluster/backup/shards/1" {
					return false
				}
				if r.URL.Query().Get("unless") == "" {
					images++
					return false
				}
				f := &m.Files[1]
				head := httpapi.ImageHead{
					Version: httpapi.ImageVersion, ClusterID: m.ClusterID, Shard: 1, Unchanged: true,
					Index: f.Index, Epoch: f.Epoch, Rows: f.Rows, Fingerprint: f.Fingerprint,
				}
				if change != nil {
					change(&head)
				}
				text, _ := json.Marshal(&head)
				_, _ = w.Write(append(text, '\n'))
				return true
			})
			_, _, err = backup.Take(t.Context(), backup.Taking{Client: client(t, url), To: plain(dir), Now: time.Now, Progress: func(p backup.Progress) {
				if p.Shard == 1 && p.What == "unchanged" {
					unchanged++
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if same := change == nil; same != (unchanged == 1) || same != (images == 0) {
				t.Errorf("the shard was unchanged %d times, and copied %d times", unchanged, images)
			}
		})
	}
}
