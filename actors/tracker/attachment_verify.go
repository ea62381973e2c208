package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"switchyard/storage"
)

// attachmentRows are the plain rows of attachments.
var attachmentRows = []storage.RowSpec{{ID: attachmentChunk, Name: "attachment's content", Check: checkChunk, Counting: storage.Counted}}

// checkChunk checks that the attachment of a row of bytes exists. checkAttachments
// checks the content.
func checkChunk(v *storage.View, fields, value []byte) error {
	if len(fields) != len(storage.ID{})+8 || len(value) == 0 || len(value) > attachmentChunkLen {
		return fmt.Errorf("%w: %d bytes of an attachment under a key of %d", storage.ErrFormat, len(value), len(fields))
	}
	id := storage.ID(fields[:len(storage.ID{})])
	there, err := v.Has(attachmentTable, attachmentKey(id))
	if err == nil && !there {
		err = fmt.Errorf("is of attachment %s, which is not there", id)
	}
	return err
}

// checkAttachments checks that the issue of every attachment exists, and that its bytes
// are complete.
func checkAttachments(v *storage.View, report reporter) error {
	return attachments.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := attachments.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		a := &row.Value
		if string(a.OrganizationID) != v.Workspace().String() || a.URL != attachmentPath(v.Workspace(), a.id()) {
			report(attachments.Name, pk, "says it belongs to workspace %s and is read at %s", a.OrganizationID, a.URL)
		}
		there, err := v.Has(issueTable, issueKey(a.issue()))
		if err != nil {
			return false, err
		}
		if !there {
			report(attachments.Name, pk, "its issue %s is not there", a.IssueID)
		}
		return true, checkContent(v, a, bytes.Clone(pk), report)
	})
}

func checkContent(v *storage.View, a *Attachment, pk []byte, report reporter) error {
	id, sum := a.id(), sha256.New()
	var size int64
	var rows uint64
	err := v.Rows(attachmentChunk, id[:], nil, func(fields, value []byte) (bool, error) {
		if len(fields) == len(id)+8 && binary.BigEndian.Uint64(fields[len(id):]) != rows {
			report(attachments.Name, pk, "has no bytes number %d", rows)
		}
		if size%attachmentChunkLen != 0 {
			report(attachments.Name, pk, "bytes number %d follow some that are not full", rows)
		}
		rows++
		size += int64(len(value))
		sum.Write(value)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read an attachment: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); size != a.Size || got != a.SHA256 {
		report(attachments.Name, pk, "should have %d bytes with SHA-256 %s, has %d with %s", a.Size, a.SHA256, size, got)
	}
	return nil
}
