package systemtest

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestCluster_SlowStop stops a node while a client holds a request to it open. Its shards are with the
// other nodes all that time: none is given back to it, where nobody would answer.
func TestCluster_SlowStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "8")
	if err := f.stand(ctx, 3); err != nil {
		t.Fatal(err)
	}
	load, err := newTraffic(ctx, f, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	first := f.members[0]
	var directory string // its owner decides on leaderships
	if err := first.Await(ctx, "all share the leaderships", func(v ClusterView) bool {
		directory = v.Shards[0].Leader
		return Settled(3)(v) && Shared(v)
	}); err != nil {
		t.Fatal(err)
	}
	stops, stays := f.members[1], f.members[2]
	if stops.Name == directory {
		stops, stays = stays, stops
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(stops.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "POST /workspaces/%s/issues HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{", load.spaces[0].id, load.spaces[0].token); err != nil {
		t.Fatal(err)
	}
	load.run(ctx, seed(t), 20*time.Millisecond)
	stopped := make(chan error, 1)
	go func() { stopped <- stops.Terminate(ctx) }()
	if err := stays.Await(ctx, stops.Name+" leads nothing", func(v ClusterView) bool {
		for _, s := range v.Shards {
			if s.Leader == stops.Name || s.Leader == "" {
				return false
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	// The leaderships are looked at once a second.
	for served := load.served.Load(); load.served.Load() < served+2500; {
		v, err := stays.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range v.Shards {
			if s.Leader == stops.Name {
				t.Fatalf("%s leads shard %d while it stops", stops.Name, s.ID)
			}
		}
		select {
		case err := <-stopped:
			t.Fatalf("it has stopped before the request was over: %v", err)
		case <-time.After(50 * time.Millisecond): // as Await asks
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(<-stopped, stops.Start(), f.stand(ctx, 3)); err != nil {
		t.Fatal(err)
	}
	load.end()
	load.neverSilent(t, restartGap)
	load.finish(ctx, t)
}
