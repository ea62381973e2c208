package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// Providers call whichever node their address leads to, and call again when it dies
// before it answers.
func TestCluster_TakesCallsOfProvidersOnEveryNode(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4", "--public-url", publicURL, "--sms-secret", smsSecret, "--vcs1-secret", vcsSecret)
	members := f.Members()
	onboarded, err := members[0].Client("").Onboard(ctx, "yard", "yard")
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, id: onboarded.Workspace.ID, describes: described(t, members[0].URL)} //nolint:bodyclose // send closes the responses
	at := func(i int) {
		d.base, d.home = members[i].URL, members[i].Client(onboarded.Token.Token)
	}
	comms, sms, pull := recorded(t, "comms.message.json"), recorded(t, "sms.form"), recorded(t, "pull_request.opened.json")
	at(0)
	secret := d.secret(d.home, d.id, "mail", "")
	issue := d.issue()
	at(1)
	d.route("vcs1/acme/yard")
	at(2)
	d.route("sms/+15550100")
	sid := func(n int) []byte {
		return bytes.ReplaceAll(sms, []byte("SM0123456789abcdef0123456789abcdef"), fmt.Appendf(nil, "SM%d", n))
	}
	named := func(n int) []string {
		return append(signComms(secret, time.Now(), comms), "X-Tracker-Delivery", fmt.Sprint(n))
	}
	tickets := map[string]bool{}
	for i := range members {
		at(i)
		tickets[d.send("/webhooks/comms/"+d.id+"/mail", jsonType, comms, http.StatusAccepted, named(i)...).TicketID] = true
		tickets[d.send("/support/sms/inbound", formType, sid(i), http.StatusAccepted, signSMS(smsSecret, sid(i))...).TicketID] = true
		if a := d.send("/vcs1", jsonType, pull, http.StatusAccepted, signVCS(vcsSecret, "pull_request", fmt.Sprint(i), pull)...); len(a.IssueIDs) != 1 || a.IssueIDs[0] != issue {
			t.Errorf("%s: %+v", members[i].Name, a)
		}
	}
	if len(tickets) != 2 {
		t.Errorf("two conversations made tickets %v", tickets)
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
	at(left)
	// What was taken before is known to the next owner as well.
	for i := range members {
		for path, again := range map[string]func() (string, []byte, []string){
			"/webhooks/comms/" + d.id + "/mail": func() (string, []byte, []string) { return jsonType, comms, named(i) },
			"/support/sms/inbound":              func() (string, []byte, []string) { return formType, sid(i), signSMS(smsSecret, sid(i)) },
			"/vcs1": func() (string, []byte, []string) {
				return jsonType, pull, signVCS(vcsSecret, "pull_request", fmt.Sprint(i), pull)
			},
		} {
			contentType, body, headers := again()
			status, answer, err := 0, []byte(nil), error(nil)
			for status == 0 || status == http.StatusServiceUnavailable { // as providers do
				if status, answer, err = d.post(ctx, path, contentType, body, headers...); err != nil {
					t.Fatal(err)
				}
			}
			if status != http.StatusOK || !bytes.Contains(answer, []byte(`"duplicate":true`)) {
				t.Errorf("%s again: %d %s", path, status, answer)
			}
		}
	}
	for _, m := range members {
		if m.Name == owner {
			continue
		}
		stop, done := context.WithTimeout(ctx, 15*time.Second)
		if err := m.Terminate(stop); err != nil {
			t.Error(err)
		}
		done()
		if err := Verify(ctx, f.Binary, m.Data); err != nil {
			t.Error(err)
		}
	}
}
