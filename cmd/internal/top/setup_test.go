package top

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"
)

// fakeAPI answers as a cluster does whose counters grow with each look at it.
type fakeAPI struct {
	mu      sync.Mutex
	looks   int // at GET /cluster
	answers map[string]func(look int) (string, error)
	asked   []string
}

func (f *fakeAPI) get(ctx context.Context, path string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	if path == "/cluster" {
		f.looks++
	}
	look, answer := f.looks, f.answers[path]
	f.asked = append(f.asked, path)
	f.mu.Unlock()
	if answer == nil {
		return nil, errors.New("There is no " + path + ".\nLook elsewhere.")
	}
	text, err := answer(look)
	return []byte(text), err
}

func (f *fakeAPI) set(path string, answer func(look int) (string, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = maps.Clone(f.answers)
	f.answers[path] = answer
}

func (f *fakeAPI) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, asked := range f.asked {
		if asked == path {
			n++
		}
	}
	return n
}

const (
	firstWorkspace  = "01931f6e-7a3c-7def-8123-456789abcdef"
	secondWorkspace = "01931f6e-7a3c-7def-8123-456789abcd00"
)

// clusterBody has a node of each kind, and a shard for each kind of trouble.
const clusterBody = `{"clusterId":"c1","format":4,"nodes":[
	{"name":"node-1","state":"alive","leads":3,"replicas":5},
	{"name":"node-2","state":"dead","leads":0,"replicas":5,"note":"its replicas are made anew"},
	{"name":"node-3","state":"alive","leads":1,"replicas":5}],
	"shards":[{"id":0,"leader":"node-1","voters":["node-1","node-3","node-4"]},
	{"id":1,"leader":"","voters":["node-1","node-2","node-3"]},
	{"id":2,"leader":"node-1","voters":["node-1","node-3"],"lag":1001},
	{"id":3,"leader":"node-3","voters":["node-1","node-3","node-4"],"lag":1000,"failed":[{"node":"node-1","reason":"checksum"}],"differing":["node-4"]},
	{"id":4,"leader":"node-1","voters":["node-1","node-3","node-4"]}],
	"backup":{"to":"/b","everySeconds":60,"lastName":null,"lastAt":null,"ageSeconds":null,"failures":2,"error":"disk full\nmore"}}`

// loadBody is the load of a node at a look: each takes two seconds.
func loadBody(node string, look int, busiest string) string {
	return fmt.Sprintf(`{"node":%q,"startedAt":"2026-03-01T12:00:00.000Z","uptimeMs":%d,
		"requests":{"connections":12,"answered":%d,"reads":%d,"writes":%d,"forwarded":%d,"unavailable":%d,"failed":0},
		"cpus":2,"cpuMs":%d,"memoryBytes":734003200,"memoryBudgetBytes":1073741824,
		"disk":{"logBytes":1048576,"stateBytes":2684354560,"freeBytes":512,"reserveBytes":1024,"full":%t},
		"sessions":{"created":7,"running":2,"waiting":1,"oldestCreatedSeconds":195},"pendingDeliveries":4,
		"stuckShards":%s,"failedShards":[],"busiest":[%s],"busiestMs":10000}`,
		node, 60_000+2000*look, 1000*look, 500*look, 3*look, look, look, 1000*look, node == "node-3", map[bool]string{true: "[4]", false: "[]"}[node == "node-3"], busiest)
}

func newFakeAPI() *fakeAPI {
	return &fakeAPI{answers: map[string]func(int) (string, error){
		"/cluster": func(int) (string, error) { return clusterBody, nil },
		"/cluster/nodes/node-1/load": func(look int) (string, error) {
			return loadBody("node-1", look, `{"organizationId":"`+firstWorkspace+`","reads":20,"writes":5,"uncounted":0,"slowestMs":35},{"organizationId":"`+secondWorkspace+`","reads":900,"writes":100,"uncounted":7,"slowestMs":4}`), nil
		},
		"/cluster/nodes/node-3/load": func(look int) (string, error) {
			return loadBody("node-3", look, `{"organizationId":"`+firstWorkspace+`","reads":10,"writes":0,"uncounted":0,"slowestMs":1250}`), nil
		},
		"/workspaces/" + secondWorkspace: func(int) (string, error) { return `{"id":"` + secondWorkspace + `","slug":"acme"}`, nil },
	}}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newReader(api *fakeAPI) *Reader { return NewReader(api.get, func() time.Time { return noon }) }

// afterTwo returns a screen that has been shown two readings.
func afterTwo(t *testing.T, api *fakeAPI) *screen {
	t.Helper()
	s, r := newScreen(2*time.Second), newReader(api)
	for range 2 {
		reading, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.show(reading)
	}
	return s
}
