package tracker

import (
	"maps"
	"testing"

	json "github.com/goccy/go-json"
)

// A config takes the keys of its type. Others are ignored, in a change too, and nothing is
// kept of them.
func TestChannelConfig_IgnoresKeysOfOtherTypes(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	wants := func(what string, reply Reply, want map[string]string) ChannelID {
		t.Helper()
		c := decode[SupportChannel](t, reply.Body)
		if !maps.Equal(c.Config, want) {
			t.Errorf("%s: %v, want %v", what, c.Config, want)
		}
		return c.ID
	}
	in := &CreateChannelIn{Type: ChannelEmail, Name: "n", IsActive: true, Config: map[string]string{"emailAddress": "a@b.c", "botToken": "0123456789", "ingestionMode": "never"}}
	var faults Faults
	if in.Validate(&faults); !faults.Empty() {
		t.Fatal(faults.Err())
	}
	id := wants("made", w.run(&w.ann, CreateChannel, in), map[string]string{"emailAddress": "a@b.c"})
	change := &PatchChannelIn{ID: string(id), Config: json.RawMessage(`{"accessToken":"0123456789","widgetId":null,"color":"red"}`)}
	if change.Validate(&faults); !faults.Empty() {
		t.Fatal(faults.Err())
	}
	wants("changed", w.run(&w.ann, PatchChannel, change), map[string]string{"emailAddress": "a@b.c", "color": "red"})
	in = &CreateChannelIn{Type: ChannelChatapp1, Name: "n", Config: map[string]string{"ingestionMode": "never"}}
	if in.Validate(&faults); !faults.Has("config.ingestionMode") {
		t.Errorf("an unknown mode is taken: %v", faults.Err())
	}
	w.verify()
}

func TestMask(t *testing.T) {
	t.Parallel()
	for secret, want := range map[string]string{"": "", "a": "***", "abcd": "***", "abcde": "***bcde", "tok-123": "***-123", "geheimnisvoll": "***voll", "schlüßel": "***üßel"} {
		if got := mask(secret); got != want {
			t.Errorf("%q is shown as %q, want %q", secret, got, want)
		}
	}
}
