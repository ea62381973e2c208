package tracker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The stored form of a permissions string parses to the same permissions and the same
// stored form.
func TestParsePermissions(t *testing.T) {
	t.Parallel()
	known := []string{"read", "write", "admin", "issues:read", "issues:write", "sessions:read", "sessions:write"}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(known), rapid.StringMatching(`[a-z:]{0,6}`)), 1, 12).Draw(t, "words")
		var bits Permissions
		var kept, unknown []string
		for _, word := range words {
			switch {
			case !slices.Contains(known, word):
				unknown = append(unknown, word)
			case !slices.Contains(kept, word):
				kept = append(kept, word)
				bits |= permissionWords[word]
			}
		}
		p, stored, bad := ParsePermissions(strings.Join(words, rapid.SampledFrom([]string{",", ", ", " ,"}).Draw(t, "comma")))
		if p != bits || stored != strings.Join(kept, ",") || !slices.Equal(bad, unknown) {
			t.Fatalf("%q gives %b, %q, unknown %q", words, p, stored, bad)
		}
		if stored == "" {
			return
		}
		if again, text, bad := ParsePermissions(stored); again != p || text != stored || len(bad) > 0 {
			t.Fatalf("%q reads back as %b, %q, unknown %q", stored, again, text, bad)
		}
	})
}

// A wider permission allows everything that a narrower one does.
func TestPermissions_WiderAllowsMore(t *testing.T) {
	t.Parallel()
	var needs []Needs
	for _, level := range []Level{Read, Write, Admin} {
		for _, resource := range []string{"", "issues", "sessions"} {
			needs = append(needs, Needs{level, resource})
		}
	}
	for a, p := range permissionWords {
		for b, q := range permissionWords {
			if !p.Includes(q) {
				continue
			}
			for _, n := range needs {
				if q.Allow(n) && !p.Allow(n) {
					t.Errorf("%s allows %+v and %s, which includes it, does not", b, n, a)
				}
			}
		}
	}
	if permissionWords["issues:write"].Allow(Needs{Level: Read}) || permissionWords["issues:write"].Allow(Needs{Write, "sessions"}) {
		t.Error("a resource's permission reaches further")
	}
}

// The refusal of a proposal names permissions that a token can have.
func TestPermissions_RefusalOfADraftNamesThem(t *testing.T) {
	t.Parallel()
	err := errLacksRight(CreateDraft.Needs)
	var refused *Error
	if !errors.As(err, &refused) || refused.Message != "This needs the right to write issues or sessions." ||
		refused.Hint != "Use a token with the write permission, or with issues:write or sessions:write." {
		t.Errorf("the refusal is %+v", err)
	}
}
