package tracker

import (
	"errors"
	"strings"
	"testing"
)

// The callers of the permission matrix.
const (
	asOwnerOf = iota // owner with an admin token
	asOwnerWriting
	asOwnerReading
	asAdmin
	asMember // with an admin token, limited by the role
	asMemberReading
	asGuest
	asAgent
	asAdminAgent
	asIssuesOnly
	asStranger
	asRoot
	asNobody
	callerCount
)

// TestPermissions is the matrix of every operation and caller: y allowed, n refused
// (403), 4 the workspace is not found (404), u not authenticated (401).
func TestPermissions(t *testing.T) {
	t.Parallel()
	//                  owner  w r admin member r guest agent admin-agent issues stranger root nobody
	const (
		reading  = "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "n" + "4" + "y" + "u"
		writing  = "y" + "y" + "n" + "y" + "y" + "n" + "y" + "y" + "y" + "n" + "4" + "y" + "u"
		admining = "y" + "n" + "n" + "y" + "n" + "n" + "n" + "n" + "y" + "n" + "4" + "y" + "u"
		readIss  = "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "4" + "y" + "u"
		writeIss = "y" + "y" + "n" + "y" + "y" + "n" + "y" + "y" + "y" + "y" + "4" + "y" + "u"
		deleting = "y" + "n" + "n" + "y" + "n" + "n" + "n" + "n" + "y" + "n" + "4" + "y" + "u"
		creating = "y" + "y" + "n" + "y" + "y" + "n" + "y" + "n" + "n" + "n" + "y" + "y" + "u"
		listing  = "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "n" + "y" + "y" + "u"
		bySlug   = "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "n" + "4" + "y" + "u"
		open     = "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y" + "y"
	)
	w := newTestService(t)
	callers := newMatrixCallers(w)
	for _, row := range []struct {
		op   *Op
		want string
	}{
		{OnboardWorkspace, open}, {CreateWorkspace, creating}, {ListWorkspaces, listing},
		{WorkspaceByID, reading}, {WorkspaceBySlug, bySlug}, {PatchWorkspace, admining}, {DeleteWorkspace, deleting},
		{ListTokens, admining}, {CreateToken, admining}, {DeleteToken, admining},
		{ListOAuthClients, admining}, {CreateOAuthClient, admining}, {OAuthClientByID, admining}, {PatchOAuthClient, admining}, {DeleteOAuthClient, admining},
		{ListSCIMConnections, admining}, {CreateSCIMConnection, admining}, {DeleteSCIMConnection, admining},
		{ListMembers, reading}, {AddMember, admining}, {PatchMember, admining}, {RemoveMember, admining},
		{ListTeams, reading}, {CreateTeam, writing}, {TeamByID, reading}, {PatchTeam, writing}, {DeleteTeam, writing},
		{ListTeamMembers, reading}, {PutTeamMember, writing}, {RemoveTeamMember, writing},
		{ListIssues, readIss}, {ListTriage, readIss}, {IssueByID, readIss}, {ListIssueChildren, readIss}, {IssueBranchName, readIss},
		{ListAccessGrants, readIss}, {PutAccessGrant, writeIss}, {RemoveAccessGrant, writeIss},
		{ShareByIssue, readIss}, {CreateShare, writeIss}, {RevokeShare, writeIss}, {SharedIssue, open},
		{CreateIssue, writeIss}, {PatchIssue, writeIss}, {BatchIssues, writeIss}, {DeleteIssue, writeIss},
	} {
		if len(row.want) != callerCount {
			t.Fatalf("%s has %d columns", row.op.Name, len(row.want))
		}
		var got strings.Builder
		for who := range callerCount {
			got.WriteString(callers.verdict(row.op, who))
		}
		if got.String() != row.want {
			t.Errorf("%-18s %s, want %s", row.op.Name, got.String(), row.want)
		}
	}
}

type matrixCallers struct {
	*testService
	home        Onboarded
	credentials [callerCount]string
	tries       int
}

func newMatrixCallers(w *testService) *matrixCallers {
	m := &matrixCallers{testService: w, home: w.onboard("home")}
	with := func(in CreateTokenIn, permissions string) string {
		in.Permissions = words(permissions)
		return w.token(m.home, &in)
	}
	member, memberAll := w.member(m.home, RoleMember, "admin")
	_, admin := w.member(m.home, RoleAdmin, "admin")
	_, guest := w.member(m.home, RoleGuest, "admin")
	m.credentials = [callerCount]string{
		asOwnerOf: m.home.Token.Secret, asOwnerWriting: with(CreateTokenIn{}, "write"), asOwnerReading: with(CreateTokenIn{}, "read"),
		asAdmin: admin, asMember: memberAll, asMemberReading: with(CreateTokenIn{UserID: member}, "read"), asGuest: guest,
		asAgent: with(CreateTokenIn{AgentID: "bot"}, "write"), asAdminAgent: with(CreateTokenIn{AgentID: "boss"}, "admin"),
		asIssuesOnly: with(CreateTokenIn{UserID: member}, "issues:write"), asStranger: w.onboard("stranger").Token.Secret,
		asRoot: "root", asNobody: "",
	}
	return m
}

// verdict tries an operation. Only rights matter here: any other error counts as
// allowed.
func (m *matrixCallers) verdict(op *Op, who int) string {
	m.tries++
	in := op.New()
	switch in := in.(type) {
	case *NewWorkspaceIn:
		in.Name, in.Slug = "x", strings.Repeat("x", m.tries%60+1)
	case *ListWorkspacesIn:
		in.Limit = 10
	case *WorkspaceBySlugIn:
		in.Slug = "home"
	case *AddMemberIn:
		in.Name = Some("x")
	case *TeamMembersIn:
		in.ID = m.home.Team.ID
	}
	workspace := m.home.Workspace.ID
	var err error
	if op == DeleteWorkspace {
		// Operations that check rights themselves, without any effect.
		if _, err = m.ask(m.credentials[who], workspace, ListWorkspaces, &ListWorkspacesIn{Limit: 1}); !isUnauthorized(err) {
			req := &Request{Workspace: workspace.raw(), Credential: m.credentials[who]}
			if err = m.admit(req, op); err == nil {
				_, err = m.do(&Request{Workspace: workspace.raw()}, mayDeleteOp, &openIn{req.Caller.Principal})
			}
		}
	} else {
		_, err = m.ask(m.credentials[who], workspace, op, in)
	}
	var refusal *Error
	if !errors.As(err, &refusal) {
		return "y"
	}
	switch {
	case refusal.Code == CodeForbidden:
		return "n"
	case refusal.Code == CodeUnauthorized:
		return "u"
	case refusal.Code == CodeNotFound && strings.Contains(refusal.Message, "workspace"):
		return "4"
	}
	return "y"
}

func isUnauthorized(err error) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Code == CodeUnauthorized
}

func TestResolveCaller_Level(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	_, admin := w.member(home, RoleAdmin, "write")
	_, guest := w.member(home, RoleGuest, "admin")
	for _, c := range []struct {
		credential string
		level      Level
		role       Role
	}{
		{home.Token.Secret, Admin, RoleOwner},
		{admin, Write, RoleAdmin},
		{guest, Write, RoleGuest},
		{w.token(home, &CreateTokenIn{Permissions: words("issues:read")}), Identified, RoleOwner},
		{w.token(home, &CreateTokenIn{AgentID: "a", Permissions: words("read")}), Read, RoleMember},
		{w.token(home, &CreateTokenIn{AgentID: "a", Permissions: words("admin")}), Admin, RoleAdmin},
		{"root", Admin, RoleOwner},
	} {
		req := &Request{Workspace: home.Workspace.ID.raw(), Credential: c.credential}
		if err := w.admit(req, ListIssues); err != nil {
			t.Fatal(err)
		}
		if req.Caller.Level != c.level || req.Caller.Role != c.role {
			t.Errorf("caller %+v, want level %d and role %s", req.Caller, c.level, c.role)
		}
	}
}
