package actors

import (
	"errors"
	"testing"

	"switchyard/actors/tracker"
)

// A request and its repeat are both admitted, and the first has ended the caller's rights when the repeat comes to
// its step. The refusal says that it is one of the caller's rights, so that it does not pass for the outcome of the
// first.
func TestStep_RefusedForTheCallersRights(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine, abroad := b.onboard("mine"), b.onboard("abroad")
	b.run(mine, mine.credential, tracker.AddMember, &tracker.AddMemberIn{UserID: tracker.Some(tracker.UserID(abroad.user)), Role: tracker.RoleAdmin}, nil)
	first, repeat := b.admitted(mine.id, abroad.credential, tracker.RemoveMember), b.admitted(mine.id, abroad.credential, tracker.RemoveMember)
	first.Idempotency, repeat.Idempotency = &tracker.Idempotency{Key: "k"}, &tracker.Idempotency{Key: "k"}
	in := &tracker.MemberIn{UserID: tracker.UserID(abroad.user)}
	if _, err := b.engine.Do(first, tracker.RemoveMember, in); err != nil {
		t.Fatal(err)
	}
	_, err := b.engine.Do(repeat, tracker.RemoveMember, in)
	if told := (*tracker.Error)(nil); !errors.As(err, &told) || !told.Unadmitted {
		t.Errorf("the refusal does not say that it is one of the caller's rights: %v", err)
	}
}
