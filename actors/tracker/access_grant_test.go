package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/storage"
)

// somebody returns a caller who is not an admin.
func (w *issueFixture) somebody(kind ActorType, id string, joined ...TeamID) *Caller {
	c := &Caller{Principal: Principal{Type: kind, ID: id, Permissions: permissionWords["write"]}, Role: RoleMember, Level: Write}
	c.Hidden = map[storage.ID]struct{}{rawTeam(w.secret): {}}
	c.Teams = map[storage.ID]struct{}{}
	for _, team := range joined {
		c.Teams[rawTeam(team)] = struct{}{}
		delete(c.Hidden, rawTeam(team))
	}
	return c
}

func rawTeam(id TeamID) storage.ID {
	raw, _ := storage.ParseID(id)
	return raw
}

// grant grants an issue to an actor, as ann.
func (w *issueFixture) grant(id IssueID, actor string, kind GranteeType) AccessGrant {
	w.Helper()
	return decode[AccessGrant](w, w.run(&w.ann, PutAccessGrant, &PutAccessGrantIn{ID: string(id), ActorID: actor, ActorType: kind}).Body)
}

func (w *issueFixture) ungrant(id IssueID, actor string) {
	w.Helper()
	w.run(&w.ann, RemoveAccessGrant, &AccessGrantIn{string(id), actor})
}

// sees reports whether a caller gets an issue, and checks that its record and list
// agree.
func (w *issueFixture) sees(who *Caller, id IssueID) bool {
	w.Helper()
	_, err := w.ask(who, IssueByID, &IssueByIDIn{ID: string(id)})
	if err != nil {
		wantCode(w, err, CodeNotFound)
	}
	listed := slices.ContainsFunc(w.list(who, ListIssuesIn{Limit: 100}).Issues, func(t Issue) bool { return t.ID == id })
	if listed != (err == nil) {
		w.Errorf("%s: listed is %t, and getting it says %v", who.ID, listed, err)
	}
	return err == nil
}

func TestAccessGrant_NarrowsAndNeverWidens(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	open, hidden := w.create(CreateIssueIn{}), w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	mel, bot := w.somebody(ActorUser, "mel"), w.somebody(ActorAgent, "bot")
	webber, webbot, insider := w.somebody(ActorUser, "web", w.web), w.somebody(ActorAgent, "wbot", w.web), w.somebody(ActorUser, "sue", w.secret)
	everybody := []*Caller{&w.ann, &w.gus, mel, bot, webber, webbot, insider}
	system := System
	check := func(id IssueID, want ...*Caller) {
		t.Helper()
		for _, who := range everybody {
			if got := w.sees(who, id); got != slices.Contains(want, who) {
				t.Errorf("%s sees it: %t", who.ID, got)
			}
		}
		if !w.sees(&system, id) {
			t.Error("the service itself does not see it")
		}
		w.verify()
	}
	check(open.ID, everybody...)
	check(hidden.ID, &w.ann, insider)
	w.grant(open.ID, "mel", GranteeUser)
	check(open.ID, &w.ann, mel)
	w.grant(open.ID, "mel", GranteeAgent) // the same id of another type is another actor
	check(open.ID, &w.ann)
	w.grant(open.ID, "bot", GranteeAgent)
	check(open.ID, &w.ann, bot)
	w.grant(open.ID, string(w.web), GranteeTeam)
	check(open.ID, &w.ann, bot, webber, webbot)
	w.grant(open.ID, "no-such-team", GranteeTeam)
	w.grant(hidden.ID, "mel", GranteeUser)
	check(hidden.ID, &w.ann)
	w.grant(hidden.ID, "sue", GranteeUser)
	check(hidden.ID, &w.ann, insider)
	for _, actor := range []string{"mel", "bot", string(w.web)} {
		w.ungrant(open.ID, actor)
	}
	check(open.ID, &w.ann)
	w.ungrant(open.ID, "no-such-team")
	check(open.ID, everybody...)
}

// An admin's narrow credential does not have an admin's rights.
func TestAccessGrant_AdminWithNarrowCredential(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	w.grant(issue.ID, "mel", GranteeUser)
	capped := w.ann
	capped.Level, capped.Permissions = Write, permissionWords["write"]
	if w.sees(&capped, issue.ID) {
		t.Error("an owner's write token sees a restricted issue")
	}
	w.grant(issue.ID, "ann", GranteeUser)
	if !w.sees(&capped, issue.ID) {
		t.Error("a listed owner's write token does not see the issue")
	}
}

func TestPutAccessGrant_LeavesTheIssueAsItIs(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	events := len(w.events())
	first := w.grant(issue.ID, "mel", "")
	if first.ActorType != GranteeUser || first.IssueID != issue.ID || first.OrganizationID != issue.OrganizationID || first.ActorID != "mel" || first.CreatedAt != At(w.now) {
		t.Errorf("grant %+v", first)
	}
	second := w.grant(issue.ID, "mel", GranteeAgent)
	if second.ID != first.ID || second.CreatedAt != first.CreatedAt || second.ActorType != GranteeAgent {
		t.Errorf("repeated it is %+v, was %+v", second, first)
	}
	w.grant(issue.ID, "a", GranteeUser)
	w.grant(issue.ID, "z", GranteeUser)
	reply, err := w.ask(&w.ann, ListAccessGrants, &IssueIn{string(issue.ID)})
	if err != nil {
		t.Fatal(err)
	}
	if list := decode[AccessGrantList](t, reply.Body).Permissions; len(list) != 3 || list[0].ActorID != "z" || list[1].ActorID != "a" || list[2] != second {
		t.Errorf("grants, the newest first: %s", reply.Body)
	}
	reply, err = w.ask(&w.ann, IssueByID, &IssueByIDIn{ID: string(issue.ID)})
	if err != nil || reply.ETag != `"1"` || decode[Issue](t, reply.Body).UpdatedAt != issue.UpdatedAt {
		t.Errorf("the issue is %s %s, %v", reply.ETag, reply.Body, err)
	}
	if n := len(w.events()); n != events {
		t.Errorf("%d events for grants", n-events)
	}
	// A change keeps the issue restricted, and its event has the flag.
	w.patch(issue.ID, IssuePatch{Title: Some("new")})
	if w.sees(&w.gus, issue.ID) {
		t.Error("a change opened the issue")
	}
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if flags := w.eventFlags(); flags[0]&issueRestricted != 0 || flags[1]&flags[2]&issueRestricted == 0 {
		t.Errorf("flags of the events: %b", flags)
	}
	w.verify()
	for _, table := range []storage.TableID{accessTable, restrictedTable} {
		v := storage.NewView(w.db, 1, w.workspace)
		if left, err := v.Has(table, nil); err != nil || left {
			t.Errorf("rows of table %d outlive the issue: %v", table, err)
		}
	}
}

func (w *issueFixture) eventFlags() (flags []storage.Flags) {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	if err := v.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		rec, err := EventRow(&v, fields, value)
		flags = append(flags, rec.Flags())
		return true, err
	}); err != nil {
		w.Fatal(err)
	}
	return flags
}

func TestAccessGrants_WhoMayChangeThem(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	mel := w.somebody(ActorUser, "mel")
	// A caller who may write the issue may lock out everybody, including itself.
	w.run(mel, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "gus"})
	for _, op := range []struct {
		op *Op
		in any
	}{
		{PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "mel"}},
		{RemoveAccessGrant, &AccessGrantIn{string(issue.ID), "gus"}},
		{PatchIssue, patchIn(issue.ID, "", IssuePatch{Title: Some("t")})},
		{BatchIssues, &BatchIssuesIn{IDs: []string{string(issue.ID)}}},
		{DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)}},
		{CreateShare, &CreateShareIn{ID: string(issue.ID)}},
		{RevokeShare, &ShareIn{string(issue.ID), "x"}},
	} {
		if _, _, err := w.try(mel, op.op, op.in); err == nil {
			t.Errorf("%s is let through", op.op.Name)
		} else {
			wantCode(t, err, CodeNotFound)
		}
	}
	for _, op := range []*Op{ListAccessGrants, ShareByIssue} {
		_, err := w.ask(mel, op, &IssueIn{string(issue.ID)})
		wantCode(t, err, CodeNotFound)
	}
	_, err := w.ask(mel, ListIssueChildren, &ListIssueChildrenIn{ID: string(issue.ID)})
	wantCode(t, err, CodeNotFound)
	_, _, err = w.try(mel, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{ParentID: Some(issue.ID)}})
	wantCode(t, err, CodeBadRequest, "parentId")
	_, _, err = w.try(&w.gus, RemoveAccessGrant, &AccessGrantIn{string(issue.ID), "nobody"})
	wantCode(t, err, CodeNotFound)
	w.run(&w.gus, RemoveAccessGrant, &AccessGrantIn{string(issue.ID), "gus"})
	if !w.sees(mel, issue.ID) {
		t.Error("without its last grant it is not open again")
	}
}

func TestPutAccessGrant_Bound(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	for i := range maxGrants {
		w.grant(issue.ID, fmt.Sprint("u", i), GranteeUser)
	}
	_, _, err := w.try(&w.ann, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "one more"})
	wantCode(t, err, CodeConflict)
	w.grant(issue.ID, "u7", GranteeAgent) // a repeat does not count
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	w.verify()
}

// Ids with control characters are different from each other, and from their prefixes.
func TestAccessGrant_OddActors(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	for _, id := range []string{"a\x01", "a", "a\x01\x02", strings.Repeat("é", 255)} {
		w.grant(issue.ID, id, GranteeUser)
		for _, other := range []string{"a\x01", "a", "a\x01\x02", "a\x01\x01", "", strings.Repeat("é", 255)} {
			if got := w.sees(w.somebody(ActorUser, other), issue.ID); got != (other == id) {
				t.Errorf("granted to %q, %q sees it: %t", id, other, got)
			}
		}
		w.ungrant(issue.ID, id)
	}
	w.verify()
}

func TestVerify_TellsWhatIsWrongWithAccess(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		want string
		harm func(tx *Tx, open, restricted *storage.Row[Issue]) error
	}{
		{"has no grant", func(tx *Tx, _, _ *storage.Row[Issue]) error { return dropFirst(tx, &accessGrants) }},
		{"not among the restricted ones", func(tx *Tx, _, r *storage.Row[Issue]) error {
			return tx.Writer().DeleteValue(restrictedTable, issueKey(r.Value.id()))
		}},
		{"says that it is not restricted", func(tx *Tx, o, _ *storage.Row[Issue]) error {
			return tx.Writer().SetValue(restrictedTable, issueKey(o.Value.id()), nil)
		}},
		{"there is no such issue", func(tx *Tx, _, _ *storage.Row[Issue]) error {
			return tx.Writer().SetValue(restrictedTable, issueKey(storage.ID{1}), nil)
		}},
		{"its issue is not restricted", func(tx *Tx, o, _ *storage.Row[Issue]) error {
			_, err := accessGrants.Insert(tx, &AccessGrant{IssueID: o.Value.ID, ActorID: "x", ActorType: GranteeUser})
			return err
		}},
		{"its issue is not there", func(tx *Tx, _, r *storage.Row[Issue]) error { return issues.Delete(tx, r) }},
		{`of type "nobody"`, func(tx *Tx, _, r *storage.Row[Issue]) error {
			_, err := accessGrants.Insert(tx, &AccessGrant{IssueID: r.Value.ID, ActorID: "x", ActorType: "nobody"})
			return err
		}},
		{"its token is of 1 characters", func(tx *Tx, o, _ *storage.Row[Issue]) error {
			_, err := shares.Insert(tx, &IssueShare{IssueID: o.Value.ID, Token: "t"})
			return err
		}},
	} {
		t.Run(row.want, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			open, restricted := w.create(CreateIssueIn{}), w.create(CreateIssueIn{})
			w.grant(restricted.ID, "mel", GranteeUser)
			w.run(&w.ann, NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				o, err := tx.issue(string(open.ID))
				if err != nil {
					return Reply{}, err
				}
				r, err := tx.issue(string(restricted.ID))
				if err != nil {
					return Reply{}, err
				}
				return Reply{}, row.harm(tx, o, r)
			}), &None{})
			w.verifyFinds(row.want)
		})
	}
}

// IssueByID reads the record and the grants from one snapshot: a caller who always
// either has a grant or sees the open issue always gets it.
func TestIssueByID_WhileGrantsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue, mel, now := w.create(CreateIssueIn{}), w.somebody(ActorUser, "mel"), w.now
	done := make(chan struct{})
	var failed error
	go func() {
		defer close(done)
		for range 20_000 {
			v := NewView(storage.NewView(w.db, 1, w.workspace), mel, now, nil)
			if _, failed = IssueByID.RunQuery(v, &IssueByIDIn{ID: string(issue.ID)}); failed != nil {
				return
			}
		}
	}()
	for running := true; running; {
		w.grant(issue.ID, "mel", GranteeUser)
		w.ungrant(issue.ID, "mel")
		select {
		case <-done:
			running = false
		default:
		}
	}
	if failed != nil {
		t.Errorf("it was gone for a moment: %v", failed)
	}
}
