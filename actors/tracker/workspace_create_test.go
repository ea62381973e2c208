package tracker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestOnboardWorkspace_GivesAWorkspaceReadyForUse(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	got := w.onboard("acme-1")
	if *got.Workspace.Key != "ACME1" || got.Team.Key != "ACME1" || *got.Workspace.DefaultTeamID != got.Team.ID || !got.Team.IsDefault {
		t.Errorf("onboarded %+v with %+v", got.Workspace, got.Team)
	}
	if got.Token.Permissions != "admin" || !strings.HasPrefix(got.Token.Secret, "swy_") {
		t.Errorf("token %+v", got.Token)
	}
	for _, op := range []*Op{WorkspaceByID, ListTeams, ListMembers, ListTokens} {
		w.must(got.Token.Secret, got.Workspace.ID, op, op.New())
	}
	bySlug := w.must(got.Token.Secret, "", WorkspaceBySlug, &WorkspaceBySlugIn{"acme-1"})
	byID := w.must(got.Token.Secret, got.Workspace.ID, WorkspaceByID, &None{})
	if !bytes.Equal(bySlug.Body, byID.Body) {
		t.Errorf("by slug %s, by id %s", bySlug.Body, byID.Body)
	}
	w.verify()
}

// Onboarding has no credential, so one that is sent along does not matter for a repetition.
func TestOnboardWorkspace_ReplayIgnoresTheCredential(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	in := &NewWorkspaceIn{Name: "x", Slug: "home"}
	first := w.must("", "", OnboardWorkspace, in, "k")
	made := decode[Onboarded](w, first.Body).Token.Secret
	for _, credential := range []string{made, "root", "nonsense", ""} {
		again := w.must(credential, "", OnboardWorkspace, in, "k")
		if !again.Replayed || !bytes.Equal(again.Body, first.Body) {
			t.Errorf("%q: replayed %t: %s", credential, again.Replayed, again.Body)
		}
	}
	w.verify()
}

func TestOnboardWorkspace_SlugIsUnique(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	w.onboard("acme")
	_, err := w.ask("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "x", Slug: "acme"})
	wantCode(t, err, CodeConflict)
	w.pass(time.Hour)
	w.verify()
}

// The number of a user's workspaces is limited; a deletion makes room for another.
func TestCreateWorkspace_SoManyOfAUser(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	w.agents.WorkspacesPerUser = 3
	home := w.onboard("home")
	_, guest := w.member(home, RoleGuest, "write")
	make := func(credential, slug string) error {
		_, err := w.ask(credential, "", CreateWorkspace, &NewWorkspaceIn{Name: slug, Slug: slug})
		return err
	}
	for _, slug := range []string{"second", "third"} {
		if err := make(home.Token.Secret, slug); err != nil {
			t.Fatal(err)
		}
	}
	err := make(home.Token.Secret, "fourth")
	wantCode(t, err, CodeConflict)
	if !strings.Contains(err.Error(), "--workspaces-per-user") {
		t.Error(err)
	}
	for _, slug := range []string{"guest-1", "guest-2", "guest-3"} {
		if err := make(guest, slug); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, make(guest, "guest-4"), CodeConflict)
	third := decode[Workspace](t, w.must(home.Token.Secret, "", WorkspaceBySlug, &WorkspaceBySlugIn{"third"}).Body)
	w.must(home.Token.Secret, third.ID, DeleteWorkspace, &None{})
	w.pass(time.Hour)
	if err := make(home.Token.Secret, "fourth"); err != nil {
		t.Error(err)
	}
	w.verify()
}

// The bound is on workspaces that users make: the operator can move and import a user's workspaces beyond it.
// They count when the user makes another one.
func TestCreateWorkspace_OperatorBringsMoreOfAUser(t *testing.T) {
	t.Parallel()
	d := departs(t)
	another := func(slug string) Workspace {
		return decode[Workspace](t, d.from.must(d.home.Token.Secret, "", CreateWorkspace, &NewWorkspaceIn{Name: slug, Slug: slug}).Body)
	}
	w := newTestService(t)
	w.agents.WorkspacesPerUser = 1
	w.must("root", d.home.Workspace.ID, EndArrival, &EndArrivalIn{ID: d.arrive(w)})
	second := departing{home: Onboarded{Workspace: another("second")}}
	second.blocks = d.from.blocks(second.home.Workspace.ID, 2000)
	w.must("root", second.home.Workspace.ID, EndArrival, &EndArrivalIn{ID: second.arrive(w)})
	line, _, _ := bytes.Cut(d.from.exported(another("third").ID, &ExportIn{}, exportWindow), []byte{'\n'})
	w.must("root", "", BeginImport, &BeginImportIn{Body: line})
	_, err := w.ask(d.home.Token.Secret, "", CreateWorkspace, &NewWorkspaceIn{Name: "fourth", Slug: "fourth"})
	wantCode(t, err, CodeConflict)
	w.verify()
}

func TestNewWorkspaceIn_Validate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slug, key string
		path      string
	}{
		{"a", "", ""},
		{"a-b-9", "AB", ""},
		{strings.Repeat("a", 64), "0123456789", ""},
		{strings.Repeat("a", 65), "", "slug"},
		{"", "", "slug"},
		{"Acme", "", "slug"},
		{"a b", "", "slug"},
		{"a", "A-B", "key"},
		{"a", "ABCDEFGHIJK", "key"},
	} {
		for path, fault := range map[string]string{"slug": Forms()["slug"].Fault(c.slug), "key": Forms()["key"].Fault(cmp.Or(c.key, "A"))} {
			if (fault != "") != (c.path == path) {
				t.Errorf("%s of slug %q and key %q: %q", path, c.slug, c.key, fault)
			}
		}
	}
	for slug, want := range map[string]string{"acme-corporation": "ACMECORPOR", "---": "WS", "a": "A"} {
		if got := (&NewWorkspaceIn{Slug: slug}).key(); got != want {
			t.Errorf("key of %q is %q, want %q", slug, got, want)
		}
	}
}

// A creation that crashes before or after any step is either undone, and its slug is
// free again, or completed; a repeat with its key has one answer.
func TestNewWorkspace_CutAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, op := range []*Op{OnboardWorkspace, CreateWorkspace} {
		for step := 1; step <= 3; step++ {
			for _, persisted := range []bool{false, true} {
				for _, repeat := range []bool{false, true} {
					name := fmt.Sprintf("%s/step %d/persisted %t/repeated %t", op.Name, step, persisted, repeat)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						cutCreation(t, op, crashPoint{step: step, persisted: persisted}, repeat)
					})
				}
			}
		}
	}
}

func cutCreation(t *testing.T, op *Op, at crashPoint, repeat bool) {
	w := newTestService(t)
	home := w.onboard("home")
	in := &NewWorkspaceIn{Name: "Acme", Slug: "acme"}
	w.cut = &at
	if _, err := w.ask(home.Token.Secret, "", op, in, "k"); !errors.Is(err, errCut) {
		t.Fatalf("cut: %v", err)
	}
	w.restart()
	w.verify() // the timer of an unfinished creation is set
	founded := at.step > 2 || at.step == 2 && at.persisted
	if repeat {
		first := w.must(home.Token.Secret, "", op, in, "k")
		second := w.must(home.Token.Secret, "", op, in, "k")
		if !bytes.Equal(first.Body, second.Body) || !second.Replayed || first.Replayed != founded {
			t.Errorf("repeats answered %s (replayed %t) and %s (replayed %t)", first.Body, first.Replayed, second.Body, second.Replayed)
		}
		founded = true
	}
	w.pass(2 * time.Minute)
	w.verify()
	_, err := w.ask(home.Token.Secret, "", CreateWorkspace, in, "other")
	if founded {
		wantCode(t, err, CodeConflict)
		if _, err := w.ask("root", "", WorkspaceBySlug, &WorkspaceBySlugIn{"acme"}); err != nil {
			t.Errorf("by slug: %v", err)
		}
	} else if err != nil {
		t.Errorf("the slug is not free: %v", err)
	}
	w.pass(2 * time.Minute)
	w.verify()
}

// A workspace can't be founded once the directory may have given its slug to another.
func TestNewWorkspace_TooLateAfterItsReservation(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	in := &NewWorkspaceIn{Name: "Acme", Slug: "acme"}
	w.cut = &crashPoint{step: 1, persisted: true}
	if _, err := w.ask("", "", OnboardWorkspace, in, "k"); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	w.now = w.now.Add(foundWithin + time.Second) // no timer has run yet
	_, err := w.ask("", "", OnboardWorkspace, in, "k")
	wantCode(t, err, CodeUnavailable)
	w.pass(resolveAfter)
	// The reservation is released together with its key's answer.
	w.must("", "", OnboardWorkspace, in, "k")
	w.verify()
}

// Of two imports that make a workspace with the same id at once the directory knows one, also when
// their files have different slugs.
func TestBeginImport_AnotherAtOnce(t *testing.T) {
	t.Parallel()
	from := newTestService(t)
	home := from.onboard("leaving")
	line, _, _ := bytes.Cut(from.exported(home.Workspace.ID, &ExportIn{}, 1000), []byte("\n"))
	for _, slug := range []string{"leaving", "other"} {
		w := newTestService(t)
		other := bytes.Replace(line, []byte(`"slug":"leaving"`), []byte(`"slug":"`+slug+`"`), 1)
		w.between = func(n int) {
			if n == 2 {
				w.between = nil
				w.must("root", "", BeginImport, &BeginImportIn{Body: other})
			}
		}
		_, err := w.ask("root", "", BeginImport, &BeginImportIn{Body: line})
		wantCode(t, err, CodeUnavailable)
		w.verify()
		if made := decode[Workspace](w, w.must("root", "", WorkspaceBySlug, &WorkspaceBySlugIn{slug}).Body); made.ID != home.Workspace.ID {
			t.Errorf("the slug %s is of %s", slug, made.ID)
		}
	}
}

// A repeat of the request that made a deleted workspace does not make it again, at once
// or later.
func TestNewWorkspace_KeyOfADeletedWorkspace(t *testing.T) {
	t.Parallel()
	for _, op := range []*Op{CreateWorkspace, OnboardWorkspace} {
		for _, after := range []time.Duration{0, time.Second, foundWithin + time.Second, time.Hour} {
			t.Run(fmt.Sprintf("%s, %s after", op.Name, after), func(t *testing.T) {
				t.Parallel()
				w := newTestService(t)
				home := w.onboard("home")
				in := &NewWorkspaceIn{Name: "Acme", Slug: "acme"}
				w.must(home.Token.Secret, "", op, in, "k")
				made := decode[Workspace](w, w.must("root", "", WorkspaceBySlug, &WorkspaceBySlugIn{"acme"}).Body)
				w.must("root", made.ID, DeleteWorkspace, &None{})
				w.pass(after)
				for range 2 {
					_, err := w.ask(home.Token.Secret, "", op, in, "k")
					wantCode(t, err, CodeConflict)
				}
				if n := w.traces(made.ID); n != 0 {
					t.Errorf("%d keys are there of the deleted workspace", n)
				}
				w.must(home.Token.Secret, "", op, in, "k2")
				w.verify()
			})
		}
	}
}

// The same holds for a repeat that runs during the deletion.
func TestNewWorkspace_DeletedWhileRepeated(t *testing.T) {
	t.Parallel()
	for _, op := range []*Op{CreateWorkspace, OnboardWorkspace} {
		for step := 1; step <= 4; step++ {
			t.Run(fmt.Sprintf("%s, before step %d", op.Name, step), func(t *testing.T) {
				t.Parallel()
				w := newTestService(t)
				home := w.onboard("home")
				in := &NewWorkspaceIn{Name: "Acme", Slug: "acme"}
				w.must(home.Token.Secret, "", op, in, "k")
				made := decode[Workspace](w, w.must("root", "", WorkspaceBySlug, &WorkspaceBySlugIn{"acme"}).Body)
				w.between = func(n int) {
					if n == step {
						w.between = nil
						w.must("root", made.ID, DeleteWorkspace, &None{})
					}
				}
				_, err := w.ask(home.Token.Secret, "", op, in, "k")
				if w.between != nil {
					return // the repeat had fewer steps
				}
				var refusal *Error
				if err != nil && (!errors.As(err, &refusal) || refusal.Code != CodeConflict) {
					t.Errorf("the repeat answered %v", err)
				}
				if n := w.traces(made.ID); n != 0 {
					t.Errorf("%d keys are there of the deleted workspace", n)
				}
				w.verify()
			})
		}
	}
}

func TestNewWorkspace_KeyReused(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	w.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "Acme", Slug: "acme"}, "k")
	_, err := w.ask("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "Acme", Slug: "other"}, "k")
	wantCode(t, err, CodeIdempotencyKeyReused)
}

func TestCreateWorkspace_Callers(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	_, issued := w.member(home, RoleMember, "write")
	owners := w.token(home, &CreateTokenIn{Permissions: words("write")})
	for i, c := range []struct {
		who, credential string
		code            Code
	}{
		{"owner", owners, ""},
		{"a member whose id the workspace made", issued, ""},
		{"root", "root", ""},
		{"read only", w.token(home, &CreateTokenIn{Permissions: words("read")}), CodeForbidden},
		{"agent", w.token(home, &CreateTokenIn{ActorType: ActorAgent, Permissions: words("admin")}), CodeForbidden},
		{"nobody", "swy_nothing", CodeUnauthorized},
	} {
		reply, err := w.ask(c.credential, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: fmt.Sprintf("s%d", i)})
		if c.code != "" {
			wantCode(t, err, c.code)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.who, err)
			continue
		}
		ws := decode[Workspace](w, reply.Body)
		if ws.DefaultTeamID != nil || ws.OwnerID == "" {
			t.Errorf("%s made %+v", c.who, ws)
		}
		w.must(c.credential, ws.ID, WorkspaceByID, &None{})
	}
	w.verify()
}

func TestListWorkspaces(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	other := w.onboard("other")
	for i := range 7 {
		w.must(home.Token.Secret, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: fmt.Sprintf("s%d", i)})
	}
	walk := func(credential string) (slugs []string) {
		in := &ListWorkspacesIn{Limit: 3}
		for {
			page := decode[WorkspaceList](w, w.must(credential, "", ListWorkspaces, in).Body)
			for _, ws := range page.Workspaces {
				slugs = append(slugs, ws.Slug)
			}
			if in.Cursor = page.NextCursor; in.Cursor == "" {
				return slugs
			}
		}
	}
	for _, c := range []struct{ who, credential, want string }{
		{"owner", home.Token.Secret, "[s6 s5 s4 s3 s2 s1 s0 home]"},
		{"another", other.Token.Secret, "[other]"},
		{"root", "root", "[s6 s5 s4 s3 s2 s1 s0 other home]"},
		{"agent", w.token(home, &CreateTokenIn{ActorType: ActorAgent}), "[home]"},
	} {
		if got := fmt.Sprint(walk(c.credential)); got != c.want {
			t.Errorf("%s sees %s, want %s", c.who, got, c.want)
		}
	}
	page := decode[WorkspaceList](w, w.must("root", "", ListWorkspaces, &ListWorkspacesIn{Limit: 1}).Body)
	for _, cursor := range []string{page.NextCursor, "x", "AAAA"} {
		_, err := w.ask(home.Token.Secret, "", ListWorkspaces, &ListWorkspacesIn{Limit: 1, Cursor: cursor})
		wantCode(t, err, CodeBadRequest, "query.cursor")
	}
}
