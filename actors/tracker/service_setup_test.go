package tracker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	json "github.com/goccy/go-json"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// testShards is the number of workspace shards of a testService.
const testShards = 4

// testService is a service on one goroutine, with a Pebble in memory: any number of
// workspaces and the directory, whose commands commit one by one, and workflows whose
// steps can be made to fail.
type testService struct {
	tester
	db      *pebble.DB
	now     time.Time
	random  *rand.ChaCha8
	buffers map[storage.ID]*WriteBuffer
	cut     *crashPoint // the crash of the next workflow; nil for none
	// between is called before each step of a workflow, with the step's number.
	between func(step int)
	inbound InboundSettings
	agents  AgentSettings
	// note is told of each batch of a workspace before it is committed; it may be nil.
	note func(workspace storage.ID, l *WriteBuffer, repr []byte)
}

// crashPoint is the point at which a workflow's node crashes: before a step, or right after the
// step's commit. No step runs after it.
type crashPoint struct {
	step      int
	persisted bool
	dead      bool
}

var errCut = errors.New("the node died")

func newTestService(t tester) *testService {
	t.Helper()
	w := &testService{
		tester: t, db: testkit.MemoryDB(t), now: time.Date(2026, 11, 20, 21, 30, 0, 123e6, time.UTC),
		random: rand.NewChaCha8([32]byte{1}), buffers: map[storage.ID]*WriteBuffer{},
	}
	t.Cleanup(w.restart)
	return w
}

// restart drops everything that is not on disk.
func (w *testService) restart() {
	for id, l := range w.buffers {
		_ = l.Close()
		delete(w.buffers, id)
	}
}

func (w *testService) bufferOf(id storage.ID) *WriteBuffer {
	l := w.buffers[id]
	if l == nil {
		l = NewWriteBuffer(storage.NewTx(w.db, storage.ShardOf(id, testShards), id), w.random)
		l.Configure(&w.agents)
		w.buffers[id] = l
	}
	return l
}

func (w *testService) view(id storage.ID) storage.View {
	return storage.NewView(w.db, storage.ShardOf(id, testShards), id)
}

// admit does what the engine does before an operation.
func (w *testService) admit(req *Request, op *Op) error {
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

// madeLane completes a caller with a lane token by the lane's maker, as the engine does.
func (w *testService) madeLane(c *Caller, workspace storage.ID) error {
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
func (w *testService) do(req *Request, op *Op, in any) (Reply, error) {
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
	f := &testFlow{testService: w, req: req, cut: w.cut}
	w.cut = nil
	return op.RunFlow(f, in)
}

func (w *testService) command(req *Request, op *Op, in any) (reply Reply, err error) {
	id := req.Workspace
	if op.Directory {
		id = storage.DirectoryID
	}
	l := w.bufferOf(id)
	for more := true; more; more = reply.More {
		reply, err = l.Run(op, req, in, w.now)
		if err == nil && reply.More && l.Empty() {
			err = errors.New("the operation asked to be run again but had written nothing")
		}
		commitBuffer(w, w.db, l, func(repr []byte) {
			if w.note != nil {
				w.note(id, l, repr)
			}
		})
		if err != nil {
			return reply, err
		}
	}
	return reply, nil
}

// commitBuffer applies the open batch of a write buffer, as replication does.
func commitBuffer(t tester, db *pebble.DB, l *WriteBuffer, note ...func(repr []byte)) {
	t.Helper()
	repr, err := l.Seal()
	if err != nil {
		t.Fatal(err)
	}
	if repr == nil {
		return
	}
	for _, fn := range note {
		fn(repr)
	}
	batch := db.NewBatch()
	if err := errors.Join(batch.SetRepr(bytes.Clone(repr)), batch.Commit(pebble.NoSync), batch.Close()); err != nil {
		t.Fatal(err)
	}
	l.Committed()
}

// testFlow runs the steps of a workflow. It encodes every step's input as JSON, as for a
// step on another node.
type testFlow struct {
	*testService
	req   *Request
	cut   *crashPoint
	steps atomic.Int64
}

func (f *testFlow) Request() *Request         { return f.req }
func (f *testFlow) Now() time.Time            { return f.now }
func (f *testFlow) Inbound() *InboundSettings { return &f.inbound }

func (f *testFlow) Shards() int     { return 1 }
func (f *testFlow) Secret(b []byte) { _, _ = f.random.Read(b) }

func (f *testFlow) NewID() (id storage.ID) {
	f.Secret(id[:])
	ms := uint64(f.now.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

func (f *testFlow) Query(workspace storage.ID, op *Op, in any) (Reply, error) {
	return f.step(f.req.Look(workspace), op, in)
}

func (f *testFlow) Command(permit Permit, workspace storage.ID, op *Op, in any) (Reply, error) {
	return f.step(f.req.Step(permit, workspace), op, in)
}

func (f *testFlow) CommandAs(permit Permit, caller Caller, workspace storage.ID, op *Op, in any) (Reply, error) {
	return f.step(f.req.StepAs(permit, caller, workspace), op, in)
}

func (f *testFlow) step(req *Request, op *Op, in any) (Reply, error) {
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
	if StepOps[op.Name] == op { // other steps run on this node only
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

func (f *testFlow) sendPermit(req *Request) error {
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

// ask makes a request as a client does, with a credential and optionally an idempotency
// key.
func (w *testService) ask(credential string, workspace WorkspaceID, op *Op, in any, key ...string) (Reply, error) {
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

// must is like ask, and fails the test on an error.
func (w *testService) must(credential string, workspace WorkspaceID, op *Op, in any, key ...string) Reply {
	w.Helper()
	reply, err := w.ask(credential, workspace, op, in, key...)
	if err != nil {
		w.Fatalf("%s: %v", op.Name, err)
	}
	return reply
}

// onboard makes a workspace and returns it with its owner's token.
func (w *testService) onboard(slug string) Onboarded {
	w.Helper()
	return decode[Onboarded](w, w.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: slug, Slug: slug}).Body)
}

// token makes a token with an owner's token.
func (w *testService) token(home Onboarded, in *CreateTokenIn) string {
	w.Helper()
	in.Name = "test"
	return decode[CreatedToken](w, w.must(home.Token.Secret, home.Workspace.ID, CreateToken, in).Body).Secret
}

// member adds a member and makes a token for it.
func (w *testService) member(home Onboarded, role Role, permissions string) (UserID, string) {
	w.Helper()
	m := decode[Member](w, w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{Name: Some("somebody"), Role: role}).Body)
	return m.UserID, w.token(home, &CreateTokenIn{UserID: m.UserID, Permissions: words(permissions)})
}

func words(permissions string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf("%q", permissions))
}

// pass advances the clock and runs the timers that become due.
func (w *testService) pass(d time.Duration) {
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
		if _, err := w.do(TimerRequest(due.Kind, due.Workspace), TimerOps[due.Kind], &TimerIn{due.Kind, due.Subject}); err != nil {
			w.Fatalf("timer %s of %s: %v", due.Kind, due.Subject, err)
		}
	}
	w.Fatal("the timers never come to rest")
}

// firstDue returns the timer of a shard that is overdue for the longest time, or nil.
func firstDue(t testkit.TB, v *storage.View, now time.Time) (first *DueTimer) {
	t.Helper()
	if _, err := ReadDue(v, nil, now, func(due DueTimer) bool { first = &due; return false }); err != nil {
		t.Fatal(err)
	}
	return first
}

// nextTimer returns the timer that is due first, in any shard.
func (w *testService) nextTimer() (at time.Time, first *DueTimer) {
	w.Helper()
	for shard := range storage.Shard(testShards + 1) {
		v := storage.NewView(w.db, shard, storage.SystemID)
		due := firstDue(w, &v, w.now.Add(100*365*24*time.Hour))
		if due != nil && (first == nil || due.Due.Before(at)) {
			at, first = due.Due, due
		}
	}
	return at, first
}

// verify checks the whole state.
func (w *testService) verify() {
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
func (w *testService) each(fn func(key, value []byte)) {
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
