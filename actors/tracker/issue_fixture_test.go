package tracker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// issueFixture is a workspace with two public teams and a private one, on a Pebble in
// memory, whose commands commit one by one.
type issueFixture struct {
	tester
	db        *pebble.DB
	workspace storage.ID
	now       time.Time
	buffer    *WriteBuffer
	tails     *Tails
	segments  *storage.SegmentCache // queries read through it
	core      TeamID                // CORE, the default team
	web       TeamID                // WEB
	secret    TeamID                // SEC, private
	ann       Caller                // an owner, who sees everything
	gus       Caller                // a guest, from whom SEC is hidden
	sets      *storage.FilterSets   // follow the commits; nil if there are none
}

// tester is the interface that a test, a benchmark and a rapid.T have in common.
type tester = testkit.TB

func newIssueFixture(t tester) *issueFixture {
	t.Helper()
	return newIssueWorldIn(t, testkit.MemoryDB(t))
}

func newIssueWorldIn(t tester, db *pebble.DB) *issueFixture {
	t.Helper()
	w := &issueFixture{tester: t, db: db, workspace: storage.ID{0: 1, 15: 9}, now: time.Date(2026, 11, 20, 21, 30, 0, 123e6, time.UTC)}
	w.buffer = NewWriteBuffer(storage.NewTx(db, 1, w.workspace), rand.NewChaCha8([32]byte{7}))
	w.buffer.indexFew = 1 // tests have few issues
	w.tails = NewTails(1 << 20)
	w.segments = storage.NewSegmentCache(1<<20, SegmentTable)
	w.buffer.Remember(w.tails)
	t.Cleanup(func() { _ = w.buffer.Close() })
	w.ann = Caller{Principal: Principal{Type: ActorUser, ID: "ann", Permissions: permissionWords["admin"]}, Role: RoleOwner, Level: Admin}
	w.gus = Caller{Principal: Principal{Type: ActorUser, ID: "gus", Permissions: permissionWords["write"]}, Role: RoleGuest, Level: Write}
	creation := NewCommand[None, None]("found", "", Needs{}, w.found, RunsWithoutWorkspace)
	w.run(&w.ann, creation, &None{})
	hidden, _ := storage.ParseID(w.secret)
	w.gus.Hidden = map[storage.ID]struct{}{hidden: {}}
	return w
}

func (w *issueFixture) found(tx *Tx, _ *None) (Reply, error) {
	now := At(tx.Now())
	ws := Workspace{ID: WorkspaceID(w.workspace.String()), Name: "Yard", Slug: "yard", OwnerID: "ann", CreatedAt: now, UpdatedAt: now}
	for _, team := range []struct {
		id     *TeamID
		key    string
		public bool
	}{{&w.core, "CORE", true}, {&w.web, "WEB", true}, {&w.secret, "SEC", false}} {
		id, err := tx.NewID()
		if err != nil {
			return Reply{}, err
		}
		*team.id = TeamID(id.String())
		row := Team{ID: *team.id, OrganizationID: ws.ID, Key: team.key, Name: team.key, OwnerID: "ann", IsDefault: team.id == &w.core, IsPublic: team.public, CreatedAt: now, UpdatedAt: now}
		if _, err := teams.Insert(tx, &row); err != nil {
			return Reply{}, err
		}
		if err := tx.countRecord(teamTable, 1); err != nil {
			return Reply{}, err
		}
	}
	ws.DefaultTeamID = &w.core
	if _, err := tx.insertMember(&Member{UserID: "ann", Role: RoleOwner}, false); err != nil {
		return Reply{}, err
	}
	_, err := workspaces.Insert(tx, &ws)
	return Reply{}, err
}

// request returns a caller's request with a permit, since rights are not under test.
func (w *issueFixture) request(who *Caller) *Request {
	return &Request{Workspace: w.workspace, Caller: *who, permit: Permit{basis: basisService}}
}

// try runs a command and commits it, as often as it asks for. times is the number of
// runs.
func (w *issueFixture) try(who *Caller, op *Op, in any) (reply Reply, times int, err error) {
	w.Helper()
	w.now = w.now.Add(time.Millisecond)
	for more := true; more; more = reply.More {
		times++
		reply, err = w.buffer.Run(op, w.request(who), in, w.now)
		w.commit()
		if err != nil {
			return reply, times, err
		}
	}
	return reply, times, nil
}

func (w *issueFixture) commit() {
	w.Helper()
	commitBuffer(w, w.db, w.buffer, func(repr []byte) {
		if w.sets != nil {
			from, to := w.buffer.Versions()
			v := storage.NewView(w.db, 1, w.workspace)
			w.sets.Note(&v, repr, from, to)
		}
	})
}

// run is like try, and fails the test on an error.
func (w *issueFixture) run(who *Caller, op *Op, in any) Reply {
	w.Helper()
	reply, _, err := w.try(who, op, in)
	if err != nil {
		w.Fatalf("%s: %v", op.Name, err)
	}
	return reply
}

// ask runs a query.
func (w *issueFixture) ask(who *Caller, op *Op, in any) (Reply, error) {
	w.Helper()
	moment, snap := w.segments.Now(), w.db.NewSnapshot()
	defer func() {
		if err := snap.Close(); err != nil {
			w.Error(err)
		}
	}()
	v := NewView(storage.NewView(snap, 1, w.workspace), who, w.now, nil)
	v.RecallSegments(moment)
	v.Remember(w.tails)
	return op.RunQuery(v, in)
}

// create creates an issue as ann and returns it.
func (w *issueFixture) create(in CreateIssueIn) CreatedIssue {
	w.Helper()
	if in.Title == "" {
		in.Title = "An issue"
	}
	return decode[CreatedIssue](w, w.run(&w.ann, CreateIssue, &in).Body)
}

// patch changes an issue as ann and returns it.
func (w *issueFixture) patch(id IssueID, p IssuePatch) Issue {
	w.Helper()
	return decode[Issue](w, w.run(&w.ann, PatchIssue, &PatchIssueIn{ID: string(id), IssuePatch: p}).Body)
}

func (w *issueFixture) get(id IssueID) Issue {
	w.Helper()
	reply, err := w.ask(&w.ann, IssueByID, &IssueByIDIn{ID: string(id)})
	if err != nil {
		w.Fatal(err)
	}
	return decode[Issue](w, reply.Body)
}

// list reads one page.
func (w *issueFixture) list(who *Caller, in ListIssuesIn) IssuePage {
	w.Helper()
	reply, err := w.ask(who, ListIssues, &in)
	if err != nil {
		w.Fatal(err)
	}
	return decode[IssuePage](w, reply.Body)
}

// events reads the whole event log.
func (w *issueFixture) events() (events []loggedEvent) {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	err := v.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		rec, err := EventRow(&v, fields, value)
		if err != nil {
			return false, err
		}
		events = append(events, decode[loggedEvent](w, rec.JSON()))
		return true, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return events
}

// loggedEvent has the fields of an event that the tests check.
type loggedEvent struct {
	Type    string
	Actor   EventActor
	Data    Issue
	Changes map[string]struct{ From, To any }
}

// verify checks the whole state.
func (w *issueFixture) verify() {
	w.Helper()
	schema := Schema()
	schema.CheckStore = nil // these tests have no directory
	report, err := storage.Verify(context.Background(), w.db, schema)
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range report.Problems {
		w.Errorf("verify: %v", p)
	}
}

// verifyFinds verifies a damaged store: one of the problems must have this text.
func (w *issueFixture) verifyFinds(want string) {
	w.Helper()
	report, err := storage.Verify(context.Background(), w.db, Schema())
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range report.Problems {
		if strings.Contains(p.String(), want) {
			return
		}
	}
	w.Errorf("problems %v", report.Problems)
}

func decode[T any](t tester, body []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("decode %s: %v", body, err)
	}
	return v
}

func titles(all []Issue) []string {
	out := []string{}
	for _, t := range all {
		out = append(out, t.Title)
	}
	return out
}

// wantCode checks the code of an error, and the paths of its faults.
func wantCode(t tester, err error, code Code, paths ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error is %v, want code %s", err, code)
	}
	if e.Hint == "" || e.Message == "" {
		t.Errorf("error %+v lacks a message or a hint", e)
	}
	var got []string
	if details, ok := e.Details.(BadRequestDetails); ok {
		for _, f := range details.Issues {
			got = append(got, f.Path)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(paths) {
		t.Errorf("faults at %v, want %v", got, paths)
	}
}
