package systemtest

import (
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// With TLS between nodes a stream comes by way of both nodes: of the owner, and of the one that the
// owner sends it to.
func TestStream_TLSBetweenNodes(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	cert, key, err := certificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	flags := append(certificateFlags(cert, key), "--shards", "2")
	network := loopbackNet()
	env := []string{"SWITCHYARD_GOSSIP_KEY=" + fleetKey}
	var nodes []*Process
	for n, name := range []string{"first", "second"} {
		host := network + strconv.Itoa(n+1)
		own := append(slices.Clone(flags), "--node-name", name, "--peer", host+":7947", "--gossip", host+":7946")
		if n > 0 {
			own = append(own, "--join", network+"1:7946")
		}
		node, err := Launch(ctx, binary(t), filepath.Join(t.TempDir(), name), env, own...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(node.Kill)
		nodes = append(nodes, node)
	}
	o, err := NewClient(nodes[0].URL, "", 1).Onboard(ctx, "Hall", "hall")
	if err != nil {
		t.Fatal(err)
	}
	var streams []*Stream
	for _, node := range nodes {
		s, err := NewClient(node.URL, o.Token.Token, 1).Listen(ctx, o.Workspace.ID, "", "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		streams = append(streams, s)
	}
	made, err := NewClient(nodes[0].URL, o.Token.Token, 1).Do(ctx, http.MethodPost, "/workspaces/"+o.Workspace.ID+"/issues", object{"title": "told"})
	if err != nil || made.Status != http.StatusCreated {
		t.Fatalf("%v, %+v", err, made)
	}
	for n, s := range streams {
		if e, err := s.Next(); err != nil || e.Type != "issue.created" || e.Data.Title != "told" {
			t.Errorf("node %d: %+v, %v", n+1, e, err)
		}
	}
}
