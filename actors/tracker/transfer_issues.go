package tracker

import (
	"encoding/base64"
	"fmt"
	"time"

	"switchyard/storage"
)

// transferredIdentifier is an identifier that an issue had before.
type transferredIdentifier struct {
	IssueID    IssueID `json:"issueId"`
	Identifier string  `json:"identifier"`
}

var transferFormerIdentifiers = rowKind("former_identifier", identifierByIssue, byOldestFirst, func(b, key, _ []byte) ([]byte, error) {
	const idLen = len(storage.ID{})
	if len(key) < idLen+2 {
		return nil, fmt.Errorf("%w: former identifier of %d bytes", storage.ErrFormat, len(key))
	}
	return appendJSON(b, transferredIdentifier{IssueID(storage.ID(key[:idLen]).String()), string(key[idLen : len(key)-1])})
})

// transferHistory has a line for each entry of a change. The key of a line is that of the
// change's row with the index of the entry behind it.
var transferHistory = transferKind{
	name: "history", tables: []storage.TableID{historyTable},
	places: func(v *View, add func(storage.ID, []byte)) error {
		var row historyRow
		var key []byte
		err := v.Rows(historyTable, nil, nil, func(fields, value []byte) (bool, error) {
			if len(fields) != 2*len(storage.ID{}) {
				return false, errHistory
			}
			if err := row.parse(fields[len(storage.ID{}):], value); err != nil {
				return false, err
			}
			for n := range row.entries {
				key = append(append(key[:0], fields...), byte(n))
				add(row.entryID(n), key)
			}
			return true, nil
		})
		if err != nil {
			return fmt.Errorf("walk the history: %w", err)
		}
		return nil
	},
	line: func(v *View, b, key []byte) ([]byte, error) {
		const idLen = len(storage.ID{})
		pk, n := key[:len(key)-1], int(key[len(key)-1])
		value, err := v.Value(historyTable, pk, nil)
		if err != nil || value == nil {
			return nil, goneFrom("a change", err)
		}
		var row historyRow
		if err := row.parse(pk[idLen:], value); err != nil {
			return nil, err
		}
		return row.appendEntry(b, v.Workspace(), storage.ID(pk[:idLen]), n)
	},
}

// transferredBurndown is what is recorded of an issue in a cycle: the estimate that it
// adds, and the days at whose end its state was another than the day before.
type transferredBurndown struct {
	IssueID  IssueID          `json:"issueId"`
	CycleID  string           `json:"cycleId"`
	Estimate uint64           `json:"estimate"`
	Days     []transferredDay `json:"days"`
}

type transferredDay struct {
	Date  string `json:"date"`
	State string `json:"state"`
}

// burndownStates are the texts of the states, by state.
var burndownStates = [...]string{burndownOut: "out", burndownOpen: "open", burndownClosed: "closed"}

var transferBurndowns = rowKind("burndown", burndownTable, newestLast, func(b, key, value []byte) ([]byte, error) {
	cycle, rest, ok := storage.CutStr(key)
	if !ok || len(rest) != storage.ListedKeyLen {
		return nil, fmt.Errorf("%w: burndown of %d bytes", storage.ErrFormat, len(key))
	}
	issue, err := newestLast(rest, nil)
	if err != nil {
		return nil, err
	}
	_, estimate, walk, err := parseBurndown(value)
	if err != nil {
		return nil, err
	}
	t := transferredBurndown{IssueID: IssueID(issue.String()), CycleID: cycle, Estimate: estimate, Days: []transferredDay{}}
	for {
		more, err := walk.next()
		if err != nil {
			return nil, err
		}
		if !more {
			return appendJSON(b, &t)
		}
		t.Days = append(t.Days, transferredDay{time.Unix(walk.day*24*60*60, 0).UTC().Format(time.DateOnly), burndownStates[walk.state]})
	}
})

// transferredAttachment is an attachment with its bytes.
type transferredAttachment struct {
	Attachment
	ContentBase64 string `json:"contentBase64"`
}

var transferAttachments = transferKind{
	name: "attachment", tables: []storage.TableID{attachmentTable, attachmentChunk}, places: placesOf(attachmentTable, newestLast),
	line: func(v *View, b, key []byte) ([]byte, error) {
		row, err := attachments.Get(v, key)
		if err != nil || row == nil {
			return nil, goneFrom("an attachment", err)
		}
		content, err := v.content(&row.Value, nil)
		if err != nil {
			return nil, err
		}
		return appendJSON(b, &transferredAttachment{row.Value, base64.StdEncoding.EncodeToString(content)})
	},
}
