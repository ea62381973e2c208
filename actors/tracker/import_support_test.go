package tracker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"switchyard/storage"
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

// The event log of a copy begins anew: the event with the sequence number of an imported delivery
// is another one. The event of a test follows from the delivery alone.
func TestImport_DeliveriesOfOtherEventsAreNotMadeAgain(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const (
		hook      = "01935000-0000-7000-8000-000000000001"
		delivered = "01935000-0001-7000-8000-000000000001"
		tested    = "01935000-0002-7000-8000-000000000001"
		at        = "2026-01-01T00:00:00.000Z"
	)
	taken := func(kind, data string) {
		t.Helper()
		if err := w.line(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	taken("webhook_subscription", fmt.Sprintf(`{"id":%q,"url":"https://example.com/","events":["*"],"isActive":true,"createdAt":%[2]q,"updatedAt":%[2]q}`, hook, at))
	const over = `{"id":%q,"subscriptionId":%q,"eventId":%q,"eventType":%q,"eventSequence":%s,"status":"failed","attempts":9,"lastAttemptAt":%[6]q,"createdAt":%[6]q}`
	taken("webhook_delivery", fmt.Sprintf(over, delivered, hook, "01935000-0001-7000-8000-000000000000", "issue.created", "1", at))
	taken("webhook_delivery", fmt.Sprintf(over, tested, hook, tested, "webhook.test", "null", at))
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	token, id := w.home.Token.Secret, w.home.Workspace.ID
	w.must(token, id, Deals.Create, &CreateDealIn{Name: "the first event of the copy"})
	_, err := w.ask(token, id, Redeliver, &RedeliverIn{ID: hook, DeliveryID: delivered})
	wantCode(t, err, CodeConflict)
	w.must(token, id, Redeliver, &RedeliverIn{ID: hook, DeliveryID: tested})
	w.verify()
}

// The deliveries and the types of events of a subscription have bounds in a copy, too.
func TestImport_BoundsWhatASubscriptionKeeps(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const (
		hook = "01935000-0000-7000-8000-000000000001"
		at   = "2026-01-01T00:00:00.000Z"
	)
	webhook := func(types int) error {
		events := strings.Repeat(`"issue.*",`, types-1) + `"issue.*"`
		return w.line("webhook_subscription", fmt.Sprintf(`{"id":%q,"url":"https://example.com/","events":[%s],"isActive":true,"createdAt":%[3]q,"updatedAt":%[3]q}`, hook, events, at))
	}
	wantLineFault(t, webhook(maxImportEvents+1), "data.events must have at most 50 types.")
	if err := webhook(maxImportEvents); err != nil {
		t.Fatal(err)
	}
	const most = deliveriesKept + deliveriesSlack
	delivery := func(n int) string {
		return fmt.Sprintf("01935001-%04x-7000-8000-000000000000", n)
	}
	for n := range most + 10 {
		line := fmt.Sprintf(`{"id":%q,"subscriptionId":%q,"eventId":"e","eventType":"issue.created","eventSequence":1,"status":"failed","attempts":9,"lastAttemptAt":%[3]q,"createdAt":%[3]q}`, delivery(n), hook, at)
		if err := w.line("webhook_delivery", line); err != nil {
			t.Fatal(err)
		}
	}
	v := w.view(w.home.Workspace.ID.raw())
	kept := 0
	err := deliveries.Scan(&v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := deliveries.Decode(rec)
		if err == nil && kept == 0 && row.Value.ID != delivery(most+9) {
			t.Errorf("the newest is %s", row.Value.ID)
		}
		kept++
		return true, err
	})
	if err != nil || kept != deliveriesKept+9 {
		t.Errorf("%d deliveries are kept, %v", kept, err)
	}
	w.verify()
}

// The config of an imported channel is one that the creation of a channel takes.
func TestImport_HoldsChannelsToTheirType(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	channel := func(config string) error {
		return w.line("support_channel", `{"id":"01935000-0000-7000-8000-000000000001","type":"chatapp1","name":"c","isActive":true,"config":{`+config+`},"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`)
	}
	long := strings.Repeat("x", maxConfigText)
	wantLineFault(t, channel(`"widgetId":"w"`), "data.config.widgetId is not part of the config")
	wantLineFault(t, channel(`"ingestionMode":"always"`), "data.config.ingestionMode must be one of manual, ")
	wantLineFault(t, channel(`"color":"x`+long+`"`), "data.config.color must be at most 2048 characters long.")
	wantLineFault(t, channel(`"botToken":"x`+long+`"`), "data.config.botToken must be at most 2048 characters long.")
	if err := channel(`"ingestionMode":"ai","color":"` + long + `","botToken":"***1234"`); err != nil {
		t.Error(err)
	}
	w.verify()
}
