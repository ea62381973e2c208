package tracker

import (
	"math"
	"time"

	"switchyard/storage"
)

// Limits are the operator's limits for workspaces that have none of their own; 0: no
// limit.
type Limits struct {
	Issues            uint64 // flag --limit-issues
	Bytes             uint64 // flag --limit-bytes
	AnswerBytes       uint64 // kept answers, a part of Bytes; flag --limit-answer-bytes
	Sessions          uint64 // that have not ended; flag --limit-sessions
	Tokens            uint64 // flag --limit-tokens
	Subscriptions     uint64 // to webhooks; flag --limit-subscriptions
	RequestsPerSecond uint64 // flag --limit-requests-per-second
	CreatesPerSecond  uint64 // of issues; flag --limit-creates-per-second
}

// Names of limits in errors.
const (
	LimitRequestsPerSecond = "requestsPerSecond"
	limitCreatesPerSecond  = "createsPerSecond"
)

// limitedRows are the ids whose rows limits are about, in the order of storage.Bytes.Rows.
var limitedRows = [...]storage.TableID{issueTable, sessionActive, tokenTable, webhookTable}

// The places of limitedRows.
const (
	rowsIssues = iota
	rowsSessions
	rowsTokens
	rowsSubscriptions
)

// rowCounters are the counters of the first limitedRows. The others are counted as
// records, see countRecord.
var rowCounters = [...]storage.ID{rowsIssues: bytesIssues, rowsSessions: bytesSessions}

// countSubjects are the counters that the count of a workspace begins with at zero.
var countSubjects = [...]storage.ID{bytesAll, bytesAnswers, bytesIssues, bytesSessions}

// usageKey returns the counter of one of the limitedRows.
func usageKey(place int) counterKey {
	if place < len(rowCounters) {
		return bytesKey(rowCounters[place])
	}
	return counterKey{table: recordCountTable, subject: recordCountSubject(limitedRows[place])}
}

// noLimit stands for the absence of a limit. No count reaches it.
const noLimit = math.MaxUint64

// orNoLimit returns a limit in which 0 stands for none.
func orNoLimit(flag uint64) uint64 {
	if flag == 0 {
		return noLimit
	}
	return flag
}

// effectiveLimits are the limits that hold for a workspace.
type effectiveLimits struct {
	rows             [len(limitedRows)]uint64
	bytes            uint64
	createsPerSecond uint64
}

// effective returns the limits of a workspace: its own, or else the operator's.
func (l *WorkspaceLimits) effective(defaults *Limits) (e effectiveLimits) {
	own := func(limit *int64, flag uint64) uint64 {
		if limit != nil {
			return uint64(*limit)
		}
		return orNoLimit(flag)
	}
	e.rows[rowsIssues] = own(l.Issues, defaults.Issues)
	e.rows[rowsSessions] = own(l.Sessions, defaults.Sessions)
	e.rows[rowsTokens] = own(l.Tokens, defaults.Tokens)
	e.rows[rowsSubscriptions] = own(l.Subscriptions, defaults.Subscriptions)
	e.bytes = own(l.Bytes, defaults.Bytes)
	e.createsPerSecond = own(l.CreatesPerSecond, defaults.CreatesPerSecond)
	return e
}

// LimitDetails are the details of the error for a request that would exceed a limit of the
// workspace.
type LimitDetails struct {
	Limit string `json:"limit"`
	Max   uint64 `json:"max"`
}

// Limit sets the operator's limits; nil means none.
func (l *WriteBuffer) Limit(limits *Limits) {
	if limits == nil {
		limits = &Limits{}
	}
	l.defaults, l.limits = *limits, nil
}

// most returns the limits of the workspace. They are read once, and again after each change
// of them.
func (l *WriteBuffer) most(tx *Tx) (*effectiveLimits, error) {
	if l.limits == nil {
		own, err := readLimits(&tx.View.View)
		if err != nil {
			return nil, err
		}
		e := own.effective(&l.defaults)
		l.limits = &e
	}
	return l.limits, nil
}

// limited reports whether the limits apply to a command.
func (l *WriteBuffer) limited(op *Op, req *Request) bool {
	switch {
	case op.Space != UsesSpace, req.Caller.Root, l.store.CountingBelow() != nil:
		return false
	}
	// Calls of providers are stored by the service itself, and limited. A SCIM connection is
	// neither a user nor an agent, and is limited too.
	return req.Caller.Type != ActorSystem || req.Caller.SCIM != 0 || req.permit.basis == basisSignature
}

// charge adds to the workspace's counters the bytes and rows that the command wrote, and
// returns an error if they exceed a limit.
func (l *WriteBuffer) charge(tx *Tx, op *Op, req *Request) error {
	grown := l.store.Counted()
	if grown == (storage.Bytes{}) || tx.Workspace().IsService() {
		return nil
	}
	most := &effectiveLimits{}
	limited := tx.limited && l.limited(op, req)
	if limited {
		var err error
		if most, err = l.most(tx); err != nil {
			return err
		}
		if op.TakesIssuesIn {
			taken := *most // shared by the commands
			taken.createsPerSecond = noLimit
			most = &taken
		}
	}
	for _, c := range [...]struct {
		subject storage.ID
		grown   int64
		limit   uint64
		refusal func(uint64) *Error
	}{
		{bytesAll, grown.All, most.bytes, errBytes},
		{bytesAnswers, grown.Apart, orNoLimit(l.defaults.AnswerBytes), errAnswerBytes},
	} {
		if c.grown == 0 {
			continue
		}
		n, err := l.counters.change(tx, bytesKey(c.subject))
		if err != nil {
			return err
		}
		n.n = uint64(max(0, int64(n.n)+c.grown))
		if limited && c.grown > 0 && n.n > c.limit {
			return c.refusal(c.limit)
		}
	}
	return l.chargeRows(tx, grown.Rows[:len(limitedRows)], limited, most)
}

// chargeRows is charge for the numbers of rows.
func (l *WriteBuffer) chargeRows(tx *Tx, grown []int64, limited bool, most *effectiveLimits) error {
	for i, by := range grown {
		if by == 0 || i >= len(rowCounters) && (!limited || by < 0) {
			continue
		}
		key := usageKey(i)
		if i < len(rowCounters) {
			n, err := l.counters.change(tx, key)
			if err != nil {
				return err
			}
			n.n = uint64(max(0, int64(n.n)+by))
		}
		if !limited || by < 0 {
			continue
		}
		if n, err := l.counters.number(tx, key); err != nil || n > most.rows[i] {
			if err == nil {
				err = errRows(i, most.rows[i])
			}
			return err
		}
	}
	if by := grown[rowsIssues]; limited && by > 0 && most.createsPerSecond != noLimit {
		return l.creates.take(uint64(by), most.createsPerSecond, tx.wall)
	}
	return nil
}

// roomForSessions returns an error if another session would exceed the workspace's limit. It
// is for commands that do a part of what they are asked for: the others fail as a whole.
func (tx *Tx) roomForSessions() error {
	if !tx.limited {
		return nil
	}
	l := tx.buffer
	most, err := l.most(tx)
	if err != nil {
		return err
	}
	n, err := l.counters.number(tx, usageKey(rowsSessions))
	if err != nil {
		return err
	}
	limit := most.rows[rowsSessions]
	if there := int64(n) + l.store.Counted().Rows[rowsSessions]; uint64(max(0, there)) >= limit {
		return errRows(rowsSessions, limit)
	}
	return nil
}

// limitTexts are the names of the limits on rows, in the order of limitedRows.
var limitTexts = [...]struct{ limit, one, many, free string }{
	rowsIssues:        {"issues", "issue, archived ones included", "issues, archived ones included", "Delete issues that are not needed any more."},
	rowsSessions:      {"sessions", "session that has not ended", "sessions that have not ended", "Wait until sessions end, or cancel some."},
	rowsTokens:        {"tokens", "token", "tokens", "Delete tokens that are not used any more."},
	rowsSubscriptions: {"subscriptions", "webhook subscription", "webhook subscriptions", "Delete subscriptions that are not needed any more."},
}

func errRows(place int, limit uint64) *Error {
	t := limitTexts[place]
	err := Conflict("The workspace would have more than "+Counted(limit, t.one, t.many)+".",
		t.free+" The operator sets the limit for the workspace, or with --limit-"+t.limit+" for all.")
	err.Details = LimitDetails{Limit: t.limit, Max: limit}
	return err
}

// createRate is a token bucket for creations of issues. A second's creations may come at
// once.
type createRate struct {
	left float64
	at   time.Time // when left was right; zero: the bucket is full
}

// take takes n creations from the bucket, or returns an error and takes none.
func (r *createRate) take(n, perSecond uint64, now time.Time) error {
	most := float64(perSecond)
	left := most
	if !r.at.IsZero() {
		if now.Before(r.at) { // the clock was set back
			r.at = now
		}
		left = min(most, r.left+now.Sub(r.at).Seconds()*most)
	}
	if missing := float64(n) - left; missing > 0 {
		wait := time.Second
		if perSecond >= n {
			wait = time.Duration(missing / most * float64(time.Second))
		}
		return errCreates(perSecond, wait)
	}
	r.left, r.at = left-float64(n), now
	return nil
}

func errCreates(perSecond uint64, wait time.Duration) *Error {
	return &Error{
		Code: CodeTooManyRequests, Message: "The workspace would create more than " + Counted(perSecond, "issue", "issues") + " in a second.",
		Hint:       "Wait as long as Retry-After says, and create fewer issues at once. The operator sets the limit for the workspace, or with --limit-creates-per-second for all.",
		Details:    LimitDetails{Limit: limitCreatesPerSecond, Max: perSecond},
		RetryAfter: max(time.Millisecond, wait),
	}
}
