package tracker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The webhooks of a file are held to the policy of the service that takes it, as new ones are.
func TestImport_HoldsWebhooksToThePolicy(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	made := 0
	webhook := func(url string) error {
		made++
		return w.line("webhook_subscription", fmt.Sprintf(`{"id":"01935000-0000-7000-8000-%012d","url":%q,"events":["*"],"isActive":true,"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`, made, url))
	}
	refused := func(url, why string) {
		t.Helper()
		var told *Error
		if err := webhook(url); !errors.As(err, &told) || told.Code != CodeBadRequest || !strings.Contains(told.Message, fmt.Sprintf("lines[%d]", w.n)) || !strings.Contains(told.Message, why) {
			t.Errorf("%s: %v", url, err)
		}
	}
	taken := func(url string) {
		t.Helper()
		if err := webhook(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	refused("http://example.com/", "data.url: Must begin with https://.")
	refused("https://10.0.0.1/", "data.url: Leads to a private")
	refused("https://localhost/", "data.url: Leads to a private")
	refused("https://example.com:25/", "data.url: Has a port")
	refused("https://ann@example.com/", "data.url: Must not contain a user name")
	for n := range DefaultWebhooksPerHost {
		taken(fmt.Sprint("https://example.com/", n))
	}
	refused("https://EXAMPLE.com./more", "--webhooks-per-host")
	taken("https://else.example/")
	// The operator allows them, and the import goes on.
	w.bufferOf(w.home.Workspace.ID.raw()).SetWebhookPolicy(WebhookPolicy{AllowHTTP: true, AllowPrivate: true, PerHost: DefaultWebhooksPerHost + 1})
	taken("http://10.0.0.1/")
	taken("https://example.com/more")
	w.verify()
}
