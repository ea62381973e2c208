package node

import (
	"testing"

	"switchyard/httpapi"
)

// A node takes as many connections with forwarded requests at its peer port as its server of the API does.
func TestNode_TakesAsManyForwardedRequestsAsTheAPI(t *testing.T) {
	t.Parallel()
	const clients = 7
	n := started(t, func(c *Config) { c.Shares.MaxConnections = clients })
	cfg, err := n.clusterConfig(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := httpapi.MaxPeerConnections(clients); cfg.MaxForwarded != want {
		t.Errorf("%d connections, want %d", cfg.MaxForwarded, want)
	}
}
