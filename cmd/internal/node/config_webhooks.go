package node

import (
	"cmp"
	"fmt"
	"net/netip"

	"switchyard/actors"
	"switchyard/actors/delivery"
	"switchyard/actors/tracker"
)

// WebhookRates bound webhook deliveries in a second; deliveries over them wait. 0 means
// the default, which is no bound if the API is for this machine alone, and a negative
// number no bound.
type WebhookRates struct {
	// WorkspaceRequests and WorkspaceBytes are those of each workspace, HostRequests and
	// HostBytes those to each host, over all workspaces that this node serves.
	WorkspaceRequests, WorkspaceBytes, HostRequests, HostBytes int
}

// The rates of a node that other machines reach. One workspace has a quarter of a host's
// rate, so that it can't delay the deliveries of others to that host.
const (
	defaultWorkspaceRequests = 50
	defaultHostRequests      = 200
	defaultWorkspaceBytes    = 2 << 20
	defaultHostBytes         = 8 << 20
	// maxWebhookData bounds --webhooks-max-data: deliveries stay requests that receivers take.
	maxWebhookData = 4 << 20
)

// webhooks is the configuration of deliveries.
func (c Config) webhooks() (actors.Webhooks, error) {
	policy, err := c.webhookPolicy()
	if err != nil {
		return actors.Webhooks{}, err
	}
	rate := func(set, byDefault int) int {
		if set < 0 || set == 0 && !c.exposed() {
			return 0
		}
		if set == 0 {
			return byDefault
		}
		return set
	}
	r := c.WebhookRates
	return actors.Webhooks{
		Policy:    policy,
		MaxData:   c.WebhooksMaxData,
		Workspace: delivery.Rate{Requests: rate(r.WorkspaceRequests, defaultWorkspaceRequests), Bytes: rate(r.WorkspaceBytes, defaultWorkspaceBytes)},
		Host:      delivery.Rate{Requests: rate(r.HostRequests, defaultHostRequests), Bytes: rate(r.HostBytes, defaultHostBytes)},
	}, nil
}

// webhookPolicy says where webhooks may lead.
func (c Config) webhookPolicy() (tracker.WebhookPolicy, error) {
	perHost := tracker.DefaultWebhooksPerHost
	if !c.exposed() {
		perHost = tracker.MaxWebhooks
	}
	p := tracker.WebhookPolicy{AllowHTTP: c.WebhooksAllowHTTP, AllowPrivate: c.WebhooksAllowPrivate, PerHost: cmp.Or(c.WebhooksPerHost, perHost)}
	if c.WebhooksPerHost < 0 {
		return p, fmt.Errorf("--webhooks-per-host %d: must be at least 1", c.WebhooksPerHost)
	}
	if c.WebhooksMaxData < 0 || c.WebhooksMaxData > maxWebhookData {
		return p, fmt.Errorf("--webhooks-max-data %d: must be from 1 byte to 4MiB", c.WebhooksMaxData)
	}
	for _, text := range c.WebhooksAllowCIDR {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix != prefix.Masked() {
			return p, fmt.Errorf("--webhooks-allow-cidr %q: must be a range such as 10.1.0.0/16 or fd00::/8", text)
		}
		p.Allow = append(p.Allow, prefix)
	}
	return p, nil
}
