package httpapi

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

const (
	// keptBuffer is the largest buffer that is kept for another request.
	keptBuffer = 64 << 10
	// maxRequestID bounds a caller's X-Request-Id.
	maxRequestID = 128
)

// exchange is one request on its way through the server, and the buffers it needs.
// It is owned by the connection's goroutine for the length of the request.
type exchange struct {
	ctx    *fasthttp.RequestCtx
	conn   *conn // nil when the connection is not of our listener
	route  *route
	target target
	params params
	// values are the parameters as text, without the workspace's, in the order of
	// route.bound.
	values [maxParams]string
	id     string
	start  time.Time
	clock  time.Time // when the time to answer began: start, or when the body was read
	// query is the request of queries, which run on this goroutine.
	query  tracker.Request
	binder binder
	body   []byte
	text   []byte
	// answer is the buffer that was lent for the answer; nil: none.
	answer *answerBuffer
	// constant is the answer if it never changes.
	constant *constantBody
	// read says that the body was read to its end, and lost is the error if it can't be.
	read bool
	lost error
	// oversize says that the body was refused by its length, before any of it was
	// read.
	oversize bool
	// large says that the body is larger than defaultMaxBody. held has its bytes if it waited for
	// them, and waitedForBytes is how long that took.
	large          bool
	held           *heldBody
	waitedForBytes time.Duration
	// account is the kind of account that the request's bytes are charged to, and charged
	// the workspace if it is one.
	account accountKind
	charged [16]byte
	// ends says that the connection ends with the answer.
	ends bool
	// moved says that nothing was done, because another node serves the workspace.
	moved bool
	// maybe says that a try at another node may have been applied.
	maybe bool
	// looked says that the operation may have run before, for another owner of the workspace.
	looked bool
	// resumed is the parked request that this exchange continues; parked is set if the
	// request waits and has no answer yet.
	resumed *parked
	parked  bool
	turn    resumeTurn // in which the parked request resumes
	// message is the body as a message to a session's tools, once it was parsed, and
	// refused the reason if it is not one.
	message *message
	refused *rpcRefusal
	// waited says that the request asked to wait. arrival is the time in which the body
	// was read, admission that in which the caller was identified, forwarded that of another node's work, and ownerless that in which no node
	// served the workspace.
	waited                                   bool
	arrival, admission, forwarded, ownerless time.Duration
	spent                                    tracker.Spent
	// counted is the workspace for which the request was counted; zero: for none.
	counted [16]byte
	trace   requestTrace
	// sharer is the address that the request counts for while it waits; zero: it doesn't.
	sharer netip.Addr
	// session says that the credential is that of the console's cookie. sessionEnds is the end
	// of a session of the operator.
	session     bool
	sessionEnds time.Time
	// rated says that the request was counted, and verdict how that ended.
	rated   bool
	verdict verdict
}

func (s *Server) acquire(ctx *fasthttp.RequestCtx) *exchange {
	x := s.exchanges.Get().(*exchange)
	x.ctx, x.start, x.clock = ctx, ctx.Time(), ctx.Time()
	if x.conn = connOf(ctx); x.conn != nil {
		if x.conn.answered {
			x.conn.taken() // all of it is with the writer, the rest of which is small
		}
		x.conn.begins(x.start)
	}
	if x.conn != nil && x.conn.resumed != nil {
		x.resumed, x.conn.resumed = x.conn.resumed, nil
		x.waited = true
		x.start, x.clock = x.resumed.start, x.resumed.start
		x.rated, x.verdict = x.resumed.rated, x.resumed.verdict
		x.account, x.charged, x.maybe = x.resumed.account, x.resumed.charged, x.resumed.maybe
		x.turn = x.resumed.turn
		s.taken(x.resumed)
	}
	x.oversize = ctx.Request.Header.ContentLength() == 0 && len(ctx.Request.Header.PeekCanonical(markOversize)) > 0
	return x
}

func (s *Server) release(x *exchange) {
	if x.conn != nil && !x.parked {
		s.budget.release(x.conn, bodyPart)
	}
	s.waits.leave(x.takeShare())
	if x.held != nil {
		x.held.GiveUp()
		x.held = nil
	}
	if x.resumed != nil { // it was refused before it could continue
		_, waiting := x.resumed.release()
		waiting.Leave()
		x.resumed = nil
	}
	s.resumes.end(x.takeTurn())
	x.lost, x.answer = nil, nil
	x.ctx, x.conn, x.route, x.id, x.read, x.oversize, x.rated, x.moved, x.maybe, x.looked, x.parked = nil, nil, nil, "", false, false, false, false, false, false, false
	x.waited, x.arrival, x.admission, x.forwarded, x.ownerless, x.spent, x.counted = false, 0, 0, 0, 0, tracker.Spent{}, [16]byte{}
	x.session, x.sessionEnds, x.trace = false, time.Time{}, requestTrace{}
	x.ends, x.large, x.waitedForBytes, x.account, x.charged = false, false, 0, anonymousAccount, [16]byte{}
	x.values, x.params, x.query = [maxParams]string{}, params{}, tracker.Request{}
	x.target.path, x.target.query, x.target.segments = nil, nil, [maxSegments][]byte{}
	x.binder.plan, x.message, x.refused, x.constant = nil, nil, nil, nil
	x.binder.faults = tracker.Faults{}
	if cap(x.body) > keptBuffer {
		x.body = nil
	}
	s.exchanges.Put(x)
}

// takeTurn returns the turn in which the request resumes. The caller ends it.
func (x *exchange) takeTurn() (turn resumeTurn) {
	turn, x.turn = x.turn, resumeTurn{}
	return turn
}

// identify settles the request's id and the texts of its parameters. They share
// one string, so that a request costs one allocation for them.
func (x *exchange) identify(ids *requestIDs) {
	x.text = x.text[:0]
	if given := x.ctx.Request.Header.PeekCanonical(headerRequestID); saneRequestID(given) {
		x.text = append(x.text, given...)
	} else {
		x.text = ids.append(x.text)
	}
	end := len(x.text)
	var ends [maxParams]int
	if x.route != nil {
		for i, at := range x.route.bound {
			x.text = append(x.text, x.params[at]...)
			ends[i] = len(x.text)
		}
	}
	all := string(x.text)
	x.id = all[:end]
	if x.route != nil {
		for i := range x.route.bound {
			x.values[i] = all[end:ends[i]]
			end = ends[i]
		}
	}
}

// requestID is the id's bytes; text starts with them from identify on.
func (x *exchange) requestID() []byte { return x.text[:len(x.id)] }

// saneRequestID reports whether a caller's id may be used in our log and responses.
func saneRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
