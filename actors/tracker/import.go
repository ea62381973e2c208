package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"

	"github.com/go-json-experiment/json/jsontext"

	"switchyard/storage"
)

// ImportState is the state of an import.
type ImportState string

// The states of an import.
const (
	ImportRunning ImportState = "running"
	ImportDone    ImportState = "done"
)

// EnumValues implements Enumerated.
func (ImportState) EnumValues() []string {
	return enumTexts([]ImportState{ImportRunning, ImportDone})
}

// Import is the progress of an import into a workspace. Next is the number of the line
// that comes next.
type Import struct {
	OrganizationID WorkspaceID `json:"organizationId"`
	State          ImportState `json:"state"`
	Next           int64       `json:"next"`
	// SHA256 is that of the lines before Next. A client that goes on with an import compares it with
	// its file. It is empty in what is stored, where importRecord.Sum has it.
	SHA256    string    `json:"sha256,omitempty"`
	CreatedAt Timestamp `json:"createdAt"`
	UpdatedAt Timestamp `json:"updatedAt"`
}

// ImportAnswer is the answer of the operations on an import.
type ImportAnswer struct {
	Import Import `json:"import"`
}

// importRecord is the stored form of an import: the public part, and what the next lines
// are checked against. It stays when the import is done, so that a repeat is known.
type importRecord struct {
	Import
	// First is the SHA-256 of the first line, which tells one file from another.
	First []byte `json:"first"`
	// Sum is the state of the SHA-256 of the lines so far, and Counts their number by type.
	Sum    []byte           `json:"sum"`
	Counts map[string]int64 `json:"counts"`
	// DefaultTeamID is the workspace's default team in the file.
	DefaultTeamID *TeamID `json:"defaultTeamId"`
	// Operator is set if the operator has the file taken into a new workspace: then the
	// users that the workspace had created count as created by it again.
	Operator bool `json:"operator"`
	// Orphans is the number of issues whose parent has not come yet, and LastIssue the tick
	// of the last issue.
	Orphans   int64  `json:"orphans"`
	LastIssue uint64 `json:"lastIssue"`
	// Teams are the teams that issues have and whose lines have not come yet.
	Teams []TeamID `json:"teams,omitempty"`
	// Awaiting is the number of drafts and tickets whose issue has not come yet.
	Awaiting int64 `json:"awaiting,omitempty"`
	// Keys are the keys that the identifiers of each team's issues have.
	Keys map[TeamID][]string `json:"keys,omitempty"`
}

// imports has at most one row, the workspace's import.
var imports = storage.Table[importRecord]{
	ID:   importTable,
	Name: "import",
	Key:  func(k storage.Key, _ *importRecord) storage.Key { return k },
}

var _ = declareTable(&imports)

// progress returns the public part of an import.
func (r *importRecord) progress() (*Import, error) {
	sum, err := resumeSum(r.Sum)
	if err != nil {
		return nil, err
	}
	p := r.Import
	p.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return &p, nil
}

// answer returns the answer that shows an import.
func (r *importRecord) answer(outcome Outcome) (Reply, error) {
	p, err := r.progress()
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(outcome, ImportAnswer{*p})
}

// ShowImport shows the progress of a workspace's import.
var ShowImport = NewQuery[None, ImportAnswer]("ShowImport", "Show the progress of an import", Needs{Level: Admin}, func(v *View, _ *None) (Reply, error) {
	row, err := imports.Get(v, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the import: %w", err)
	}
	if row == nil {
		return Reply{}, NotFound("import")
	}
	return row.Value.answer(Done)
})

const (
	// maxImportBody bounds the lines of a request in bytes: one line with an attachment, or
	// several with maxImportLines and maxImportMany.
	maxImportBody  = 9 << 20
	maxImportMany  = 1 << 20
	maxImportLines = 1000
)

// ImportLinesIn are lines of an export. The last one may lack its newline.
type ImportLinesIn struct {
	Body []byte `raw:"ndjson,json"`
}

// ImportLines takes lines of an export into the workspace. The first line begins an
// import into an empty workspace. Lines that were taken before are passed over; the last
// line ends the import (Decision 68). All lines of a request are taken, or none.
var ImportLines = NewCommand[ImportLinesIn, ImportAnswer]("ImportLines", "Take in lines of an export", Needs{Level: Admin}, importLines, WithoutKey, TakesIssuesIn, BodyUpTo(maxImportBody), Refuses(CodeConflict), Audits(auditWorkspace))

func importLines(tx *Tx, in *ImportLinesIn) (Reply, error) {
	lines, err := parseLines(in.Body)
	if err != nil {
		return Reply{}, err
	}
	row, err := imports.Get(tx, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the import: %w", err)
	}
	tx.audits = nil // the records have no entries of their own, see auditImport
	var record importRecord
	switch first := &lines[0]; {
	case row != nil:
		record = row.Value
		if first.n() == 0 && !bytes.Equal(record.First, sumOf(first.text)) {
			return Reply{}, errOtherImport()
		}
	case first.n() != 0:
		return Reply{}, Conflict("No import has begun in this workspace.", "Send the lines of the export from the first one, with n 0.")
	default:
		begun, err := tx.fillEmpty(first)
		if err != nil {
			return Reply{}, err
		}
		record = *begun
	}
	if err := tx.takeLines(&record, lines); err != nil {
		return Reply{}, err
	}
	record.UpdatedAt = At(tx.now)
	if row == nil || row.Value.State != record.State {
		if err := tx.auditImport(&record); err != nil {
			return Reply{}, err
		}
	}
	if row == nil {
		_, err = imports.Insert(tx, &record)
	} else {
		_, err = imports.Update(tx, row, &record)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("note the import: %w", err)
	}
	return record.answer(Done)
}

// auditImport notes in the audit that an import has begun, or is done with so many lines of
// each type. The records have no entries of their own: a file may have millions.
func (tx *Tx) auditImport(record *importRecord) error {
	if record.State != ImportDone {
		tx.audit(auditWorkspace, actImporting, tx.Workspace().String(), nil)
		return nil
	}
	lines, err := json.Marshal(record.Counts)
	if err != nil {
		return fmt.Errorf("encode the number of lines: %w", err)
	}
	tx.audit(auditWorkspace, actImported, tx.Workspace().String(), map[string]FromTo{"importedLines": {From: json.RawMessage("null"), To: lines}})
	return nil
}

// errImporting is the answer to members and guests while lines are still to come. The grants of a
// restricted issue, and the team that hides it, are lines of their own and may come long after the
// issue.
func errImporting() error {
	err := NotApplied("The workspace is being imported.")
	err.Hint = "Until the import has ended only owners and admins have access. Ask one of them to finish it, or to delete the workspace."
	err.RetryAfter = readOnlyRetry
	return err
}

func errOtherImport() error {
	return Conflict("The workspace has the import of another file.", "Delete the workspace first, or import this file into another, empty one.")
}

func sumOf(text []byte) []byte {
	sum := sha256.Sum256(text)
	return sum[:]
}

// importedLine is a line of an export.
type importedLine struct {
	N       *int64           `json:"n"`
	Type    string           `json:"type"`
	Version int              `json:"version"`
	Data    json.RawMessage  `json:"data"`
	Counts  map[string]int64 `json:"counts"`
	SHA256  string           `json:"sha256"`

	text []byte // with its newline
}

// n is the number of the line; -1 for the last.
func (l *importedLine) n() int64 {
	if l.N == nil {
		return -1
	}
	return *l.N
}

// fault returns the error for a line that can't be taken.
func (l *importedLine) fault(format string, args ...any) error {
	path := "end"
	if l.N != nil {
		path = fmt.Sprintf("lines[%d]", *l.N)
	}
	return BadRequest(Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

// maxImportDepth bounds how deep the JSON of a line may be nested.
const maxImportDepth = 100

// maxImportValues bounds the JSON values of a line. No line of an export has as many: the JSON that a
// record keeps as it came has less than 1 MiB.
const maxImportValues = 600_000

// parseLines reads the lines of a request.
func parseLines(body []byte) ([]importedLine, error) {
	var lines []importedLine
	for rest := body; len(rest) > 0; {
		text, after, ended := bytes.Cut(rest, []byte{'\n'})
		l := importedLine{}
		if ended {
			l.text = rest[:len(text)+1]
		} else {
			l.text = append(bytes.Clone(text), '\n')
		}
		place := fmt.Sprintf("body[%d]", len(lines)) // the line has no number yet
		if at := TooDeep(text, maxImportDepth); at >= 0 {
			return nil, BadRequest(Fault{Path: place, Message: fmt.Sprintf("Is nested more than %d levels deep.", maxImportDepth)})
		}
		if TooMany(text, maxImportValues) {
			return nil, BadRequest(Fault{Path: place, Message: fmt.Sprintf("Has more than %d JSON values.", maxImportValues)})
		}
		err := strictJSON(text)
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err != nil {
			return nil, BadRequest(Fault{Path: place, Message: "Not a line of an export: " + err.Error() + "."})
		}
		if (l.N == nil) != (l.Type == exportEnd) || l.n() < -1 || l.N != nil && l.n() < 0 {
			return nil, BadRequest(Fault{Path: place, Message: "Must have a number n of 0 or more, or the type end."})
		}
		if len(lines) > 0 {
			before := lines[len(lines)-1].n()
			if before < 0 || l.N != nil && l.n() != before+1 {
				return nil, BadRequest(Fault{Path: place, Message: "Must follow the line before it: a line is missing, or out of order."})
			}
		}
		if lines = append(lines, l); len(lines) > maxImportLines {
			return nil, BadRequest(Fault{Message: fmt.Sprintf("A request may have %d lines.", maxImportLines)})
		}
		rest = after
	}
	switch {
	case len(lines) == 0:
		return nil, BadRequest(Fault{Message: "Must have at least one line."})
	case len(lines) > 1 && len(body) > maxImportMany:
		return nil, BadRequest(Fault{Message: fmt.Sprintf("Several lines may have %d bytes together. Send fewer, or one alone.", maxImportMany)})
	}
	return lines, nil
}

// strictJSON returns what is wrong with a JSON value that bodies of other requests must not have
// either: bytes that are not UTF-8, half a surrogate pair, or a name given twice in an object.
// encoding/json passes them over, and values that are kept as they are written would be shown
// with them.
func strictJSON(text []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text)) // reads text in place
	if _, err := dec.ReadValue(); err != nil {
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) && syntax.Err != nil {
			return fmt.Errorf("%w at byte %d", syntax.Err, syntax.ByteOffset)
		}
		return err
	}
	return nil
}

// takeLines takes the lines that were not taken before.
func (tx *Tx) takeLines(record *importRecord, lines []importedLine) error {
	sum, err := resumeSum(record.Sum)
	if err != nil {
		return err
	}
	im := &importing{tx: tx, record: record}
	for i := range lines {
		l := &lines[i]
		if record.State == ImportDone {
			if !record.ended(l, sum) {
				return errOtherImport()
			}
			continue
		}
		switch {
		case l.Type == exportEnd:
			if err := im.checkEnd(l, sum); err != nil {
				return err
			}
			continue
		case l.n() < record.Next:
			continue
		case l.n() > record.Next:
			return Conflict(fmt.Sprintf("Line %d comes next.", record.Next), "Read the import's next line with GET, and go on there.")
		case l.n() > 0: // the first line is taken where the import begins
			if err := im.storeRecord(l); err != nil {
				return err
			}
		}
		sum.Write(l.text)
		record.Counts[l.Type]++
		record.Next++
	}
	if record.Sum, err = sum.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return fmt.Errorf("keep a checksum: %w", err)
	}
	if err := im.storeLogs(); err != nil {
		return err
	}
	return im.moveClock()
}

// ended reports whether an import that is done has taken a line. The exports of a workspace may begin
// with the same lines, so only the last line decides.
func (r *importRecord) ended(l *importedLine, sum hash.Hash) bool {
	if l.Type != exportEnd {
		return l.n() < r.Next
	}
	return l.SHA256 == hex.EncodeToString(sum.Sum(nil)) && maps.Equal(l.Counts, r.Counts)
}

func resumeSum(state []byte) (hash.Hash, error) {
	sum := sha256.New()
	if state == nil {
		return sum, nil
	}
	if err := sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
		return nil, fmt.Errorf("go on with a checksum: %w", err)
	}
	return sum, nil
}

// checkEnd takes the last line.
func (im *importing) checkEnd(l *importedLine, sum hash.Hash) error {
	record := im.record
	if got := hex.EncodeToString(sum.Sum(nil)); l.SHA256 != got {
		return l.fault("Has another SHA-256 than the lines before it: the file is damaged, or line %d comes next.", record.Next)
	}
	if !maps.Equal(l.Counts, record.Counts) {
		return l.fault("Counts other lines than those before it.")
	}
	if record.Orphans != 0 {
		return l.fault("The parents of %s are missing.", Counted(record.Orphans, "issue", "issues"))
	}
	if len(record.Teams) > 0 {
		return l.fault("The team %s is missing.", record.Teams[0])
	}
	if record.Awaiting > 0 {
		return l.fault("The issues of %s are missing.", Counted(record.Awaiting, "draft or ticket", "drafts and tickets"))
	}
	ws, err := im.tx.workspace()
	if err != nil {
		return err
	}
	if record.DefaultTeamID != nil && ws.Value.DefaultTeamID == nil {
		return l.fault("The default team is missing.")
	}
	record.State = ImportDone
	im.tx.Writer().MarkDirty(DirtyAccess) // see Caller.Importing
	if err := im.tx.resumeWaits(); err != nil {
		return err
	}
	return im.tx.resumeLeases()
}
