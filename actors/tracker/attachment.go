package tracker

import (
	"encoding/hex"
	"fmt"

	"switchyard/storage"
)

// AttachmentID is the id of an attachment.
type AttachmentID string

// Attachment is a file of an issue; callers who see the issue see it. It never changes.
// URL is the address of its bytes.
type Attachment struct {
	ID             AttachmentID `json:"id"`
	OrganizationID WorkspaceID  `json:"organizationId"`
	IssueID        IssueID      `json:"issueId"`
	Name           string       `json:"name"`
	ContentType    MediaType    `json:"contentType"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// SHA256 is the hash of the bytes, in hexadecimal.
	SHA256    string    `json:"sha256"`
	URL       string    `json:"url"`
	CreatedAt Timestamp `json:"createdAt"`
}

// attachmentChunkLen is the number of an attachment's bytes in one row; the last row
// may have fewer. It is part of the format on disk.
const attachmentChunkLen = 256 << 10

// maxAttachmentName is the length of an attachment's name, in characters. The name is in a
// header of the answer with the bytes.
const maxAttachmentName = 255

// attachments holds the records of attachments. Their bytes are in rows of their own,
// under the attachment's id and a number that starts at 0.
var attachments = storage.Table[Attachment]{
	ID:   attachmentTable,
	Name: "attachment",
	Key:  func(k storage.Key, a *Attachment) storage.Key { return k.DescID(a.id()) },
	Indexes: []storage.Index[Attachment]{
		{ID: attachmentByIssue, Name: "issue", Entries: func(e *storage.Entries, a *Attachment) {
			e.Add(e.Key().ID(a.issue()))
		}},
	},
}

// Each is up to maxScreenshot bytes.
var _ = declareTable(&attachments, newestFirst, atMost(100_000, "attachments"))

func attachmentKey(id storage.ID) storage.Key {
	return storage.Key(make([]byte, 0, storage.ListedKeyLen)).DescID(id)
}

func chunkKey(id storage.ID, n int) storage.Key { return storage.Key(nil).ID(id).U64(uint64(n)) }

func (a *Attachment) id() storage.ID {
	id, _ := storage.ParseID(a.ID)
	return id
}

func (a *Attachment) issue() storage.ID {
	id, _ := storage.ParseID(a.IssueID)
	return id
}

// attachmentPath returns the path of an attachment's bytes.
func attachmentPath(workspace, attachment storage.ID) string {
	return "/workspaces/" + workspace.String() + "/attachments/" + attachment.String()
}

// attach stores a file as an attachment of an issue.
func (tx *Tx) attach(issue, id storage.ID, name string, f *upload) error {
	if err := tx.countRecord(attachmentTable, 1); err != nil {
		return err
	}
	a := Attachment{
		ID: AttachmentID(id.String()), OrganizationID: WorkspaceID(tx.Workspace().String()), IssueID: IssueID(issue.String()),
		Name: name, ContentType: f.media, Size: int64(len(f.content)), SHA256: hex.EncodeToString(f.sum[:]),
		URL: attachmentPath(tx.Workspace(), id), CreatedAt: At(tx.Now()),
	}
	if _, err := attachments.Insert(tx, &a); err != nil {
		return fmt.Errorf("store an attachment: %w", err)
	}
	return tx.storeChunks(id, f.content)
}

// storeChunks stores the bytes of an attachment.
func (tx *Tx) storeChunks(id storage.ID, content []byte) error {
	for n, rest := 0, content; len(rest) > 0; n++ {
		part := rest[:min(len(rest), attachmentChunkLen)]
		rest = rest[len(part):]
		if err := tx.Writer().AddValue(attachmentChunk, chunkKey(id, n), part); err != nil {
			return fmt.Errorf("store an attachment: %w", err)
		}
	}
	return nil
}

// attachment returns the record of an attachment, or nil if it does not exist or the
// caller may not see its issue.
func (v *View) attachment(id storage.ID) (*Attachment, error) {
	row, err := attachments.Get(v, attachmentKey(id))
	if err != nil || row == nil {
		return nil, err
	}
	if seen, err := v.hasIssue(row.Value.issue()); err != nil || !seen {
		return nil, err
	}
	return &row.Value, nil
}

// content reads the bytes of an attachment into b, which it grows if necessary.
func (v *View) content(a *Attachment, b []byte) ([]byte, error) {
	if b = b[:0]; int64(cap(b)) < a.Size {
		b = make([]byte, 0, a.Size)
	}
	id := a.id()
	err := v.Rows(attachmentChunk, id[:], nil, func(_, value []byte) (bool, error) {
		b = append(b, value...)
		return true, nil
	})
	if err == nil && int64(len(b)) != a.Size {
		err = fmt.Errorf("%w: attachment %s has %d bytes of %d", storage.ErrFormat, a.ID, len(b), a.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("read an attachment: %w", err)
	}
	return b, nil
}

// dropAttachments removes attachments of an issue, and reports whether some are left.
// Each takes a few small writes, independent of its size.
func (tx *Tx) dropAttachments(issue *storage.Row[Issue], work *workBudget) (more bool, err error) {
	of := issue.Value.id()
	keys, err := tx.rowKeys(attachmentByIssue, of[:], work.left+1)
	if err != nil {
		return false, fmt.Errorf("list an issue's attachments: %w", err)
	}
	dropped := 0
	for _, pk := range keys {
		if more = work.spent(); more {
			break
		}
		row, err := attachments.Get(tx, pk)
		if err != nil {
			return false, err
		}
		if row == nil {
			return false, fmt.Errorf("issue %s: the index names an attachment that is not there", of)
		}
		if err := attachments.Delete(tx, row); err != nil {
			return false, fmt.Errorf("remove an attachment: %w", err)
		}
		id := row.Value.id()
		if err := tx.Writer().DeleteRows(attachmentChunk, id[:]); err != nil {
			return false, fmt.Errorf("remove an attachment: %w", err)
		}
		dropped++
	}
	if dropped > 0 {
		err = tx.countRecord(attachmentTable, -dropped)
	}
	return more, err
}
