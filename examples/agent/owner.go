package main

import (
	"fmt"
	"net/url"
	"strings"
)

// ownerHeader names, on an answer that one node got from another, the URL of that
// other node: it serves the workspace, and asking it directly spares a step.
const ownerHeader = "Switchyard-Owner"

// parseNodes reads the URLs of -nodes, separated by commas.
func parseNodes(text string) ([]string, error) {
	var nodes []string
	for node := range strings.SplitSeq(text, ",") {
		node = strings.TrimSuffix(strings.TrimSpace(node), "/")
		if node == "" {
			continue
		}
		u, err := url.Parse(node)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || node != u.Scheme+"://"+u.Host {
			return nil, fmt.Errorf("-nodes: %q is not the http://host:port or https://host:port of a node", node)
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// address is where the next request goes: to the workspace's owner if one is known,
// else to the address that was given.
func (c *client) address() string {
	if owner := c.owner.Load(); owner != nil {
		return *owner
	}
	return c.base
}

// learn takes note of the owner that an answer names. Requests carry tokens, so only
// a URL that was given with -nodes is used, compared as a whole, its scheme included:
// an answer can never send a token anywhere else.
func (c *client) learn(named string) {
	for i := range c.nodes {
		if c.nodes[i] == named {
			c.owner.Store(&c.nodes[i])
		}
	}
}

// forget has the next request go to the address that was given, if the last one went
// to the owner.
func (c *client) forget(asked string) {
	if owner := c.owner.Load(); owner != nil && *owner == asked {
		c.owner.CompareAndSwap(owner, nil)
	}
}
