package tracker

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"net/url"
	"testing"

	"switchyard/internal/testkit"
)

// A signed call with any content gets an answer that says what is wrong with it, and
// leaves consistent state.
func FuzzInbound(f *testing.F) {
	testkit.Corpus(f)
	for _, body := range []string{
		`{"message":{"from":"a","text":"b","threadId":"c","subject":null}}`, `{"message":[]}`, `{"x":1e999}`, `{}`, `[`,
		`{"topic":"conversation.user.created","id":"n","data":{"item":{"id":7,"title":null,"source":{"body":"<p>x</p>","author":null},"conversation_parts":{"conversation_parts":[{"body":null}]}}}}`,
		`{"topic":"conversation.user.replied","data":{"item":{"id":"7","conversation_parts":null}}}`,
		pullJSON("opened", "open", "core-1 CORE-99", "body", "b", 2, true, false),
		`{"action":"completed","check_suite":{"head_branch":null,"status":"completed","conclusion":"success","pull_requests":[{"number":2}]},"repository":{"full_name":"acme/yard","html_url":"https://github.com/acme/yard"}}`,
		"From=%2B1&To=%2B15550100&Body=x%00&MediaUrl0=y", "payload=%7B%7D", "a=%", "a;b",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o := newInboundFixture(t)
		for _, source := range []string{"mail", sourceHelpdesk1} {
			o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{source}, Secret: Some("s")})
		}
		o.route(RouteSMS, "+15550100")
		o.route(RouteVCS, "acme/yard")
		o.created(CreateIssueIn{IssueFields: IssueFields{Branch: Some("b")}})
		form, err := url.ParseQuery(string(body))
		if err != nil {
			form = nil
		}
		sms := o.sms(form)
		sms.Body = body
		for name, call := range map[string]func() error{
			"comms": func() error { _, err := o.provider(ReceiveComms, o.comms("s", "", string(body))); return err },
			"helpdesk1": func() error {
				_, err := o.provider(ReceiveHelpdesk1, &ReceiveHelpdesk1In{Body: body, Signature: "sha1=" + hex.EncodeToString(o.macOf(sha1.New, "s", string(body)))})
				return err
			},
			"pull_request": func() error { _, err := o.provider(ReceiveVCS, o.vcs("pull_request", string(body))); return err },
			"check_suite":  func() error { _, err := o.provider(ReceiveVCS, o.vcs("check_suite", string(body))); return err },
			"sms":          func() error { _, err := o.provider(ReceiveSMS, sms); return err },
		} {
			var failure *Error
			if err := call(); err != nil && (!errors.As(err, &failure) || failure.Hint == "") {
				t.Errorf("%s: %v", name, err)
			}
		}
		o.verify()
	})
}
