package tracker

import "testing"

// A session relates its own issue to issues that the maker of its token sees, and to no others. It
// shows the relations to the same issues.
func TestRelateSession_SeesWhatItsMakerSees(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	_, mel := f.testService.member(f.home, RoleMember, "write")
	own, open, hidden := f.work(PriorityLow), f.work(PriorityLow), f.work(PriorityLow)
	f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(hidden.ID), ActorID: string(f.home.Workspace.OwnerID), ActorType: "user"})
	s := f.registerAs(mel, own.ID, "")
	id, lane := s.Session.ID, *s.LaneToken

	relate := func(kind RelationType, other IssueID) error {
		t.Helper()
		_, err := f.try(lane, RelateSession, &RelateSessionIn{ID: id, Type: SessionRelationType(kind), IssueID: other})
		return err
	}
	if err := relate(RelationBlockedBy, open.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, relate(RelationRelates, hidden.ID), CodeBadRequest, "issueId")
	wantCode(t, relate(RelationRelates, "none"), CodeBadRequest, "issueId")
	wantCode(t, relate(RelationRelates, own.ID), CodeBadRequest, "issueId")
	wantCode(t, relate(RelationBlocks, open.ID), CodeConflict) // a ring
	f.run(f.admin, PutRelation, relation(own.ID, RelationRelates, hidden.ID))

	shown := decode[RelatedIssue](t, f.run(lane, SessionIssue, &SessionIssueIn{ID: string(own.ID)}).Body)
	if shown.ID != own.ID || shown.Title != own.Title || len(shown.Relations) != 1 || shown.Relations[0].IssueID != open.ID || shown.Relations[0].Type != RelationBlockedBy {
		t.Errorf("the session shows its issue as %+v", shown)
	}
	if _, err := f.try(lane, SessionIssue, &SessionIssueIn{ID: string(open.ID)}); err == nil {
		t.Error("the session reads another issue")
	}
	if err := f.report(lane, id, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	wantCode(t, relate(RelationRelates, open.ID), CodeUnauthorized)
	_, err := f.try(mel, RelateSession, &RelateSessionIn{ID: id, Type: SessionRelationType(RelationRelates), IssueID: open.ID})
	wantCode(t, err, CodeConflict)
}

// A credential for sessions alone does not relate issues and does not see other issues in relations,
// by a lane as little as itself.
func TestRelateSession_WithoutRightsToIssues(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		permissions    string
		reads, relates bool
	}{
		{"sessions:write", false, false},
		{"sessions:write,issues:read", true, false},
		{"sessions:write,issues:write", true, true},
		{"write", true, true},
	} {
		f := newAgentFixture(t)
		own, other, third := f.work(PriorityLow), f.work(PriorityLow), f.work(PriorityLow)
		f.run(f.admin, PutRelation, relation(own.ID, RelationBlocks, third.ID))
		token := f.mint(CreateTokenIn{Name: "b", AgentID: "bot", Permissions: words(row.permissions)}).Secret
		f.dispatch(own.ID, DispatchIssueIn{AgentID: Some("bot")})
		c := decode[ClaimedSessions](f, f.run(token, ClaimSessions, &ClaimSessionsIn{LeaseSeconds: 60, Limit: 1}).Body).Sessions[0]
		for name, credential := range map[string]string{"token": token, "lane": c.LaneToken} {
			reply, err := f.try(credential, RelateSession, &RelateSessionIn{ID: c.Session.ID, Type: SessionRelationType(RelationBlockedBy), IssueID: other.ID})
			if (err == nil) != row.relates {
				t.Errorf("%s, %s: relating answers %s, %v", row.permissions, name, reply.Body, err)
			}
			if err != nil {
				wantCode(t, err, CodeForbidden)
			}
		}
		want := 0
		if row.reads {
			want++
		}
		if row.relates {
			want++
		}
		if shown := decode[RelatedIssue](t, f.run(c.LaneToken, SessionIssue, &SessionIssueIn{ID: string(own.ID)}).Body); shown.Title != own.Title || len(shown.Relations) != want {
			t.Errorf("%s: the lane sees %+v", row.permissions, shown)
		}
		if _, err := f.try(token, SessionIssue, &SessionIssueIn{ID: string(own.ID)}); (err == nil) != row.reads {
			t.Errorf("%s: the token reads the issue: %v", row.permissions, err)
		}
	}
}
