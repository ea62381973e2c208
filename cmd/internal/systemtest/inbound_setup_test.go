package systemtest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"switchyard/cmd/internal/node"
)

const (
	smsSecret = "token-of-the-sms-account"
	vcsSecret = "It's a Secret to Everybody"
	publicURL = "https://switchyard.example.com"
)

// inboundFixture is a node with two workspaces that accepts calls of providers.
type inboundFixture struct {
	*testing.T
	base        string
	home, other *Client
	id, otherID string
}

func newInboundFixture(t *testing.T) *inboundFixture {
	t.Helper()
	n := inProcess(t, func(c *node.Config) { c.SMSSecret, c.VCSSecret, c.PublicURL = smsSecret, vcsSecret, publicURL+"/" })
	d := &inboundFixture{T: t, base: "http://" + n.HTTPAddr()}
	for i, slug := range []string{"yard", "else"} {
		c := NewClient(d.base, "", 4)
		o, err := c.Onboard(t.Context(), slug, slug)
		if err != nil {
			t.Fatal(err)
		}
		c.Token = o.Token.Token
		if i == 0 {
			d.home, d.id = c, o.Workspace.ID
		} else {
			d.other, d.otherID = c, o.Workspace.ID
		}
	}
	return d
}

// inboundAnswer is what the tests look at of an answer to a provider.
type inboundAnswer struct {
	Accepted, Duplicate          bool
	TicketID, MessageID, EventID string
	IssueIDs                     []string
}

// send posts bytes as a provider does; headers come in pairs.
func (d *inboundFixture) send(path, contentType string, body []byte, want int, headers ...string) (a inboundAnswer) {
	d.Helper()
	status, answer, err := d.post(d.Context(), path, contentType, body, headers...)
	if err != nil {
		d.Fatal(err)
	}
	if status != want {
		d.Fatalf("POST %s: %d, want %d: %s", path, status, want, answer)
	}
	if status < 300 {
		if err := json.Unmarshal(answer, &a); err != nil || !a.Accepted {
			d.Fatalf("POST %s: %s, %v", path, answer, err)
		}
	}
	return a
}

func (d *inboundFixture) post(ctx context.Context, path, contentType string, body []byte, headers ...string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	answer, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return res.StatusCode, answer, err
}

// get reads what there is at a path of the first workspace.
func (d *inboundFixture) get(path string) (v map[string]any) {
	d.Helper()
	if err := d.home.Decode(d.Context(), "GET", "/workspaces/"+d.id+path, nil, http.StatusOK, &v); err != nil {
		d.Fatal(err)
	}
	return v
}

// nothing fails when either workspace has a ticket.
func (d *inboundFixture) nothing() {
	d.Helper()
	for id, c := range map[string]*Client{d.id: d.home, d.otherID: d.other} {
		var list struct{ Tickets []any }
		if err := c.Decode(d.Context(), "GET", "/workspaces/"+id+"/tickets", nil, http.StatusOK, &list); err != nil {
			d.Fatal(err)
		}
		if len(list.Tickets) > 0 {
			d.Errorf("something was stored: %v", list.Tickets)
		}
	}
}

func (d *inboundFixture) secret(c *Client, id, source, secret string) string {
	d.Helper()
	var made struct{ Secret string }
	body := map[string]string{}
	if secret != "" {
		body["secret"] = secret
	}
	if err := c.Decode(d.Context(), "PUT", "/workspaces/"+id+"/inbound-secrets/"+source, body, http.StatusOK, &made); err != nil {
		d.Fatal(err)
	}
	return made.Secret
}

// route makes a route active as the operator does.
func (d *inboundFixture) route(key string) {
	d.Helper()
	if err := NewClient(d.base, rootToken, 1).Decode(d.Context(), "PUT", "/workspaces/"+d.id+"/inbound-routes/"+key, nil, http.StatusOK, nil); err != nil {
		d.Fatal(err)
	}
}

func recorded(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "inbound", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func hmacOf(h func() hash.Hash, secret string, parts ...[]byte) []byte {
	mac := hmac.New(h, []byte(secret))
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// signComms gives the headers of a call that is signed at a moment.
func signComms(secret string, at time.Time, body []byte) []string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return []string{"X-Tracker-Timestamp", stamp, "X-Tracker-Signature", hex.EncodeToString(hmacOf(sha256.New, secret, []byte(stamp+"."), body))}
}

func signHelpdesk(secret string, body []byte) []string {
	return []string{"X-Hub-Signature", "sha1=" + hex.EncodeToString(hmacOf(sha1.New, secret, body))}
}

func signVCS(secret, event, delivery string, body []byte) []string {
	return []string{
		"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(hmacOf(sha256.New, secret, body)),
		"X-GitHub-Event", event, "X-GitHub-Delivery", delivery,
	}
}

func signSMS(secret string, body []byte) []string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		panic(err)
	}
	text := publicURL + "/support/sms/inbound"
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text += name + form.Get(name)
	}
	return []string{"X-Twilio-Signature", base64.StdEncoding.EncodeToString(hmacOf(sha1.New, secret, []byte(text)))}
}

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded; charset=UTF-8"
)
