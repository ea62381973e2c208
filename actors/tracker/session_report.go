package tracker

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	json "github.com/goccy/go-json"
)

// ReportSessionIn is a session's status and, at its end, its result.
type ReportSessionIn struct {
	ID               SessionID          `path:"id"`
	Status           Opt[SessionStatus] `json:"status" enum:"running,waiting,completed,failed,canceled"`
	Result           Opt[string]        `json:"result" rules:"nullable,max=131072"`
	StructuredResult json.RawMessage    `json:"structuredResult"`
	URL              Opt[string]        `json:"url" rules:"nullable,max=2048"`
	Branch           Opt[string]        `json:"branch" rules:"nullable,max=255"`
	PRURL            Opt[string]        `json:"prUrl" rules:"nullable,max=2048"`
	PRState          Opt[string]        `json:"prState" rules:"nullable" enum:"draft,open,merged,closed"`
}

// Validate checks what the tags can't express.
func (in *ReportSessionIn) Validate(faults *Faults) {
	if len(in.StructuredResult) > maxStructured {
		faults.Add("structuredResult", fmt.Sprintf("Must be at most %d bytes of JSON.", maxStructured))
	}
}

// ReportSession stores an agent's report. A repeat of the report that ended the session
// changes nothing and succeeds (Decision 36).
var ReportSession = NewCommand[ReportSessionIn, ShownSession]("ReportSession", "Report on a session", Needs{Write, "sessions"}, reportSession, ForLanes)

func reportSession(tx *Tx, in *ReportSessionIn) (Reply, error) {
	row, err := tx.session(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("session")
	}
	hash, err := in.hash()
	if err != nil {
		return Reply{}, err
	}
	if row.Value.Status.Ended() {
		if !bytes.Equal(row.Value.Inner.Final, hash) {
			return Reply{}, row.Value.errEnded()
		}
		body, err := tx.shown(row.Value.id())
		return Reply{Body: body, ETag: sessionTag(row.Version, "")}, err
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
	status := in.Status.Or(s.Status)
	if status, err = c.output(in, status); err != nil {
		return Reply{}, err
	}
	if err := c.move(status, byCaller); err != nil {
		return Reply{}, err
	}
	if status.Ended() {
		s.Inner.Final = hash
	}
	c.progress = true
	c.renew()
	return c.reply()
}

// output checks the final output against the session's schema, if it has one, stores
// it, and returns the session's status: a session that would be completed fails if its
// output does not fit (Decision 34).
func (c *sessionChange) output(in *ReportSessionIn, status SessionStatus) (SessionStatus, error) {
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
		return status, nil
	}
	if value == nil {
		if status != SessionCompleted || !isNull(s.StructuredResult) {
			return status, nil
		}
		errs := []string{"There is no output: report structuredResult, or a result that is JSON."}
		s.ResultSchemaErrors = &errs
		return SessionFailed, nil
	}
	if errs := c.tx.checkResult(s.ResultSchema, value); len(errs) > 0 {
		s.StructuredResult, s.ResultSchemaErrors = nil, &errs
		if status == SessionCompleted {
			status = SessionFailed
		}
		return status, nil
	}
	s.StructuredResult, s.ResultSchemaErrors = value, nil
	return status, nil
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
