package tracker

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ReportSessionIn is a session's status and, at its end, its result.
type ReportSessionIn struct {
	ID               SessionID          `path:"id"`
	Status           Opt[SessionStatus] `json:"status"`
	Result           Opt[string]        `json:"result" rules:"nullable,max=131072"`
	StructuredResult json.RawMessage    `json:"structuredResult"`
	URL              Opt[string]        `json:"url" rules:"nullable,max=2048"`
	Branch           Opt[string]        `json:"branch" rules:"nullable,max=255"`
	PRURL            Opt[string]        `json:"prUrl" rules:"nullable,max=2048"`
	PRState          Opt[string]        `json:"prState" rules:"nullable" enum:"draft,open,merged,closed"`
	// FailureReason and Retryable belong to the status failed (Decision 62).
	FailureReason Opt[string] `json:"failureReason" form:"failureReason"`
	Retryable     Opt[bool]   `json:"retryable"`
	// Plan replaces the session's plan (Decision 65).
	Plan Opt[[]PlanStep] `json:"plan" rules:"max=100"`
	// Usage is what was used since it was last told (Decision 67).
	Usage Opt[UsageIn] `json:"usage"`
	// WaitFor belongs to the status waiting (Decision 66).
	WaitFor Opt[WaitForIn] `json:"waitFor"`
}

// Validate checks what the tags can't express.
func (in *ReportSessionIn) Validate(faults *Faults) {
	if len(in.StructuredResult) > maxStructured {
		faults.Add("structuredResult", fmt.Sprintf("Must be at most %d bytes of JSON.", maxStructured))
	}
	planFaults(&in.Plan, faults)
	if in.WaitFor.Set {
		in.WaitFor.Value.faults(faults)
		if in.Status.Value != SessionWaiting {
			faults.Add("waitFor", "Can only be sent with the status waiting.")
		}
	}
	if in.Status.Value != SessionFailed {
		if in.FailureReason.Set {
			faults.Add("failureReason", "Can only be sent with the status failed.")
		}
		if in.Retryable.Set {
			faults.Add("retryable", "Can only be sent with the status failed.")
		}
	}
}

// ReportedSession is a session after a report.
type ReportedSession struct {
	ShownSession
	// Budget is what the session may still use; null without a budget (Decision 67).
	Budget *LaneBudget `json:"budget"`
}

// ReportSession stores an agent's report. A repeat of the report that ended the session
// changes nothing and succeeds (Decision 36).
var ReportSession = NewCommand[ReportSessionIn, ReportedSession]("ReportSession", "Report on a session", Needs{Write, "sessions"}, reportSession, ForLanes)

func reportSession(tx *Tx, in *ReportSessionIn) (Reply, error) {
	row, err := tx.session(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("session")
	}
	if wait := in.WaitFor.Ptr(); wait != nil {
		list, at := wait.list()
		if err := tx.seeConditions(&row.Value, list, at); err != nil {
			return Reply{}, err
		}
	}
	hash, err := in.hash()
	if err != nil {
		return Reply{}, err
	}
	if row.Value.Status.Ended() {
		if !bytes.Equal(row.Value.Inner.Final, hash) {
			return Reply{}, row.Value.errEnded()
		}
		reply := Reply{ETag: sessionTag(row.Version, "")}
		if reply.Body, err = tx.shown(row.Value.id()); err != nil {
			return Reply{}, err
		}
		return tx.withBudget(reply, &row.Value)
	}
	if tx.repeatsFailure(&row.Value, hash) {
		return Reply{}, row.Value.conflict("The session was reported to have failed, and was queued again.", "This report was taken already. Claim again for other work.")
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return Reply{}, err
	}
	s := &c.s
	assign(&s.Result, &in.Result)
	assign(&s.URL, &in.URL)
	assign(&s.Branch, &in.Branch)
	assign(&s.PRURL, &in.PRURL)
	assign(&s.PRState, &in.PRState)
	status := c.output(in, in.Status.Or(s.Status))
	if err := c.setPlan(&in.Plan); err != nil {
		return Reply{}, err
	}
	if err := c.use(&in.Usage); err != nil {
		return Reply{}, err
	}
	if err := c.reported(in, status, hash); err != nil {
		return Reply{}, err
	}
	c.progress = true
	c.renew()
	reply, err := c.reply()
	if err != nil {
		return Reply{}, err
	}
	return tx.withBudget(reply, s)
}

// withBudget adds to an answer, which is a stored session, what the session may still use. If
// that has changed the session, the answer is the session as it is then.
func (tx *Tx) withBudget(reply Reply, s *sessionRecord) (Reply, error) {
	left, now, err := tx.endOverspent(s)
	if err != nil {
		return Reply{}, err
	}
	if now != nil {
		if _, err := sessions.Record(tx, sessionKey(s.id()), func(rec storage.Record) error {
			reply.Body, reply.ETag = tx.appendShown(nil, rec), sessionTag(rec.Version(), tx.derived(rec))
			return nil
		}); err != nil {
			return Reply{}, err
		}
	}
	body, err := appendBudget(reply.Body[:len(reply.Body)-1], left)
	body = append(body, '}')
	reply.Body = body
	return reply, err
}

// reported moves the session to the status that was reported. hash is that of the report.
func (c *sessionChange) reported(in *ReportSessionIn, status SessionStatus, hash []byte) error {
	if status == SessionFailed {
		return c.failed(in, hash)
	}
	if wait := in.WaitFor.Ptr(); wait != nil {
		return c.beginWait(wait)
	}
	if status == SessionCompleted {
		c.s.FailureReason = nil
	}
	if status.Ended() {
		c.s.Inner.Final = hash
	}
	return c.move(status, byCaller)
}

// output checks the final output against the session's schema, if it has one, stores
// it, and returns the session's status: a session that would be completed fails if its
// output does not fit (Decision 34).
func (c *sessionChange) output(in *ReportSessionIn, status SessionStatus) SessionStatus {
	s := &c.s
	value := in.StructuredResult
	if isNull(value) {
		value = nil
		if text := in.Result.Ptr(); text != nil && !isNull(s.ResultSchema) && json.Valid([]byte(*text)) && len(*text) <= maxStructured {
			value = json.RawMessage(*text)
		}
	}
	if isNull(s.ResultSchema) {
		if value != nil {
			s.StructuredResult = value
		}
		return status
	}
	if value == nil {
		if status != SessionCompleted || !isNull(s.StructuredResult) {
			return status
		}
		if in.StructuredResult != nil && len(c.tx.checkResult(s.ResultSchema, in.StructuredResult)) == 0 {
			s.ResultSchemaErrors = nil // null was sent, and fits
			return status
		}
		errs := []string{"There is no output: report structuredResult, or a result that is JSON."}
		s.ResultSchemaErrors = &errs
		return SessionFailed
	}
	if errs := c.tx.checkResult(s.ResultSchema, value); len(errs) > 0 {
		s.StructuredResult, s.ResultSchemaErrors = nil, &errs
		if status == SessionCompleted {
			status = SessionFailed
		}
		return status
	}
	s.StructuredResult, s.ResultSchemaErrors = value, nil
	return status
}

// hash returns the hash by which a repeat of the final report is recognized.
func (in *ReportSessionIn) hash() ([]byte, error) {
	report := *in
	report.ID = ""
	body, err := json.Marshal(&report)
	if err != nil {
		return nil, fmt.Errorf("encode a report: %w", err)
	}
	sum := sha256.Sum256(body)
	return sum[:], nil
}
