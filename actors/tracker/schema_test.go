package tracker

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchyard/storage"
)

var updateKeys = flag.Bool("update-keys", false, "write testdata/keys.golden anew")

// The format on disk must stay readable: table ids, keys and index entries.
func TestSchema_Golden(t *testing.T) {
	t.Parallel()
	ids, err := storage.Describe(Schema())
	if err != nil {
		t.Fatal(err)
	}
	const (
		workspace = WorkspaceID("01935000-0000-7000-8000-0000000000aa")
		team      = TeamID("01935000-0000-7000-8000-0000000000bb")
		token     = TokenID("01935000-0000-7000-8000-0000000000cc")
		issue     = IssueID("01935000-0000-7000-8000-0000000000dd")
		at        = Timestamp("2026-11-20T21:30:00.123Z")
		user      = UserID("ann")
	)
	external, email := "00u1", "Ann@Example.com"
	removed, parent := at, CommentID("01935000-0000-7000-8000-0000000000ed")
	channel, thread, ticketIssue := ChannelID(token), "thread", IssueID("01935000-0000-7000-8000-0000000000dd")
	got := strings.Join([]string{
		ids,
		storage.Explain(&workspaces, &Workspace{ID: workspace}),
		storage.Explain(&settingsRows, &Settings{}),
		storage.Explain(&limitRows, &WorkspaceLimits{}),
		storage.Explain(&audits, &AuditEntry{ID: string(token)}),
		storage.Explain(&unsentAudits, &AuditEntry{ID: string(token)}),
		storage.Explain(&readOnlyRows, &readOnlyState{ReadOnly: ReadOnly{Reason: "Moving"}}),
		storage.Explain(&imports, &importRecord{}),
		storage.Explain(&arrivals, &arrivalRecord{}),
		storage.Explain(&members, &Member{UserID: user, Email: &email, CreatedAt: at}),
		storage.Explain(&tokens, &storedToken{ID: token}),
		storage.Explain(&tokenGrants, &tokenGrant{ID: token, ActorType: ActorUser, ActorID: "ann", Sponsor: "bob"}),
		storage.Explain(&teams, &Team{ID: team, Key: "ENG"}),
		storage.Explain(&teamMembers, &TeamMember{TeamID: team, UserID: user}),
		storage.Explain(&labels, &Label{ID: LabelID(token)}),
		storage.Explain(&projects, &Project{ID: ProjectID(token)}),
		storage.Explain(&cycles, &Cycle{ID: CycleID(token)}),
		storage.Explain(&templates, &Template{ID: TemplateID(token)}),
		storage.Explain(&comments, &Comment{ID: "01935000-0000-7000-8000-0000000000ee", IssueID: "01935000-0000-7000-8000-0000000000dd", ParentID: &parent}),
		storage.Explain(&channels, &SupportChannel{ID: ChannelID(token)}),
		storage.Explain(&channelSecrets, &channelSecret{Channel: ChannelID(token)}),
		storage.Explain(&tickets, &Ticket{ID: TicketID(token), ChannelID: &channel, Source: "sms", ThreadID: &thread, Status: TicketPending, IssueID: &ticketIssue}),
		storage.Explain(&ticketMessages, &TicketMessage{ID: TicketMessageID(token), TicketID: TicketID(team)}),
		storage.Explain(&deals, &Deal{ID: DealID(token)}),
		storage.Explain(&inboundSecrets, &inboundSecret{Source: "helpdesk1"}),
		storage.Explain(&inboundRoutes, &InboundRoute{Kind: RouteVCS, Key: "acme/yard", OrganizationID: workspace}),
		storage.Explain(&inboundClaims, &InboundRoute{Kind: RouteVCS, Key: "acme/yard", OrganizationID: workspace}),
		storage.Explain(&attachments, &Attachment{ID: "01935000-0000-7000-8000-0000000000dd", IssueID: "01935000-0000-7000-8000-0000000000ee"}),
		storage.Explain(&relations, &relationRecord{Type: RelationBlocks, FromID: issue, ToID: "01935000-0000-7000-8000-0000000000ee"}),
		storage.Explain(&accessGrants, &AccessGrant{IssueID: issue, ActorID: "ann", ActorType: GranteeUser}),
		storage.Explain(&shares, &IssueShare{Token: "token", IssueID: issue}),
		storage.Explain(&oauthClients, &OAuthClient{ID: OAuthClientID(token)}),
		storage.Explain(&oauthSecrets, &oauthSecret{ID: OAuthClientID(token)}),
		storage.Explain(&accessTokens, &accessToken{ID: token, ExpiresAt: at}),
		storage.Explain(&scimConnections, &scimConnection{ID: SCIMConnectionID(token)}),
		storage.Explain(&scimUsers, &scimUser{ID: user, SCIMUserAttributes: SCIMUserAttributes{UserName: "Ann@Example.com", ExternalID: &external}, Teams: []TeamID{team}}),
		storage.Explain(&scimGroups, &scimGroup{ID: team, DisplayName: "Engineering", ExternalID: &external}),
		storage.Explain(&timers, &Timer{Kind: "kind", Subject: "subject", Due: at}),
		storage.Explain(&agents, &Agent{ID: AgentID(token), IsDefault: true, CreatedAt: at}),
		storage.Explain(&agents, &Agent{ID: "an id of another form", CreatedAt: at}),
		storage.Explain(&sessions, goldenSession(SessionCreated)),
		storage.Explain(&sessions, goldenSession(SessionWaiting)),
		storage.Explain(&sessions, goldenRunning()),
		storage.Explain(&holds, &Hold{Scope: "agent:a"}),
		storage.Explain(&retentions, &Retention{ClosedIssues: ArchiveClosed}),
		storage.Explain(&closings, &closedIssue{IssueID: issue, ClosedAt: at}),
		storage.Explain(&closings, &closedIssue{IssueID: issue, ClosedAt: at, Archived: true}),
		storage.Explain(&budgets, &BudgetLimits{Scope: "agent:a"}),
		storage.Explain(&concurrencyLimits, &ConcurrencyLimit{Key: "key"}),
		storage.Explain(&sessions, goldenSession(SessionFailed)),
		storage.Explain(&sessions, goldenParked(parkNotBefore)),
		storage.Explain(&sessions, goldenParked(parkConcurrency)),
		storage.Explain(&drafts, goldenDraft()),
		storage.Explain(&webhooks, &Webhook{ID: "01935000-0000-7000-8000-0000000000dd"}),
		storage.Explain(&retries, &WebhookDelivery{ID: "01935000-0000-7000-8000-0000000000ee", SubscriptionID: "01935000-0000-7000-8000-0000000000dd", NextAttemptAt: &removed}),
		storage.Explain(&deliveries, &WebhookDelivery{ID: "01935000-0000-7000-8000-0000000000ee", SubscriptionID: "01935000-0000-7000-8000-0000000000dd", LastAttemptAt: &removed}),
		storage.Explain(&directory, &directoryEntry{Workspace: workspace, Slug: "yard"}),
		storage.Explain(&memberships, &membership{User: user, Workspace: workspace, RemovedAt: &removed}),
	}, "\n")
	file := filepath.Join("testdata", "keys.golden")
	if *updateKeys {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the layout changed; it is\n%s", got)
	}
}

// Every table is part of the schema, and its keys are pinned.
func TestSchema_HasEveryTable(t *testing.T) {
	t.Parallel()
	golden := ""
	for _, name := range []string{"keys.golden", "issue.golden"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		golden += "\n" + string(text)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			table := tableLiteral(n)
			if table == "" {
				return true
			}
			found++
			if !slices.ContainsFunc(tables, func(d declaredTable) bool { return d.name == table }) {
				t.Errorf("%s: the table %q needs a declareTable beside it", name, table)
			}
			if !strings.Contains(golden, "\n"+table+" ") {
				t.Errorf("%s: TestSchema_Golden explains no record of the table %q", name, table)
			}
			return true
		})
	}
	if found != len(tables) {
		t.Errorf("%d tables are written down, %d declared", found, len(tables))
	}
}

// tableLiteral gives the name in a literal of a storage.Table; empty for other nodes.
func tableLiteral(n ast.Node) string {
	literal, ok := n.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	generic, ok := literal.Type.(*ast.IndexExpr)
	if !ok {
		return ""
	}
	if typ, ok := generic.X.(*ast.SelectorExpr); !ok || typ.Sel.Name != "Table" {
		return ""
	}
	for _, element := range literal.Elts {
		field, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := field.Key.(*ast.Ident); ok && key.Name == "Name" {
			name, _ := strconv.Unquote(field.Value.(*ast.BasicLit).Value)
			return name
		}
	}
	return "a table without a name"
}

// The verifier finds each kind of damage.
func TestSchema_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(tx *Tx) error{
		"an event is missing": func(tx *Tx) error {
			return tx.Writer().DeleteValue(eventTable, storage.Key(nil).U64(2))
		},
		"the last event is missing": func(tx *Tx) error {
			return tx.Writer().DeleteValue(eventTable, storage.Key(nil).U64(3))
		},
		"the clock runs behind": func(tx *Tx) error {
			return tx.SetCounter(clockTable, storage.ID{}, 1)
		},
		"two default teams": func(tx *Tx) error {
			_, _, err := tx.addTeam(Team{Key: "TWO", IsDefault: true, IsPublic: true})
			return err
		},
		"a record count is off": func(tx *Tx) error { return tx.countRecord(teamTable, 1) },
		"a history of no issue": func(tx *Tx) error {
			_, err := tx.keepHistory(storage.ID{1}, []Change{{"title", "old", "new"}})
			return err
		},
		"no owner":        func(tx *Tx) error { return dropFirst(tx, &members) },
		"no grant":        func(tx *Tx) error { return dropFirst(tx, &tokenGrants) },
		"no timer":        func(tx *Tx) error { return dropFirst(tx, &timers) },
		"no workspace":    func(tx *Tx) error { return dropFirst(tx, &workspaces) },
		"an unknown slug": renameSlug,
		"a foreign member": func(tx *Tx) error {
			_, err := tx.insertMember(&Member{UserID: "x", Role: RoleGuest}, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestService(t)
			home := w.onboard("home")
			for range 3 {
				w.issue(home.Token.Secret, home.Workspace.ID, home.Team.ID)
			}
			w.verify()
			w.must("root", home.Workspace.ID, NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				return Reply{}, harm(tx)
			}), &None{})
			report, err := storage.Verify(t.Context(), w.db, Schema())
			if err != nil {
				t.Fatal(err)
			}
			if report.Clean() {
				t.Error("nothing was found")
			}
		})
	}
}

func goldenSession(status SessionStatus) *sessionRecord {
	ref := "ref"
	s := &sessionRecord{AgentSession: AgentSession{
		ID: "01935000-0000-7000-8000-0000000000dd", IssueID: "01935000-0000-7000-8000-0000000000ee", AgentID: "agent", Provider: "provider",
		Status: status, ProviderSessionID: &ref,
	}}
	s.Inner.Rank, s.Inner.Parent, s.Inner.Predecessor = PriorityHigh.rank(), s.ID, SessionID(s.IssueID)
	if status == SessionFailed {
		s.Inner.EndedAt = "2026-11-20T21:30:00.123Z"
		at, reason := Timestamp("2026-11-20T21:30:00.123Z"), "rate_limited"
		s.DeadLetteredAt, s.FailureReason = &at, &reason
	}
	if status == SessionFailed {
		s.Inner.Wait = &sessionWait{Conditions: []WaitCondition{{Session: string(s.ID)}, {Children: true}, {PR: "merged"}}, Met: make([]bool, 3)}
	}
	if status == SessionWaiting {
		s.Inner.StartedAt = "2026-11-20T21:30:00.123Z"
	}
	return s
}

// goldenParked is a created session that can't be claimed for a reason.
func goldenParked(reason parkReason) *sessionRecord {
	s, at := goldenSession(SessionCreated), Timestamp("2026-11-20T21:30:00.123Z")
	s.Inner.Predecessor, s.Inner.Parent, s.NotBefore = "", "", &at
	s.Inner.Park, s.ConcurrencyKeys = &parking{Reason: reason, Subject: "subject"}, []string{"key"}
	return s
}

// goldenRunning is a running session that holds a place of a key.
func goldenRunning() *sessionRecord {
	s := goldenSession(SessionRunning)
	s.ConcurrencyKeys = []string{"key"}
	return s
}

func goldenDraft() *draftRecord {
	issue, session := IssueID("01935000-0000-7000-8000-0000000000dd"), SessionID("01935000-0000-7000-8000-0000000000ee")
	return &draftRecord{Draft: Draft{ID: "01935000-0000-7000-8000-0000000000ff", IssueID: &issue, SessionID: &session, Status: DraftPublished}}
}

func dropFirst[T any](tx *Tx, table *storage.Table[T]) error {
	var row *storage.Row[T]
	err := table.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (_ bool, err error) {
		row, err = table.Decode(rec)
		return false, err
	})
	if err != nil {
		return err
	}
	return table.Delete(tx, row)
}

func renameSlug(tx *Tx) error {
	ws, err := tx.workspace()
	if err != nil {
		return err
	}
	changed := ws.Value
	changed.Slug = "other"
	return tx.updateWorkspace(ws, &changed)
}
