package tracker

import (
	"bytes"
	"fmt"
	"slices"

	"switchyard/storage"
)

// Schema lists every table and plain row of a workspace and the directory, for the
// verifier.
func Schema() *storage.Schema {
	mustBeDeclared()
	specs := make([]storage.TableSpec, len(tables))
	for i, table := range tables {
		specs[i] = table.spec
	}
	return &storage.Schema{
		Tables: specs,
		Rows: slices.Concat(
			serviceRows,
			issueRows,
			accessRows,
			searchRows,
			analyticsRows,
			attachmentRows,
			sessionRows,
			webhookRows,
			receivedRows,
			relationRows,
		),
		Check:      checkWorkspace,
		CheckBytes: checkBytes,
		RowCounts:  limitedRows[:],
		Partial:    partOfArrival,
		Unfinished: isImported,
		CheckStore: checkDirectory,
	}
}

// serviceRows are the plain rows of a workspace, except for those of its issues.
var serviceRows = []storage.RowSpec{
	storage.Counter(clockTable, "clock"),
	storage.Counter(eventSequence, "event sequence"),
	storage.Counter(retiredKeyTable, "retired team key"),
	storage.Counter(teamNumber, "team number"),
	storage.Counter(recordCountTable, "record count"),
	storage.Counter(memberChange, "member change"),
	{ID: eventTable, Name: "event", Counting: storage.Counted}, // checkEvents checks them in their order
	{ID: tombstoneTable, Name: "erased issue", Check: checkTombstone},
	{ID: idempotencyTable, Name: "answer", Check: checkAnswer, Counting: storage.CountedApart},
	{ID: idempotencyByAge, Name: "answer by age", Check: checkAnswerAge, Counting: storage.CountedApart},
	{ID: bytesTable, Name: "bytes", Check: checkBytesRow},
	{ID: tokenUseTable, Name: "use of a token", Check: checkTokenUse},
	{ID: issuedUserTable, Name: "issued user", Check: checkIssued},
	{ID: pendingTable, Name: "pending change of a member", Check: func(_ *storage.View, fields, value []byte) error {
		_, err := parsePending(fields, value)
		return err
	}},
}

func checkAnswer(v *storage.View, fields, value []byte) error {
	a, err := parseAnswer(value)
	if err != nil {
		return err
	}
	if len(fields) != len(answerKey{}) {
		return fmt.Errorf("%w: answer's name of %d bytes", storage.ErrFormat, len(fields))
	}
	there, err := v.Has(idempotencyByAge, ageKey(a.at, answerKey(fields)))
	if err == nil && !there {
		err = fmt.Errorf("would never be swept: it has no entry by its age, %s", At(a.at))
	}
	return err
}

func checkAnswerAge(v *storage.View, fields, _ []byte) error {
	if len(fields) != 8+len(answerKey{}) {
		return fmt.Errorf("%w: age entry of %d bytes", storage.ErrFormat, len(fields))
	}
	value, err := v.Value(idempotencyTable, fields[8:], nil)
	if err != nil {
		return err
	}
	if value == nil {
		return fmt.Errorf("there is no such answer")
	}
	a, err := parseAnswer(value)
	if err == nil && !bytes.Equal(ageKey(a.at, answerKey(fields[8:])), fields) {
		err = fmt.Errorf("the answer is of another moment, %s", At(a.at))
	}
	return err
}

func checkIssued(v *storage.View, fields, _ []byte) error {
	there, err := v.Has(memberTable, fields)
	if err == nil && !there {
		err = fmt.Errorf("is not a member")
	}
	return err
}

// reporter reports a problem of a table to the verifier.
type reporter func(table string, key []byte, format string, args ...any)

func reportTo(report func(storage.Problem)) reporter {
	return func(table string, key []byte, format string, args ...any) {
		report(storage.Problem{Table: table, Key: bytes.Clone(key), Text: fmt.Sprintf(format, args...)})
	}
}

// checkWorkspace checks the rules that span several tables of one workspace, or of the
// directory.
func checkWorkspace(v *storage.View, add func(storage.Problem)) error {
	report := reportTo(add)
	for _, check := range []func(*storage.View, reporter) error{
		checkEvents, checkClock, checkSweeps, checkHead, checkRecordCounts, checkTeamMembers, checkTokens, checkConsoles, checkMembers,
		checkAccess,
		checkAudit,
		checkRetention,
		checkComments,
		checkRelations,
		checkClosings,
		checkSearch,
		checkAttachments,
		checkSessions,
		checkUsage,
		checkBudgets,
		checkDrafts,
		checkWebhooks,
		checkChannels,
		checkTickets,
		checkOAuth, checkSCIM,
	} {
		if err := check(v, report); err != nil {
			return err
		}
	}
	return checkIssues(v, add)
}

// RecordTables lists the tables whose rows are looked up one by one, again and again, and
// are worth keeping in memory: issues, sessions, and the numbers of records, which each poll
// of a session asks for budgets.
func RecordTables() []storage.TableID {
	return append(ListedTables(), recordCountTable)
}

// ListedTables lists those of RecordTables whose keys are the ids of what they hold.
func ListedTables() []storage.TableID { return []storage.TableID{issues.ID, sessions.ID} }
