package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// Providers call whichever node their address leads to, and call again when it dies
// before it answers.
func TestCluster_TakesCallsOfProvidersOnEveryNode(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4", "--public-url", publicURL, "--sms-secret", smsSecret, "--vcs1-secret", vcsSecret)
	members := f.Members()
	onboarded, err := members[0].Client("").onboardInsisting(ctx, "yard", "yard")
	if err != nil {
		t.Fatal(err)
	}
	if err := members[0].Await(ctx, "the replicas are spread", Level(3)); err != nil {
		t.Fatal(err)
	}
	d := &inboundFixture{T: t, id: onboarded.Workspace.ID}
	workspace := "/workspaces/" + d.id
	// do repeats what may be done twice until it was done: shards may still move.
	do := func(on int, token, method, path string, body, out any) {
		t.Helper()
		for {
			answer, err := members[on].Client(token).Do(ctx, method, workspace+path, body)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status == http.StatusServiceUnavailable {
				continue
			}
			if answer.Status >= 300 || json.Unmarshal(answer.Body, out) != nil {
				t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
			}
			return
		}
	}
	var source struct{ Secret string }
	var route struct{ Key string }
	var issue Issue
	do(0, onboarded.Token.Token, "PUT", "/inbound-secrets/mail", map[string]string{}, &source)
	do(1, f.Root, "PUT", "/inbound-routes/vcs1/acme/yard", nil, &route)
	do(2, f.Root, "PUT", "/inbound-routes/sms/+15550100", nil, &route)
	do(1, onboarded.Token.Token, "POST", "/issues", map[string]string{"title": "Logins fail", "externalRef": "one"}, &issue)

	comms, sms, pull := recorded(t, "comms.message.json"), recorded(t, "sms.form"), recorded(t, "pull_request.opened.json")
	calls := map[string]func(n int) (path, contentType string, body []byte, headers []string){
		"comms": func(n int) (string, string, []byte, []string) {
			body := padded(comms, n)
			return "/webhooks/comms/" + d.id + "/mail", jsonType, body, append(signComms(source.Secret, time.Now(), body), "X-Tracker-Delivery", fmt.Sprint(n))
		},
		"sms": func(n int) (string, string, []byte, []string) {
			body := bytes.ReplaceAll(sms, []byte("SM0123456789abcdef0123456789abcdef"), fmt.Appendf(nil, "SM%d", n))
			return "/support/sms/inbound", formType, body, signSMS(smsSecret, body)
		},
		"vcs1": func(n int) (string, string, []byte, []string) {
			body := padded(pull, n)
			return "/vcs1", jsonType, body, signVCS(vcsSecret, "pull_request", fmt.Sprint(n), body)
		},
	}
	// call calls again while it is told to, as providers do.
	call := func(on int, name string, n int) (a inboundAnswer) {
		t.Helper()
		d.base = members[on].URL
		for {
			path, contentType, body, headers := calls[name](n)
			status, answer, err := d.post(ctx, path, contentType, body, headers...)
			if err != nil {
				t.Fatal(err)
			}
			if status == http.StatusServiceUnavailable {
				continue
			}
			if status != http.StatusOK && status != http.StatusAccepted || json.Unmarshal(answer, &a) != nil {
				t.Fatalf("%s: %d %s", name, status, answer)
			}
			return a
		}
	}
	for n := range members {
		for name := range calls {
			if a := call(n, name, n); name == "vcs1" && !a.Duplicate && (len(a.IssueIDs) != 1 || a.IssueIDs[0] != issue.ID) {
				t.Errorf("%s: %+v", members[n].Name, a)
			}
		}
	}
	owner, err := members[0].Owner(ctx, d.id)
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for i, m := range members {
		if m.Name == owner {
			m.Kill()
		} else {
			left = i
		}
	}
	// The next owner knows the calls that were taken before.
	for n := range members {
		for name := range calls {
			if a := call(left, name, n); !a.Duplicate {
				t.Errorf("%s again: %+v", name, a)
			}
		}
	}
	var list struct{ Tickets []struct{ MessageCount int } }
	do(left, onboarded.Token.Token, "GET", "/tickets", nil, &list)
	if len(list.Tickets) != 2 || list.Tickets[0].MessageCount != 3 || list.Tickets[1].MessageCount != 3 {
		t.Errorf("two conversations of three messages became %+v", list)
	}
	for _, m := range members {
		if m.Name == owner {
			continue
		}
		stop, done := context.WithTimeout(ctx, 30*time.Second)
		if err := m.Terminate(stop); err != nil {
			t.Error(err)
		}
		done()
		if err := Verify(ctx, f.Binary, m.Data); err != nil {
			t.Error(err)
		}
	}
}

// padded is a JSON text in other bytes for each n: the same bytes would be a repeat.
func padded(body []byte, n int) []byte {
	return append(bytes.Clone(body), bytes.Repeat([]byte{' '}, n)...)
}
