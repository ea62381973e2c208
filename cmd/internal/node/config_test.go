package node

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/actors/delivery"
	"switchyard/actors/tracker"
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

// Go's listener takes an empty address for every address of the machine, at any port.
func TestConfig_HTTP(t *testing.T) {
	t.Parallel()
	for address, fine := range map[string]bool{
		"127.0.0.1:0": true, ":8080": true, "[::1]:8080": true, "tracker:8080": true,
		"": false, "8080": false, "127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:65536": false,
	} {
		c := sane()
		c.HTTP = address
		if err := c.validate(); (err == nil) != fine || err != nil && !strings.HasPrefix(err.Error(), "--http ") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// The addresses in answers begin with the public URL, and the console's cookies and origin
// follow from it.
func TestConfig_PublicURL(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "http://127.0.0.1:8080", "https://yard.example", "https://yard.example/", "https://[fd00::1]:8443/tracker"} {
		c := sane()
		c.PublicURL = text
		if err := c.validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{
		"foo", "yard.example", "yard.example:8080", "//yard.example", "ftp://yard.example", "HTTPS://yard.example", "http:yard.example", "http://", "http://:8080", "http:///api",
		"http://yard.example?", "http://yard.example?q", "http://yard.example#", "http://yard.example/#top", "http://ann:secret@yard.example", "http://@yard.example",
		"http://yard.example/a b", " http://yard.example", "http://yard.example\n", "http://yard.example:x", "http://yärd.example",
	} {
		c := sane()
		c.PublicURL = text
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), "--public-url: must be like") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestConfig_AuditRetention(t *testing.T) {
	t.Parallel()
	for retention, fine := range map[time.Duration]bool{0: true, time.Hour: true, 100_000 * time.Hour: true, -time.Hour: false, time.Nanosecond: false, 59 * time.Minute: false} {
		c := sane()
		c.AuditRetention = retention
		if err := c.validate(); (err == nil) != fine || err != nil && !strings.Contains(err.Error(), "--audit-retention") {
			t.Errorf("%s: %v", retention, err)
		}
	}
}

// A bench on a laptop never meets a rate; a node that others reach has them.
func TestConfig_WebhookRates(t *testing.T) {
	t.Parallel()
	strict := delivery.Rate{Requests: defaultWorkspaceRequests, Bytes: defaultWorkspaceBytes}
	for name, row := range map[string]struct {
		http, public string
		set          WebhookRates
		want         delivery.Rate
	}{
		"loopback":                {"127.0.0.1:8080", "", WebhookRates{}, delivery.Rate{}},
		"loopback, said so":       {"localhost:8080", "http://127.0.0.1:8080", WebhookRates{}, delivery.Rate{}},
		"loopback behind a proxy": {"127.0.0.1:8080", "https://yard.example", WebhookRates{}, strict},
		"public":                  {"0.0.0.0:8080", "", WebhookRates{}, strict},
		"public, off":             {":8080", "", WebhookRates{WorkspaceRequests: -1, WorkspaceBytes: -1}, delivery.Rate{}},
		"loopback, set":           {"[::1]:8080", "", WebhookRates{WorkspaceRequests: 3}, delivery.Rate{Requests: 3}},
	} {
		c := sane()
		c.HTTP, c.PublicURL, c.WebhookRates = row.http, row.public, row.set
		if w, err := c.webhooks(); err != nil || w.Workspace != row.want {
			t.Errorf("%s: %+v, %v", name, w.Workspace, err)
		}
	}
	c := sane()
	c.HTTP, c.OpenInboundRoutes = "0.0.0.0:8080", true
	if w := c.Warnings(); !slices.ContainsFunc(w, func(s string) bool { return strings.Contains(s, "--inbound-routes=open") }) {
		t.Errorf("warnings %q", w)
	}
	for name, row := range map[string]struct {
		http, public string
		set, want    int
	}{
		"loopback":                {"127.0.0.1:8080", "", 0, tracker.MaxWebhooks},
		"loopback, set":           {"127.0.0.1:8080", "", 3, 3},
		"loopback behind a proxy": {"127.0.0.1:8080", "https://yard.example", 0, tracker.DefaultWebhooksPerHost},
		"public":                  {"0.0.0.0:8080", "", 0, tracker.DefaultWebhooksPerHost},
		"public, set":             {"0.0.0.0:8080", "", 30, 30},
	} {
		c := sane()
		c.HTTP, c.PublicURL, c.WebhooksPerHost = row.http, row.public, row.set
		if w, err := c.webhooks(); err != nil || w.Policy.PerHost != row.want {
			t.Errorf("%s: %d to a host, %v", name, w.Policy.PerHost, err)
		}
	}
	c = sane()
	c.WebhooksPerHost = -1
	if err := c.validate(); err == nil || !strings.Contains(err.Error(), "--webhooks-per-host") {
		t.Errorf("%v", err)
	}
	for flag, change := range map[string]func(*Config){
		"--webhooks-max-data":            func(c *Config) { c.WebhooksMaxData = 5 << 20 },
		"--inbound-routes-per-workspace": func(c *Config) { c.InboundRoutes = tracker.MaxInboundRoutes + 1 },
		"--inbound-claims-per-key":       func(c *Config) { c.InboundClaims = -1 },
	} {
		c := sane()
		change(&c)
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	for flag, change := range map[string]func(*Config){"--sms-secret": func(c *Config) { c.SMSSecret = "short" }, "--vcs1-secret": func(c *Config) { c.VCSSecret = "short" }} {
		c := sane()
		change(&c)
		if w := c.Warnings(); !slices.ContainsFunc(w, func(s string) bool { return strings.Contains(s, flag) }) {
			t.Errorf("%s: warnings %q", flag, w)
		}
	}
}
