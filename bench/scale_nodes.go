package bench

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Cluster is several nodes under measurement.
type Cluster struct {
	Nodes []*Process
	// Root is the operator's token.
	Root string
	// Stop ends the nodes and removes what they left.
	Stop func() error
}

func (c *Cluster) urls() []string {
	urls := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		urls[i] = n.URL
	}
	return urls
}

// StartCluster starts nodes with empty data below dir, which form one cluster and tell
// clients the address of each. A single node runs without a cluster.
func (b Binary) StartCluster(ctx context.Context, dir string, nodes, shards int) (c *Cluster, err error) {
	data, err := os.MkdirTemp(dir, scratchName)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	c = &Cluster{Root: rand.Text(), Nodes: make([]*Process, nodes)}
	c.Stop = func() error {
		faults := make([]error, len(c.Nodes))
		var all sync.WaitGroup
		for i, n := range c.Nodes {
			if n != nil {
				all.Go(func() { faults[i] = n.Stop() })
			}
		}
		all.Wait()
		return errors.Join(append(faults, os.RemoveAll(data))...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	root, gossip := filepath.Join(data, "root"), filepath.Join(data, "key")
	err = errors.Join(os.WriteFile(root, []byte(c.Root), 0o600), os.WriteFile(gossip, []byte(base64.StdEncoding.EncodeToString(key[:])), 0o600))
	if err != nil {
		return c, fmt.Errorf("bench: %w", err)
	}
	addrs, err := freeAddrs(3 * nodes)
	if err != nil {
		return c, err
	}
	http, peer, seeds := addrs[:nodes], addrs[nodes:2*nodes], addrs[2*nodes:]
	faults := make([]error, nodes)
	var all sync.WaitGroup
	for i := range nodes {
		name := "node-" + strconv.Itoa(i+1)
		args := []string{"serve", "--node-name", name, "--data", filepath.Join(data, name), "--http", http[i], "--metrics=", "--log-level", "warn", "--shards", strconv.Itoa(shards), "--root-token-file", root}
		if nodes > 1 {
			args = append(args, "--peer", peer[i], "--gossip", seeds[i], "--join", strings.Join(seeds, ","), "--bootstrap-expect", strconv.Itoa(nodes),
				"--gossip-key-file", gossip, "--client-url", "http://"+http[i])
		}
		// None is ready before the cluster is, so all are awaited at once.
		all.Go(func() { c.Nodes[i], faults[i] = start(ctx, "http://"+http[i], "/readyz", "", b.Path, args...) })
	}
	all.Wait()
	return c, errors.Join(faults...)
}
