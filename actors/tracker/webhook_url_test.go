package tracker

import (
	"net/netip"
	"strings"
	"testing"

	"switchyard/internal/testkit"
)

func TestWebhookPolicy_Permits(t *testing.T) {
	t.Parallel()
	strict := WebhookPolicy{}
	some := WebhookPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("127.0.0.1/32")}}
	any := WebhookPolicy{AllowPrivate: true}
	for _, row := range []struct {
		address      string
		strict, some bool
	}{
		{"93.184.216.34", true, true},
		{"1.1.1.1", true, true},
		{"2606:2800:220:1:248:1893:25c8:1946", true, true},
		{"::ffff:93.184.216.34", true, true},
		{"10.1.2.3", false, true},
		{"::ffff:10.1.2.3", false, true},
		{"10.2.0.1", false, false},
		{"127.0.0.1", false, true},
		{"127.0.0.2", false, false},
		{"::ffff:127.0.0.2", false, false},
		{"fd12::1", false, true},
		{"fc12::1", false, false},
		{"::1", false, false}, {"::", false, false}, {"0.0.0.0", false, false}, {"0.1.2.3", false, false},
		{"169.254.169.254", false, false}, {"fe80::1", false, false}, {"fe80::1%eth0", false, false}, {"fec0::1", false, false},
		{"172.16.0.1", false, false}, {"172.31.255.255", false, false}, {"172.32.0.1", true, true}, {"192.168.1.1", false, false},
		{"100.64.0.1", false, false}, {"100.127.255.255", false, false}, {"100.128.0.1", true, true},
		{"192.0.0.170", false, false}, {"192.0.2.1", false, false}, {"198.18.0.1", false, false}, {"198.51.100.1", false, false}, {"203.0.113.1", false, false},
		{"224.0.0.1", false, false}, {"239.255.255.255", false, false}, {"240.0.0.1", false, false}, {"255.255.255.255", false, false}, {"ff02::1", false, false},
		{"::127.0.0.1", false, false}, {"64:ff9b::10.0.0.1", false, false}, {"64:ff9b:1::1", false, false}, {"2002:a00:1::1", false, false}, {"2002:7f00:1::", false, false},
		{"2001::1", false, false}, {"2001:db8::1", false, false}, {"100::1", false, false}, {"5f00::1", false, false}, {"3fff::1", false, false}, {"192.88.99.1", false, false},
	} {
		a := netip.MustParseAddr(row.address)
		if strict.Permits(a) != row.strict || some.Permits(a) != row.some || !any.Permits(a) {
			t.Errorf("%s: %t %t %t", a, strict.Permits(a), some.Permits(a), any.Permits(a))
		}
	}
	if any.Permits(netip.Addr{}) {
		t.Error("no address is permitted")
	}
}

func TestWebhookURL_Faults(t *testing.T) {
	t.Parallel()
	open := WebhookPolicy{AllowHTTP: true, AllowPrivate: true}
	strict := WebhookPolicy{}
	for _, row := range []struct {
		url          string
		shape        bool // valid under any policy
		strict, open bool
	}{
		{"https://example.com", true, true, true},
		{"https://example.com:8443/a/b?c=d&e=%20", true, true, true},
		{"HTTPS://EXAMPLE.COM/", true, true, true},
		{"https://xn--bcher-kva.example/", true, true, true},
		{"https://a_b.example./", true, true, true},
		{"https://1.example/", true, true, true},
		{"https://example.0x/", false, false, false}, // a number to some parsers
		{"https://93.184.216.34/", true, true, true},
		{"https://[2606:2800:220:1:248:1893:25c8:1946]:1/", true, false, true},
		{"https://example.com:22/", true, false, true},
		{"https://example.com:1023/", true, false, true},
		{"https://example.com:1024/", true, true, true},
		{"https://example.com:443/", true, true, true},
		{"https://example.com:80/", true, true, true},
		{"http://example.com/", true, false, true},
		{"https://127.0.0.1/", true, false, true},
		{"https://127.0.0.1./", true, false, true},
		{"https://localhost/", true, false, true},
		{"https://LOCALHOST./", true, false, true},
		{"https://x.y.localhost:1/", true, false, true},
		{"https://[::ffff:127.0.0.1]/", true, false, true},
		{"https://[::1]/", true, false, true},
		{"https://[fe80::1%25eth0]/", false, false, false},
		{"https://2130706433/", false, false, false},
		{"https://0x7f000001/", false, false, false},
		{"https://0X7F.1/", false, false, false},
		{"https://017700000001/", false, false, false},
		{"https://0177.0.0.1/", false, false, false},
		{"https://127.1/", false, false, false},
		{"https://127.0.0.1.1/", false, false, false},
		{"https://256.1.1.1/", false, false, false},
		{"https://10.0.0.0x1/", false, false, false},
		{"https://\uff11\uff12\uff17.0.0.1/", false, false, false}, // full-width digits
		{"https://b\u00fccher.example/", false, false, false},
		{"https://127.0.0.1%2f.example/", false, false, false},
		{"https://exa mple.com/", false, false, false},
		{"https://example.com\\@127.0.0.1/", false, false, false},
		{"https://user@example.com/", false, false, false},
		{"https://:word@example.com/", false, false, false},
		{"https://@example.com/", false, false, false},
		{"https://example.com:/", false, false, false},
		{"https://example.com:0/", false, false, false},
		{"https://example.com:65535/", true, true, true},
		{"https://example.com:65536/", false, false, false},
		{"https://example.com:http/", false, false, false},
		{"https://example.com:-1/", false, false, false},
		{"https://example.com/#", false, false, false},
		{"https://example.com/#x", false, false, false},
		{"https:example.com", false, false, false},
		{"https:///path", false, false, false},
		{"https://:443/", false, false, false},
		{"//example.com/", false, false, false},
		{"/hook", false, false, false},
		{"example.com", false, false, false},
		{"", false, false, false},
		{"ftp://example.com/", false, false, false},
		{"file:///etc/passwd", false, false, false},
		{"gopher://127.0.0.1:70/_x", false, false, false},
		{"javascript:alert(1)", false, false, false},
		{"https://[::1/", false, false, false},
		{"https://[127.0.0.1]/", false, false, false},
		{"https://::1/", false, false, false},
		{"https://example.com/\x00", false, false, false},
		{"https://example.com/a\nb", false, false, false},
	} {
		shape := webhookURLFault(row.url) == ""
		if shape != row.shape {
			t.Errorf("%q: shape %q", row.url, webhookURLFault(row.url))
			continue
		}
		if !shape {
			continue
		}
		if got := strict.fault(row.url); (got == "") != row.strict {
			t.Errorf("%q: strict %q", row.url, got)
		}
		if got := open.fault(row.url); (got == "") != row.open {
			t.Errorf("%q: open %q", row.url, got)
		}
	}
}

// No accepted host is an address to another parser.
func FuzzWebhookURL(f *testing.F) {
	testkit.Corpus(f)
	for _, s := range []string{"https://example.com/", "https://127.0.0.1/", "https://[::1]:8080/x", "http://0x7f.1", "https://a.b.c.d:1/?q#f"} {
		f.Add(s)
	}
	strict := WebhookPolicy{}
	f.Fuzz(func(t *testing.T, s string) {
		if webhookURLFault(s) != "" || strict.fault(s) != "" {
			return
		}
		if !strings.HasPrefix(strings.ToLower(s), "https://") {
			t.Errorf("%q is accepted", s)
		}
		if strings.Contains(s, "\n") || strings.Contains(s, "\x00") {
			t.Errorf("%q is accepted", s)
		}
	})
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for pattern, good := range map[string]bool{
		"*": true, "issue.*": true, "issue.created": true, "vcs.*": true, "vcs.event": true, "session.escalated": true,
		"issue": false, "issue.": false, "issue.c*": false, "iss*": false, "issue.nope": false, "*.created": false, "webhook.test": false, "webhook.*": false, "**": false, "Issue.*": false,
	} {
		if fault := Forms()["eventPattern"].Fault(pattern); (fault == "") != good {
			t.Errorf("%q: %q", pattern, fault)
		}
	}
	if !matchesEvent("issue.*", "issue.created") || matchesEvent("issue.*", "issues.created") || matchesEvent("issue.created", "issue.created2") || !matchesEvent("*", "x.y") {
		t.Error("patterns match what they should not")
	}
}

func TestSecretFault(t *testing.T) {
	t.Parallel()
	for secret, good := range map[string]bool{
		"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3":                                   true, // 24
		"whsec_" + strings.Repeat("AAAA", 10) + "AAA=":                             true, // 32
		"whsec_" + strings.Repeat("AAAA", 21) + "AA==":                             true, // 64
		"whsec_" + strings.Repeat("AAAA", 21) + "AAA=":                             false,
		"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY":                                    false,
		"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY=":                                   false, // 23
		"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3":                                         false,
		"whsec_":                                                                   false,
		"whsec_" + strings.Repeat("AAAA", 8) + "\n":                                false,
		"whsec_----Nzg5YWJjZGVmMDEyMzQ1Njc4":                                       false,
		"whsec_" + strings.Repeat("A", 43):                                         false,
		"WHSEC_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3":                                   false,
		"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\r": false,
	} {
		fault := secretFault(secret)
		if (fault == "") != good {
			t.Errorf("%q: %q", secret, fault)
		}
		if len(secret) > 10 && strings.Contains(fault, secret[6:]) {
			t.Errorf("the fault quotes the secret")
		}
	}
}
