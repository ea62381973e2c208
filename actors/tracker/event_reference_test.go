package tracker

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// rawEvents returns the log twice: the rows as they are stored, and whole.
func (w *issueFixture) rawEvents() (stored, whole [][]byte) {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	err := v.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		row, err := EventRow(&v, fields, value)
		stored, whole = append(stored, bytes.Clone(value)), append(whole, bytes.Clone(row))
		return true, err
	})
	if err != nil {
		w.Fatal(err)
	}
	return stored, whole
}

// references counts the events that are stored by reference.
func (w *issueFixture) references() (n int) {
	w.Helper()
	stored, _ := w.rawEvents()
	for _, e := range stored {
		if storage.Record(e).Version() == eventByReference {
			n++
		}
	}
	return n
}

// A workspace that stores events by reference has the same answers and the same log, byte for byte,
// as one that stores each whole.
func TestEvents_ByReferenceReadAsWhole(t *testing.T) {
	t.Parallel()
	referred := 0
	rapid.Check(t, func(t *rapid.T) {
		w, plain := newIssueFixture(t), newIssueFixture(t)
		plain.buffer.WriteFormat(func() storage.Format { return storage.FormatNumbered })
		both := func(do func(w *issueFixture) (Reply, error)) {
			t.Helper()
			a, errA := do(w)
			b, errB := do(plain)
			if (errA == nil) != (errB == nil) || !bytes.Equal(a.Body, b.Body) {
				t.Fatalf("answers %s, %v and %s, %v", a.Body, errA, b.Body, errB)
			}
		}
		command := func(op *Op, in func() any, key string) {
			t.Helper()
			both(func(w *issueFixture) (Reply, error) {
				req := w.request(&w.ann)
				if key != "" {
					req.Idempotency = &Idempotency{Key: key}
				}
				w.now = w.now.Add(time.Millisecond)
				reply, err := w.buffer.Run(op, req, in(), w.now)
				w.commit()
				return reply, err
			})
		}
		var ids []IssueID
		var keys []string
		known := func() IssueID { return rapid.SampledFrom(ids).Draw(t, "issue") }
		create := func(key string) {
			t.Helper()
			command(CreateIssue, func() any {
				in := &CreateIssueIn{Title: "An issue of some length", IssueFields: IssueFields{Description: Some(string(bytes.Repeat([]byte("many words "), 40)))}}
				in.Dedupe = "warn"
				return in
			}, key)
			ids = ids[:0]
			for _, listed := range w.list(&w.ann, ListIssuesIn{Limit: 100}).Issues {
				ids = append(ids, listed.ID)
			}
		}
		create("")
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				key := rapid.StringMatching(`[a-z]{8}`).Draw(t, "key")
				keys = append(keys, key)
				create(key)
			},
			"create again": func(t *rapid.T) {
				if len(keys) > 0 {
					create(rapid.SampledFrom(keys).Draw(t, "key"))
				}
			},
			"patch": func(t *rapid.T) {
				id, title := known(), rapid.SampledFrom([]string{"An issue of some length", "Another title"}).Draw(t, "title")
				command(PatchIssue, func() any { return &PatchIssueIn{ID: string(id), IssuePatch: IssuePatch{Title: Some(title)}} }, "")
			},
			"close": func(t *rapid.T) {
				id := known()
				command(PatchIssue, func() any {
					return &PatchIssueIn{ID: string(id), IssuePatch: IssuePatch{IssueFields: IssueFields{Status: Some(StatusDone)}}}
				}, "")
			},
			"grant": func(t *rapid.T) {
				id := known()
				command(PutAccessGrant, func() any { return &PutAccessGrantIn{ID: string(id), ActorID: "gus", ActorType: GranteeUser} }, "")
			},
			"delete": func(t *rapid.T) {
				if len(ids) > 1 {
					id := known()
					command(DeleteIssue, func() any { return &DeleteIssueIn{ID: string(id)} }, "")
					ids = ids[:0]
					for _, listed := range w.list(&w.ann, ListIssuesIn{Limit: 100}).Issues {
						ids = append(ids, listed.ID)
					}
				}
			},
			"sweep": func(t *rapid.T) {
				later := rapid.SampledFrom([]time.Duration{time.Hour, eventLife}).Draw(t, "later")
				w.now, plain.now = w.now.Add(later), plain.now.Add(later)
				command(sweepEventsOp, func() any { return &TimerIn{Kind: timerSweepEvents} }, "")
			},
			"": func(t *rapid.T) {
				_, got := w.rawEvents()
				stored, want := plain.rawEvents()
				for i := range want {
					if !bytes.Equal(stored[i], want[i]) {
						t.Fatalf("the older format has a reference: %s", stored[i])
					}
				}
				if g, w := bytes.Join(got, []byte("\n")), bytes.Join(want, []byte("\n")); !bytes.Equal(g, w) {
					t.Fatalf("log\n%s\nwant\n%s", g, w)
				}
				referred += w.references()
			},
		})
		w.verify()
		plain.verify()
	})
	if referred == 0 {
		t.Error("no event was stored by reference")
	}
}

// An issue's JSON is stored once until the issue changes. A change that changes nothing leaves
// it so.
func TestEvents_ByReferenceUntilTheFirstChange(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{Title: "Once"})
	w.patch(issue.ID, IssuePatch{Title: Some("Once")})
	stored, whole := w.rawEvents()
	if len(stored) != 1 || w.references() != 1 || bytes.Contains(stored[0], []byte("Once")) || !bytes.Contains(whole[0], []byte(`"title":"Once"`)) {
		t.Fatalf("stored %q, whole %q", stored, whole)
	}
	w.patch(issue.ID, IssuePatch{Title: Some("Twice")})
	after, _ := w.rawEvents()
	if w.references() != 0 || len(after) != 2 || !bytes.Equal(after[0], whole[0]) {
		t.Errorf("stored %q, want first %q", after, whole[0])
	}
	w.verify()
}

// An issue that changes without its event is found, and no other issue's data is shown for it.
func TestEvents_ByReferenceFindDamage(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(tx *Tx, row *storage.Row[Issue]) error{
		"changed": func(tx *Tx, row *storage.Row[Issue]) error { _, err := issues.Update(tx, row, &row.Value); return err },
		"deleted": func(tx *Tx, row *storage.Row[Issue]) error { return issues.Delete(tx, row) },
	} {
		w := newIssueFixture(t)
		id := w.create(CreateIssueIn{}).ID
		w.run(&w.ann, NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
			raw, _ := storage.ParseID(id)
			row, err := issues.Get(tx, issueKey(raw))
			if err != nil {
				return Reply{}, err
			}
			return Reply{}, harm(tx, row)
		}), &None{})
		w.verifyFinds("event 1 refers to an issue")
		if _, err := w.ask(&w.ann, ListEvents, &ListEventsIn{}); !errors.Is(err, storage.ErrFormat) {
			t.Errorf("%s: events are listed: %v", name, err)
		}
	}
}

// A reader without a snapshot may see the issue change after it has read the event.
func TestEvents_ByReferenceReadBesideChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		then func(w *issueFixture, id IssueID)
		gone bool
	}{
		{"changed", func(w *issueFixture, id IssueID) { w.patch(id, IssuePatch{Title: Some("Other")}) }, false},
		{"deleted", func(w *issueFixture, id IssueID) { w.remove(id) }, false},
		{"swept", func(w *issueFixture, id IssueID) {
			w.remove(id)
			w.now = w.now.Add(2 * eventLife)
			w.run(&System, sweepEventsOp, &TimerIn{Kind: timerSweepEvents})
		}, true},
	} {
		w := newIssueFixture(t)
		id := w.create(CreateIssueIn{}).ID
		stored, whole := w.rawEvents()
		c.then(w, id)
		v := storage.NewView(w.db, 1, w.workspace)
		row, err := EventRow(&v, storage.Key(nil).U64(1), stored[0])
		if err != nil || (row == nil) != c.gone || row != nil && !bytes.Equal(row, whole[0]) {
			t.Errorf("%s: %q, %v, want %q", c.name, row, err, whole[0])
		}
	}
}
