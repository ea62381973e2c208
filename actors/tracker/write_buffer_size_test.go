package tracker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A command that would write more than fits into one entry of the replication log is
// refused as a whole, and the batch's earlier commands stay.
func TestWriteBuffer_CommandTooLargeLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	huge := strings.Repeat("x", maxCommandBytes/4)
	flood := NewCommand[None, None]("flood", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for i := range 5 {
			if err := tx.Writer().SetValue(eventTable, fmt.Append(nil, "flood", i), []byte(huge)); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	})
	before := w.buffer.Size()
	_, err := w.buffer.Run(flood, w.request(&w.ann), &None{}, w.now)
	var failure *Error
	if !errors.As(err, &failure) || failure.Code != CodePayloadTooLarge {
		t.Fatalf("got %v, want %s", err, CodePayloadTooLarge)
	}
	if after := w.buffer.Size(); after != before {
		t.Errorf("the refused command left %d bytes in the batch", after-before)
	}
	w.create(CreateIssueIn{})
	w.verify()
}

// A node has a write buffer for each workspace in memory, so none keeps the space for encoding a large change.
func TestWriteBuffer_LetsGoOfLargeChanges(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	large := strings.Repeat("x", 4*maxScratch)
	issue := w.create(CreateIssueIn{IssueFields: IssueFields{Description: Some(large)}})
	kept := func() int { return cap(w.buffer.event) + cap(w.buffer.past) }
	if got := kept(); got > 2*maxScratch {
		t.Errorf("%d bytes are kept after the creation", got)
	}
	w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{Description: Some("y" + large[1:])}})
	if got := kept(); got > 2*maxScratch {
		t.Errorf("%d bytes are kept after the change", got)
	}
}
