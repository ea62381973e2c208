package tracker

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"switchyard/storage"
)

// rows counts the rows of a table in all workspaces.
func (w *testService) rows(table storage.TableID) (n int) {
	w.Helper()
	w.each(func(key, _ []byte) {
		if _, _, id, _, err := storage.SplitKey(key); err == nil && id == table {
			n++
		}
	})
	return n
}

// timers counts the timers of all workspaces, without those of the audit's sweep, which lasts
// as long as the entries that every new workspace has.
func (w *testService) timers() (n int) {
	w.Helper()
	w.each(func(key, _ []byte) {
		_, _, table, fields, err := storage.SplitKey(key)
		if err != nil || table != timerTable {
			return
		}
		if kind, _, ok := storage.CutStr(fields); !ok || kind != timerSweepAudit {
			n++
		}
	})
	return n
}

func TestIdempotency_Replay(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	root, org := home.Token.Secret, home.Workspace.ID
	in := &CreateTeamIn{Name: "x", Key: "X"}
	first := w.must(root, org, CreateTeam, in, "k")
	w.restart()
	second := w.must(root, org, CreateTeam, in, "k")
	if first.Replayed || !second.Replayed || second.Outcome != Created || !bytes.Equal(first.Body, second.Body) {
		t.Errorf("first %+v, second %+v", first, second)
	}
	_, err := w.ask(root, org, CreateTeam, &CreateTeamIn{Name: "y", Key: "Y"}, "k")
	wantCode(t, err, CodeIdempotencyKeyReused)
	// A request that failed runs again.
	in = &CreateTeamIn{Name: "y", Key: "X"}
	_, err = w.ask(root, org, CreateTeam, in, "k2")
	wantCode(t, err, CodeConflict)
	w.must(root, org, PatchTeam, &PatchTeamIn{ID: decode[Team](t, first.Body).ID, Key: Some("Z")})
	if third := w.must(root, org, CreateTeam, in, "k2"); third.Replayed {
		t.Error("a failure was remembered")
	}
	w.verify()
}

// No answer is kept if the command fails after remember.
func TestIdempotency_NothingOfAFailedCommand(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	fails := NewCommand[None, None]("fails", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		if err := tx.SetTimer("kind", "", tx.now); err != nil {
			return Reply{}, err
		}
		return Reply{ETag: string(make([]byte, maxETag+1))}, nil // can't be remembered
	})
	if _, err := w.ask("root", home.Workspace.ID, fails, &None{}, "k"); err == nil {
		t.Fatal("no error")
	}
	panics := NewCommand[None, None]("panics", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		_ = tx.SetTimer("kind", "", tx.now)
		panic("x")
	})
	var panicked *PanicError
	if _, err := w.ask("root", home.Workspace.ID, panics, &None{}, "k"); !errors.As(err, &panicked) {
		t.Fatalf("error %v", err)
	}
	if w.rows(idempotencyTable) != 0 || w.timers() != 0 {
		t.Errorf("%d answers and %d timers are left", w.rows(idempotencyTable), w.timers())
	}
	// The sweeping timer, whose setting was rolled back, is set again.
	w.must(home.Token.Secret, home.Workspace.ID, CreateTeam, &CreateTeamIn{Name: "x", Key: "X"}, "k")
	w.verify()
}

func TestIdempotency_ExpiresAfterADay(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	root, org := home.Token.Secret, home.Workspace.ID
	patch := &PatchTeamIn{ID: home.Team.ID, Name: Some("new")}
	w.must(root, org, PatchTeam, patch, "k")
	w.now = w.now.Add(idempotencyLife - time.Second)
	if !w.must(root, org, PatchTeam, patch, "k").Replayed {
		t.Error("not replayed within a day")
	}
	w.now = w.now.Add(2 * time.Second)
	// The answer has expired and is not yet swept.
	if w.must(root, org, PatchTeam, &PatchTeamIn{ID: home.Team.ID, Name: Some("newer")}, "k").Replayed {
		t.Error("replayed after a day")
	}
	w.verify()
	w.pass(time.Hour)
	if n := w.rows(idempotencyTable); n != 1 {
		t.Errorf("%d answers, want the newer one", n)
	}
	w.verify()
	w.pass(2 * idempotencyLife)
	if w.rows(idempotencyTable)+w.rows(idempotencyByAge)+w.timers() != 0 {
		t.Error("something is left of expired answers")
	}
	// The timer is set again for the next answer.
	w.must(root, org, PatchTeam, patch, "k")
	w.verify()
}

// A sweep removes a limited number of rows at a time.
func TestSweeps_AreBounded(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	org := home.Workspace.ID
	const many = 2*sweepBatch + 10
	fill := NewCommand[None, None]("fill", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for i := range many {
			if err := tx.setAnswer(newAnswerKey("", fmt.Sprint(i)), &answer{at: tx.now}); err != nil {
				return Reply{}, err
			}
			if err := tx.Emit(&eventKind{name: "test"}, storage.Header{}, []byte(`{}`), nil); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	})
	w.must("root", org, fill, &None{})
	w.verify()
	for _, c := range []struct {
		after time.Duration
		table storage.TableID
		kind  string
	}{{idempotencyLife, idempotencyTable, timerSweepAnswers}, {eventLife, eventTable, timerSweepEvents}} {
		w.now = w.now.Add(c.after)
		for _, left := range []int{many - sweepBatch, many - 2*sweepBatch, 0} {
			if _, err := w.do(ServiceRequest("", org.raw()), TimerOps[c.kind], &TimerIn{Kind: c.kind}); err != nil {
				t.Fatal(err)
			}
			if n := w.rows(c.table); n != left {
				t.Errorf("%s left %d rows, want %d", c.kind, n, left)
			}
			w.verify()
		}
	}
	if n := w.timers(); n != 0 {
		t.Errorf("%d timers are set for nothing", n)
	}
	// The sequence continues.
	w.must("root", org, NewCommand[None, None]("emit", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		err := tx.Emit(&eventKind{name: "test"}, storage.Header{}, []byte(`{}`), nil)
		if n, _ := tx.Counter(eventSequence, storage.ID{}); n != many+1 {
			t.Errorf("sequence %d", n)
		}
		return Reply{}, err
	}), &None{})
	w.verify()
}

func TestAnswer_ReadsBack(t *testing.T) {
	t.Parallel()
	a := answer{outcome: Created, sealed: true, at: time.UnixMilli(1234567).UTC(), fingerprint: [32]byte{1, 31: 2}, etag: `"3"`, body: []byte("{}")}
	b, err := parseAnswer(a.append(nil))
	if err != nil || fmt.Sprintf("%+v", b) != fmt.Sprintf("%+v", a) {
		t.Errorf("read back %+v, %v", b, err)
	}
	stored := a.append(nil)
	for n := range answerHeaderLen + len(a.etag) {
		if _, err := parseAnswer(stored[:n]); !errors.Is(err, storage.ErrFormat) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Only the same credential and key open a sealed answer.
func TestSealedAnswer(t *testing.T) {
	t.Parallel()
	key := newAnswerKey("t", "k")
	req := func(credential, key string) *Request {
		return &Request{Caller: Caller{Principal: Principal{Token: "t"}}, Credential: credential, Idempotency: &Idempotency{Key: key}}
	}
	sealed, err := sealAnswer(req("c", "k"), key, make([]byte, sealNonceLen), []byte("secret"))
	if err != nil || bytes.Contains(sealed, []byte("secret")) {
		t.Fatalf("sealed %q, %v", sealed, err)
	}
	if body, err := openAnswer(req("c", "k"), key, sealed); err != nil || string(body) != "secret" {
		t.Errorf("opened %q, %v", body, err)
	}
	for _, r := range []*Request{req("c", "l"), req("d", "k"), req("", "k"), req("c:1:k", "")} {
		if body, err := openAnswer(r, key, sealed); err == nil {
			t.Errorf("%q and %q open it: %q", r.Credential, r.Idempotency.Key, body)
		}
	}
	if _, err := openAnswer(req("c", "k"), newAnswerKey("t", "other"), sealed); err == nil {
		t.Error("opens under another record's name")
	}
	if _, err := openAnswer(req("c", "k"), key, sealed[:5]); err == nil {
		t.Error("opens cut short")
	}
}
