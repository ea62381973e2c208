package tracker

import "testing"

// changeTeam changes the row of a team as an operation of teams does.
func (w *issueFixture) changeTeam(id TeamID, change func(*Team)) *Op {
	return NewCommand[None, None]("change", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		row, err := tx.teamByID(id)
		if err != nil {
			return Reply{}, err
		}
		next := row.Value
		change(&next)
		_, err = teams.Update(tx, row, &next)
		return Reply{}, err
	})
}

func TestCreateIssue_SeesChangesOfTeamsAtOnce(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	req := w.request(&w.ann)
	inTeam := func(f IssueFields, want string) {
		t.Helper()
		reply, err := w.buffer.Run(CreateIssue, req, &CreateIssueIn{Title: "t", IssueFields: f}, w.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := *decode[Issue](t, reply.Body).Identifier; got != want {
			t.Errorf("identifier %s, want %s", got, want)
		}
	}
	byID, byKey := IssueFields{TeamID: Some(w.web)}, IssueFields{TeamKey: Some("web")}
	inTeam(byID, "WEB-1")
	inTeam(byKey, "WEB-2")
	inTeam(IssueFields{}, "CORE-1")
	w.commit()
	rename := func(id TeamID, key string) {
		t.Helper()
		if _, err := w.buffer.Run(w.changeTeam(id, func(team *Team) { team.Key = key }), req, &None{}, w.now); err != nil {
			t.Fatal(err)
		}
	}
	rename(w.web, "NET")
	inTeam(byID, "NET-3") // in the same batch
	rename(w.core, "WEB")
	inTeam(byKey, "WEB-2")
	w.commit()
	inTeam(byKey, "WEB-3")
	inTeam(byID, "NET-4")
	inTeam(IssueFields{}, "WEB-4")
	// A batch that fails leaves nothing in the cache.
	rename(w.web, "TMP")
	inTeam(byID, "TMP-5")
	w.buffer.Discard()
	inTeam(byID, "NET-4")
	w.commit()
}

func TestCreateIssue_SameExternalRefInOneBatch(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	req := w.request(&w.ann)
	var ids []IssueID
	for _, want := range []Outcome{Created, Done, Done} {
		reply, err := w.buffer.Run(CreateIssue, req, &CreateIssueIn{Title: "t", IssueFields: IssueFields{ExternalRef: Some("r")}}, w.now)
		if err != nil || reply.Outcome != want {
			t.Fatalf("%+v, %v", reply, err)
		}
		ids = append(ids, decode[Issue](t, reply.Body).ID)
	}
	if ids[0] != ids[1] || ids[0] != ids[2] {
		t.Errorf("ids %v", ids)
	}
	w.commit()
	w.verify()
}

// TestIssueOps_Rights is the table of rights: a guest may write, a token only what its
// permissions include.
func TestIssueOps_Rights(t *testing.T) {
	t.Parallel()
	for _, op := range []*Op{IssueByID, ListIssues, ListTriage, ListIssueChildren, IssueBranchName, CreateIssue, PatchIssue, DeleteIssue, BatchIssues} {
		for _, row := range []struct {
			role        Role
			permissions string
			reads       bool
			writes      bool
		}{
			{RoleOwner, "admin", true, true}, {RoleGuest, "write", true, true}, {RoleMember, "read", true, false},
			{RoleMember, "issues:read", true, false}, {RoleMember, "issues:write", true, true}, {RoleOwner, "sessions:write", false, false}, {"", "admin", false, false},
		} {
			p, _, _ := ParsePermissions(row.permissions)
			c := Caller{Principal: Principal{Permissions: p}, Role: row.role}
			want := row.writes
			if op.Kind == Query {
				want = row.reads
			}
			if got := c.Allows(op.Needs); got != want {
				t.Errorf("%s as %q with %s: %v, want %v", op.Name, row.role, row.permissions, got, want)
			}
		}
	}
}
