package httpapi

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"switchyard/actors/tracker"
)

// A page whose name leads to this machine sends that name as Host (DNS rebinding).
func TestTools_OriginsOfPages(t *testing.T) {
	t.Parallel()
	const public = "https://tracker.example:8443"
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, row := range map[string]struct {
		public  string
		headers []string // HERE stands for the listener's address, PORT for its port
		status  int
	}{
		"a program":                        {"", []string{"Host: HERE"}, 200},
		"a program, by another name":       {"", []string{"Host: tracker.example"}, 200},
		"own origin":                       {"", []string{"Host: HERE", "Origin: http://HERE"}, 200},
		"own origin, by name":              {"", []string{"Host: localhost:PORT", "Origin: http://localhost:PORT"}, 200},
		"own origin, through TLS":          {"", []string{"Host: localhost", "Origin: https://localhost"}, 200},
		"own origin, IPv6":                 {"", []string{"Host: [::1]:PORT", "Origin: http://[::1]:PORT"}, 200},
		"rebinding":                        {"", []string{"Host: evil.example", "Origin: http://evil.example"}, 403},
		"rebinding, with a port":           {"", []string{"Host: evil.example:PORT", "Origin: http://evil.example:PORT"}, 403},
		"rebinding, says the browser":      {"", []string{"Host: evil.example", "Origin: http://evil.example", "Sec-Fetch-Site: same-origin"}, 403},
		"rebinding, localhost in the name": {"", []string{"Host: localhost.evil.example", "Origin: http://localhost.evil.example"}, 403},
		"rebinding, own URI":               {"", []string{"Host: evil.example", "Origin: http://evil.example", "X-URI: http://evil.example"}, 403},
		"another origin":                   {"", []string{"Host: HERE", "Origin: http://evil.example"}, 403},
		"another port":                     {"", []string{"Host: HERE", "Origin: http://localhost:3000"}, 403},
		"no origin's page":                 {"", []string{"Host: HERE", "Origin: null"}, 403},
		"two origins":                      {"", []string{"Host: HERE", "Origin: http://HERE, http://evil.example"}, 403},
		"a file's page":                    {"", []string{"Host: HERE", "Origin: file://HERE"}, 403},
		"another site, no origin":          {"", []string{"Host: HERE", "Sec-Fetch-Site: cross-site"}, 403},
		"same site, no origin":             {"", []string{"Host: HERE", "Sec-Fetch-Site: same-site"}, 403},
		"the address bar":                  {"", []string{"Host: HERE", "Sec-Fetch-Site: none"}, 200},
		"public":                           {public, []string{"Host: tracker.example:8443", "Origin: " + public}, 200},
		"public, behind a proxy":           {public, []string{"Host: HERE", "Origin: https://Tracker.example:8443"}, 200},
		"public, own name":                 {public, []string{"Host: localhost:PORT", "Origin: http://localhost:PORT"}, 200},
		"public, other scheme":             {public, []string{"Host: HERE", "Origin: http://tracker.example:8443"}, 403},
		"public, rebinding":                {public, []string{"Host: evil.example", "Origin: http://evil.example"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(c *Config) { c.PublicURL = row.public })
			b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) { panic("not run") }))
			_, port, err := net.SplitHostPort(b.addr)
			if err != nil {
				t.Fatal(err)
			}
			lines := append([]string{"POST " + sessionTools + " HTTP/1.1", "Authorization: Bearer " + token, "Content-Length: " + itoa(len(ping))}, row.headers...)
			head := strings.NewReplacer("HERE", b.addr, "PORT", port).Replace(strings.Join(lines, "\r\n"))
			if uri, ok := strings.CutPrefix(row.headers[len(row.headers)-1], "X-URI: "); ok {
				head = strings.Replace(head, "POST ", "POST "+uri, 1)
			}
			if a := b.raw(t, 1, head+"\r\n\r\n"+ping)[0]; a.StatusCode != row.status {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
		})
	}
}

// A browser sends the POST of any page without asking first if it has no Content-Type. The console works by any
// name of the service, behind a proxy too.
func TestOnboarding_OriginsOfPages(t *testing.T) {
	t.Parallel()
	const public, allowed = "https://tracker.example:8443", "https://app.example"
	for name, row := range map[string]struct {
		headers string // HERE stands for the listener's address
		status  int
	}{
		"a program":                         {"Host: HERE", 201},
		"a program, by another name":        {"Host: build", 201},
		"own origin":                        {"Host: HERE|Origin: http://HERE|Sec-Fetch-Site: same-origin", 201},
		"own origin, by any name":           {"Host: build:8080|Origin: http://build:8080", 201},
		"public":                            {"Host: HERE|Origin: " + public + "|Sec-Fetch-Site: cross-site", 201},
		"allowed":                           {"Host: HERE|Origin: " + allowed + "|Sec-Fetch-Site: cross-site", 201},
		"through a proxy with another Host": {"Host: HERE|Origin: https://build.example|Sec-Fetch-Site: same-origin", 201},
		"the console, through a proxy":      {"Host: HERE|Origin: http://build.example|" + fromConsole, 201},
		"an extension":                      {"Host: HERE|Origin: chrome-extension://abcdefgh|Sec-Fetch-Site: none", 201},
		"another site":                      {"Host: HERE|Origin: https://evil.example|Sec-Fetch-Site: cross-site", 403},
		"another site, no origin":           {"Host: HERE|Sec-Fetch-Site: cross-site", 403},
		"a neighbor":                        {"Host: HERE|Origin: http://localhost:3000|Sec-Fetch-Site: same-site", 403},
		"another site, an old browser":      {"Host: HERE|Origin: https://evil.example", 403},
		"no origin's page":                  {"Host: HERE|Origin: null|Sec-Fetch-Site: cross-site", 403},
		"no origin's page, an old browser":  {"Host: HERE|Origin: null", 403},
		"a file's page":                     {"Host: HERE|Origin: file://HERE", 403},
		"the console's header of a page":    {"Host: HERE|Origin: https://evil.example|Sec-Fetch-Site: cross-site|" + fromConsole, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(c *Config) { c.PublicURL, c.CORSOrigins = public, []string{allowed} })
			b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
				return tracker.Reply{Outcome: tracker.Created, Body: []byte(`{"id":"x"}`)}, nil
			})
			headers := strings.NewReplacer("HERE", b.addr, "|", "\r\n").Replace(row.headers)
			a := b.raw(t, 1, "POST /found HTTP/1.1\r\nContent-Length: "+itoa(len(thingBody))+"\r\n"+headers+"\r\n\r\n"+thingBody)[0]
			if a.StatusCode != row.status {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
		})
	}
}

// An answer never calls the service by a name that only the request had.
func TestServer_AddressesInAnswers(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry := a.join(t, "a")
	a.join(t, "b")
	public := setup(t, func(c *Config) { c.PublicURL = "https://tracker.example/" })
	for _, row := range []struct {
		node      *bundle
		uri, host string
		base      string
	}{
		{entry, "", entry.addr, "http://" + entry.addr},
		{entry, "", "localhost:9", "http://localhost:9"},
		{entry, "", "LOCALHOST", "http://LOCALHOST"},
		{entry, "", "[::1]:80", "http://[::1]:80"},
		{entry, "", "127.9.9.9", "http://127.9.9.9"},
		{entry, "", "evil.example", "http://" + entry.addr},
		{entry, "", "localhost.evil.example", "http://" + entry.addr},
		{entry, "", "127.0.0.1@evil.example", "http://" + entry.addr},
		{entry, "", "localhost:80@evil.example", "http://" + entry.addr},
		{entry, "", "8.8.8.8", "http://" + entry.addr},
		{entry, "http://evil.example", "localhost:9", "http://" + entry.addr},
		{entry, "http://localhost:8", "evil.example", "http://localhost:8"},
		{entry, "HTTPS://localhost", "localhost:9", "http://localhost"},
		{public, "", "evil.example", "https://tracker.example"},
		{public, "http://evil.example", "evil.example", "https://tracker.example"},
	} {
		got := row.node.raw(t, 1, "GET "+row.uri+"/.well-known/oauth-authorization-server HTTP/1.1\r\nHost: "+row.host+"\r\n\r\n")[0]
		var metadata struct{ Issuer string }
		if err := json.Unmarshal([]byte(got.body), &metadata); err != nil || metadata.Issuer != row.base {
			t.Errorf("%s with Host %s: %d %s", row.uri, row.host, got.StatusCode, got.body)
		}
	}
	for _, uri := range []string{"http://user@localhost", "http://user:pw@localhost:80"} {
		if got := entry.raw(t, 1, "GET "+uri+"/healthz HTTP/1.1\r\nHost: h\r\n\r\n")[0]; got.StatusCode != 400 {
			t.Errorf("%s: %d", uri, got.StatusCode)
		}
	}
}
