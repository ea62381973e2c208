package node

import (
	"net/netip"
	"strings"
	"testing"
)

func TestConfig_WebhookPolicy(t *testing.T) {
	t.Parallel()
	c := sane()
	c.WebhooksAllowHTTP, c.WebhooksAllowCIDR = true, []string{"10.1.0.0/16", "fd00::/8"}
	p, err := c.webhookPolicy()
	if err != nil || !p.AllowHTTP || p.AllowPrivate || !p.Permits(netip.MustParseAddr("10.1.2.3")) || p.Permits(netip.MustParseAddr("10.2.0.1")) {
		t.Errorf("policy %+v, %v", p, err)
	}
	if err := c.validate(); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "10.1.0.0", "10.1.2.3/16", "10.1.0.0/33", "localhost"} {
		c.WebhooksAllowCIDR = []string{text}
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), "--webhooks-allow-cidr") {
			t.Errorf("%q: %v", text, err)
		}
	}
	c = sane()
	c.WebhooksAllowPrivate = true
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "--webhooks-allow-private") {
		t.Errorf("warnings %q", w)
	}
}
