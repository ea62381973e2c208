package tracker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	json "github.com/goccy/go-json"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/storage"
)

// townShards is the number of workspace shards in a town.
const townShards = 4

// town is a whole service in one goroutine, on a Pebble in memory: any number of
// workspaces and the directory, whose commands commit one by one, and workflows
// whose steps can be made to fail.
type town struct {
	tester
	db      *pebble.DB
	now     time.Time
	random  *rand.ChaCha8
	ledgers map[storage.ID]*Ledger
	cut     *cut // of the next workflow
	// between is called before each step of a workflow, with the step's number.
	between func(step int)
	inbound InboundSettings
	agents  AgentSettings
}

// cut is where a workflow dies: before its step of that number, or right after the
// step's commit. It runs no step after that.
type cut struct {
	step      int
	persisted bool
	dead      bool
}

var errCut = errors.New("the node died")

func newTown(t tester) *town {
	t.Helper()
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), DisableWAL: true, Logger: logless{}})
	if err != nil {
		t.Fatal(err)
	}
	w := &town{tester: t, db: db, now: time.Date(2026, 11, 20, 21, 30, 0, 123e6, time.UTC), random: rand.NewChaCha8([32]byte{1}), ledgers: map[storage.ID]*Ledger{}}
	t.Cleanup(func() {
		w.restart()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// restart forgets everything that is not on disk.
func (w *town) restart() {
	for id, l := range w.ledgers {
		_ = l.Close()
		delete(w.ledgers, id)
	}
}

func (w *town) ledger(id storage.ID) *Ledger {
	l := w.ledgers[id]
	if l == nil {
		l = NewLedger(storage.NewTx(w.db, storage.ShardOf(id, townShards), id), w.random)
		l.Configure(&w.agents)
		w.ledgers[id] = l
	}
	return l
}

func (w *town) view(id storage.ID) storage.View {
	return storage.NewView(w.db, storage.ShardOf(id, townShards), id)
}

// admit does what the engine does before an operation.
func (w *town) admit(req *Request, op *Op) error {
	if op.Needs.Level == Public {
		return req.Admit(op, op.Needs)
	}
	p := OperatorPrincipal()
	if req.Credential != "root" {
		c, err := ParseCredential(req.Credential)
		if err != nil {
			return err
		}
		home := w.view(c.Home)
		if p, err = Authenticate(&home, c); err != nil {
			return err
		}
		if p.Expired(w.now) {
			return Unauthorized()
		}
	}
	req.Caller = Caller{Principal: p}
	if op.Needs.Level >= Read && op.Needs.Level <= Admin {
		v := w.view(req.Workspace)
		caller, err := ResolveCaller(&v, p)
		if err != nil {
			return err
		}
		if caller.Lane != nil {
			if err := w.madeLane(&caller, req.Workspace); err != nil {
				return err
			}
		}
		req.Caller = caller
	}
	return req.Admit(op, op.Needs)
}

// madeLane looks at who made the lane of a caller, as the engine does.
func (w *town) madeLane(c *Caller, workspace storage.ID) error {
	m := &c.Lane.Maker
	p := OperatorPrincipal()
	if !m.Operator() {
		home := w.view(m.KeptIn(workspace))
		var err error
		if p, err = AuthenticateMaker(&home, m); err != nil {
			return err
		}
	}
	if p.Expired(w.now) {
		return Unauthorized()
	}
	v := w.view(workspace)
	maker, err := ResolveCaller(&v, p)
	if err != nil {
		return Unauthorized()
	}
	return c.MadeBy(&maker)
}

// do runs an operation for a request.
func (w *town) do(req *Request, op *Op, in any) (Reply, error) {
	w.now = w.now.Add(time.Millisecond)
	switch op.Kind {
	case Query:
		id := req.Workspace
		if op.Directory {
			id = storage.DirectoryID
		}
		return op.RunQuery(NewView(w.view(id), &req.Caller, w.now, nil), in)
	case Command:
		return w.command(req, op, in)
	}
	f := &townFlow{town: w, req: req, cut: w.cut}
	w.cut = nil
	return op.RunFlow(f, in)
}

func (w *town) command(req *Request, op *Op, in any) (reply Reply, err error) {
	id := req.Workspace
	if op.Directory {
		id = storage.DirectoryID
	}
	l := w.ledger(id)
	for more := true; more; more = reply.More {
		reply, err = l.Run(op, req, in, w.now)
		w.commit(l)
		if err != nil {
			return reply, err
		}
	}
	return reply, nil
}

func (w *town) commit(l *Ledger) {
	w.Helper()
	repr, err := l.Seal()
	if err != nil {
		w.Fatal(err)
	}
	if repr != nil {
		b := w.db.NewBatch()
		if err := b.SetRepr(append([]byte(nil), repr...)); err != nil {
			w.Fatal(err)
		}
		if err := b.Commit(pebble.NoSync); err != nil {
			w.Fatal(err)
		}
	}
	l.Committed()
}

// townFlow sends every step's input through JSON, as a step on another node's is.
type townFlow struct {
	*town
	req   *Request
	cut   *cut
	steps atomic.Int64
}

func (f *townFlow) Request() *Request         { return f.req }
func (f *townFlow) Now() time.Time            { return f.now }
func (f *townFlow) Inbound() *InboundSettings { return &f.inbound }
func (f *townFlow) Secret(b []byte)           { _, _ = f.random.Read(b) }

func (f *townFlow) NewID() (id storage.ID) {
	f.Secret(id[:])
	ms := uint64(f.now.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

func (f *townFlow) Query(workspace storage.ID, op *Op, in any) (Reply, error) {
	return f.step(f.req.Look(workspace), op, in)
}

func (f *townFlow) Command(permit Permit, workspace storage.ID, op *Op, in any) (Reply, error) {
	return f.step(f.req.Step(permit, workspace), op, in)
}

func (f *townFlow) CommandAs(permit Permit, caller Caller, workspace storage.ID, op *Op, in any) (Reply, error) {
	return f.step(f.req.StepAs(permit, caller, workspace), op, in)
}

func (f *townFlow) step(req *Request, op *Op, in any) (Reply, error) {
	n := int(f.steps.Add(1))
	if f.between != nil {
		f.between(n)
	}
	if f.cut != nil && (f.cut.dead || n == f.cut.step && !f.cut.persisted) {
		f.cut.dead = true
		return Reply{}, errCut
	}
	if err := f.sendPermit(req); err != nil {
		return Reply{}, err
	}
	sent := in
	if StepOps[op.Name] == op { // else it runs on this node alone
		body, err := json.Marshal(in)
		if err != nil {
			return Reply{}, fmt.Errorf("encode the input of %s: %w", op.Name, err)
		}
		sent = op.New()
		if err := json.Unmarshal(body, sent); err != nil {
			return Reply{}, fmt.Errorf("decode the input of %s: %w", op.Name, err)
		}
	}
	reply, err := f.do(req, op, sent)
	if f.cut != nil && n == f.cut.step {
		f.cut.dead = true
		return Reply{}, errCut
	}
	return reply, err
}

func (f *townFlow) sendPermit(req *Request) error {
	body, err := json.Marshal(req.Permit())
	if err != nil {
		return fmt.Errorf("encode a permit: %w", err)
	}
	var sent Permit
	if err := json.Unmarshal(body, &sent); err != nil {
		return fmt.Errorf("decode a permit: %w", err)
	}
	SentStep(req, sent)
	return nil
}

// ask makes a request as a client does: with a credential, and maybe a key.
func (w *town) ask(credential string, workspace WorkspaceID, op *Op, in any, key ...string) (Reply, error) {
	w.Helper()
	req := &Request{Workspace: workspace.raw(), Credential: credential}
	if len(key) > 0 {
		body, err := json.Marshal(in)
		if err != nil {
			w.Fatal(err)
		}
		req.Idempotency = &Idempotency{Key: key[0], Fingerprint: sha256.Sum256(append(body, op.Name+string(workspace)...))}
	}
	if err := w.admit(req, op); err != nil {
		return Reply{}, err
	}
	return w.do(req, op, in)
}

// must is ask where nothing may go wrong.
func (w *town) must(credential string, workspace WorkspaceID, op *Op, in any, key ...string) Reply {
	w.Helper()
	reply, err := w.ask(credential, workspace, op, in, key...)
	if err != nil {
		w.Fatalf("%s: %v", op.Name, err)
	}
	return reply
}

// onboard makes a workspace and gives it with its owner's token.
func (w *town) onboard(slug string) Onboarded {
	w.Helper()
	return decode[Onboarded](w, w.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: slug, Slug: slug}).Body)
}

// token makes a token with an owner's.
func (w *town) token(home Onboarded, in *CreateTokenIn) string {
	w.Helper()
	in.Name = "test"
	return decode[CreatedToken](w, w.must(home.Token.Secret, home.Workspace.ID, CreateToken, in).Body).Secret
}

// member adds somebody and makes a token for them.
func (w *town) member(home Onboarded, role Role, permissions string) (UserID, string) {
	w.Helper()
	m := decode[Member](w, w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{Name: Some("somebody"), Role: role}).Body)
	return m.UserID, w.token(home, &CreateTokenIn{UserID: m.UserID, Permissions: words(permissions)})
}

func words(permissions string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf("%q", permissions))
}

// pass lets time go by and runs the timers that come due.
func (w *town) pass(d time.Duration) {
	w.Helper()
	end := w.now.Add(d)
	for range 10_000 {
		at, due := w.nextTimer()
		if due == nil || at.After(end) {
			w.now = end
			return
		}
		if at.After(w.now) {
			w.now = at
		}
		if _, err := w.do(ServiceRequest("", due.Workspace), TimerOps[due.Kind], &TimerIn{due.Kind, due.Subject}); err != nil {
			w.Fatalf("timer %s of %s: %v", due.Kind, due.Subject, err)
		}
	}
	w.Fatal("the timers never come to rest")
}

// nextTimer gives the timer that is due first, in any shard.
func (w *town) nextTimer() (at time.Time, first *DueTimer) {
	w.Helper()
	for shard := range storage.Shard(townShards + 1) {
		v := storage.NewView(w.db, shard, storage.SystemID)
		due, _, err := ListDue(&v, w.now.Add(100*365*24*time.Hour), 1, func(string) bool { return true })
		if err != nil {
			w.Fatal(err)
		}
		if len(due) > 0 && (first == nil || due[0].Due.Before(at)) {
			at, first = due[0].Due, &due[0]
		}
	}
	return at, first
}

// verify proves the whole state.
func (w *town) verify() {
	w.Helper()
	report, err := storage.Verify(context.Background(), w.db, Schema())
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range report.Problems {
		w.Errorf("verify: %v", p)
	}
}

// each calls fn for every key and value on disk.
func (w *town) each(fn func(key, value []byte)) {
	w.Helper()
	it, err := w.db.NewIter(nil)
	if err != nil {
		w.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		fn(it.Key(), it.Value())
	}
	if err := it.Close(); err != nil {
		w.Fatal(err)
	}
}
