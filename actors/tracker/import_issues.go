package tracker

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/storage"
)

// takeIssue stores an issue as it is: no event, no automation, no new number. Its parent
// and its team may come later in the file.
func takeIssue(im *importing, data []byte) error {
	var t Issue
	if err := im.decode(data, &t); err != nil {
		return err
	}
	tx := im.tx
	team, err := im.awaitTeam(t.TeamID)
	if err != nil {
		return err
	}
	if err := im.checkIssue(&t); err != nil {
		return err
	}
	if err := im.nest(&t); err != nil {
		return err
	}
	if err := im.meetAwaiting(&t); err != nil {
		return err
	}
	id := t.id()
	identifier := storage.Key(nil).Str(*t.Identifier)
	if known, err := tx.Has(identifierTable, identifier); err != nil || known {
		if err == nil {
			err = im.refuse("The identifier %s is taken.", *t.Identifier)
		}
		return err
	}
	key, _, _ := strings.Cut(*t.Identifier, "-") // may be another team's
	if err := im.numberedOnce(&t, team, key); err != nil {
		return err
	}
	if err := restore(im, &issues, &t); err != nil {
		return err
	}
	if err := tx.Writer().AddValue(identifierTable, identifier, id[:]); err != nil {
		return err
	}
	if err := im.countTo(team, *t.Number); err != nil {
		return err
	}
	if err := im.noteNumber(key, *t.Number); err != nil {
		return err
	}
	if t.Status.Closed() {
		// A line with the time follows, unless the file is of an earlier version.
		if err := tx.storeClosing(nil, &closedIssue{IssueID: t.ID, ClosedAt: t.UpdatedAt, Archived: t.ArchivedAt != nil}); err != nil {
			return err
		}
	}
	if err := tx.indexImported(&t); err != nil {
		return err
	}
	return tx.aggregateIssue(nil, &t)
}

// maxImportLabels is the number of labels that an issue can have.
const maxImportLabels = 100

// checkIssue checks what the types of an issue's fields don't say.
func (im *importing) checkIssue(t *Issue) error {
	if t.Number == nil || t.Identifier == nil || *t.Number == 0 || *t.Number > maxImportNumber {
		return im.refuse("data must have a number and an identifier.")
	}
	key, number, ok := strings.Cut(*t.Identifier, "-")
	if upper, valid := upperKey(key); !ok || !valid || upper != key || number != strconv.FormatUint(*t.Number, 10) {
		return im.refuse("data.identifier must be a team's key and the number.")
	}
	if t.Title == "" || t.Estimate != nil && *t.Estimate < 0 {
		return im.refuse("data.title must not be empty, and data.estimate not negative.")
	}
	if ref := t.ExternalRef; ref != nil && (*ref == "" || len(*ref) > 4*255) {
		return im.refuse("data.externalRef must have 1 to 255 characters.")
	}
	if t.ArchivedAt != nil && !t.Status.Closed() {
		return im.refuse("data.archivedAt is of closed issues only.")
	}
	var names []string
	if t.LabelIDs != nil && (json.Unmarshal([]byte(*t.LabelIDs), &names) != nil || len(names) > maxImportLabels) {
		return im.refuse("data.labelIds must be the JSON of a list of at most %d ids.", maxImportLabels)
	}
	for _, id := range names {
		if isLonger(id, 255) {
			return im.refuse("data.labelIds must have ids of at most 255 characters.")
		}
	}
	tick := uint64(storage.DocOf(t.id()))
	if tick <= im.record.LastIssue {
		return im.refuse("Issues must come in the order in which they were made, and before their sessions and usage.")
	}
	im.record.LastIssue = tick
	return im.tickFree(t.id())
}

// tickFree refuses an issue whose time and count are those of one that was made while the import runs, or
// of a deleted one that the index still has: a storage.Doc is of one issue.
func (im *importing) tickFree(id storage.ID) error {
	taken := false
	note := func(_, _ []byte) (bool, error) {
		taken = true
		return false, nil
	}
	err := im.tx.Rows(issueTable, storage.DocKey(nil, storage.DocOf(id)), nil, note)
	if err == nil {
		err = im.tx.Rows(searchChanged, id[:storage.DocKeyLen], nil, note)
	}
	if err != nil {
		return fmt.Errorf("look for an issue of the same time: %w", err)
	}
	if taken {
		return im.refuse("data.id has the time and count of another issue.")
	}
	return nil
}

// nest checks that an issue fits below its parent and above the children that came before
// it, and counts the issues whose parent is missing.
func (im *importing) nest(t *Issue) error {
	tx, id := im.tx, t.id()
	children, err := tx.childKeys(issueKey(id), maxMovedBelow+1)
	if err != nil {
		return err
	}
	if len(children) > maxMovedBelow {
		return im.refuse("More than %d children come before their parent.", maxMovedBelow)
	}
	im.record.Orphans -= int64(len(children))
	if t.ParentID == nil {
		return im.fits(id, len(children), maxParentChain)
	}
	there, err := tx.Has(issueTable, issueKey(t.parent()))
	if err != nil {
		return err
	}
	if !there {
		if t.parent() == id {
			return im.refuse("The issue is its own parent.")
		}
		im.record.Orphans++
		return im.fits(id, len(children), maxParentChain-1) // with the parent
	}
	fault, err := tx.parentFault(id, *t.ParentID)
	if err == nil && fault != "" {
		err = im.refuse("data.parentId: %s", fault)
	}
	return err
}

// fits refuses an issue without a parent that is there, if the issue and those below it have more
// than the given number of levels.
func (im *importing) fits(id storage.ID, children, levels int) error {
	if children == 0 {
		return nil
	}
	fault, err := im.tx.depthFault(id, levels)
	if err == nil && fault != "" {
		err = im.refuse("data.id: %s", fault)
	}
	return err
}

// takeClosing sets the time when an issue was closed, and what was told of its pull request since.
func takeClosing(im *importing, data []byte) error {
	var c closedIssue
	if err := im.decode(data, &c); err != nil {
		return err
	}
	row, err := closings.Get(im.tx, issueKey(c.issue()))
	if err != nil {
		return fmt.Errorf("read when an issue was closed: %w", err)
	}
	if row == nil {
		return im.refuse("There is no closed issue %s before this line.", c.IssueID)
	}
	c.Archived = row.Value.Archived
	if c.Pull != nil && !c.Archived {
		return im.refuse("data.pull is of archived issues only.")
	}
	return im.tx.storeClosing(row, &c)
}

// takeBurndown stores what is recorded of an issue in a cycle.
func takeBurndown(im *importing, data []byte) error {
	var t transferredBurndown
	if err := im.decode(data, &t); err != nil {
		return err
	}
	row, err := im.needIssue(t.IssueID)
	if err != nil {
		return err
	}
	if t.CycleID == "" || isLonger(t.CycleID, 255) || len(t.Days) == 0 || len(t.Days) > maxBurndownChanges {
		return im.refuse("data must have a cycleId and 1 to %d days.", maxBurndownChanges)
	}
	var changes []burndownChange
	for _, d := range t.Days {
		at, err := time.Parse(time.DateOnly, d.Date)
		state := slices.Index(burndownStates[:], d.State)
		day, last := burndownDay(at), burndownChange{day: -1}
		if n := len(changes); n > 0 {
			last = changes[n-1]
		}
		if err != nil || state < 0 || day > maxBurndownDay || day <= last.day || burndownState(state) == last.state {
			return im.refuse("data.days must be dates in order, with another state each.")
		}
		changes = append(changes, burndownChange{day, burndownState(state)})
	}
	id := row.Value.id()
	cycle := storage.Key(nil).Str(t.CycleID)
	of := aggregatedOf(&row.Value, row.Flags&issueRestricted != 0)
	now, estimate := of.cycleState, of.estimate
	if of.cycle != t.CycleID {
		now = burndownOut
	}
	if now == burndownOut {
		estimate = 0
	}
	if changes[len(changes)-1].state != now || t.Estimate != estimate {
		return im.refuse("data.days must end with the state that the issue has in the cycle, and data.estimate be what it adds.")
	}
	byIssue := append(issueKey(id), cycle...)
	if err := im.roomForBurndown(id, byIssue); err != nil {
		return err
	}
	if err := im.tx.Writer().SetValue(burndownByIssue, byIssue, nil); err != nil {
		return err
	}
	return im.tx.Writer().SetValue(burndownTable, burndownKey(cycle, id), of.appendBurndown(nil, t.Estimate, changes))
}

// roomForBurndown refuses one cycle more than an issue has rows in. Each change of the issue's
// cycle, team or grants reads the rows of all its cycles.
func (im *importing) roomForBurndown(id storage.ID, byIssue storage.Key) error {
	known, err := im.tx.Has(burndownByIssue, byIssue)
	if err != nil {
		return fmt.Errorf("look for a burndown: %w", err)
	}
	if known {
		return nil
	}
	others, err := im.tx.rowKeys(burndownByIssue, issueKey(id), maxBurndownCycles)
	if err == nil && len(others) == maxBurndownCycles {
		err = im.refuse("An issue may be remembered in %d cycles.", maxBurndownCycles)
	}
	return err
}

// takeHistory adds an entry to the row of its change. The entries of a change differ in
// the last byte of their ids, which is their index.
func takeHistory(im *importing, data []byte) error {
	var e HistoryEntry
	if err := im.decode(data, &e); err != nil {
		return err
	}
	issue, err := im.needIssue(e.IssueID)
	if err != nil {
		return err
	}
	if e.Field == "" || strings.ContainsFunc(e.Field, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) || len(e.From) == 0 || len(e.To) == 0 {
		return im.refuse("data must have a field, from and to.")
	}
	if err := im.needNewer(e.ID, issue.Value.id()); err != nil {
		return err
	}
	id, _ := storage.ParseID(e.ID)
	n := int(id[15])
	id[15] = 0
	key := storage.Key(nil).ID(issue.Value.id()).DescID(id)
	value, err := im.tx.Value(historyTable, key, nil)
	if err != nil {
		return fmt.Errorf("read a change: %w", err)
	}
	entries := 0
	if value == nil {
		value = binary.BigEndian.AppendUint64([]byte{historyFormat}, uint64(e.CreatedAt.Time().UnixMilli()))
		value = appendSized(appendSized(value, string(e.ActorType)), e.ActorID)
	} else {
		var row historyRow
		if err := row.parse(key[len(id):], value); err != nil {
			return err
		}
		entries = len(row.entries)
	}
	if n != entries {
		return im.refuse("The entries of a change must come in order, and one of them is missing.")
	}
	value = appendSized(appendSized(appendSized(value, e.Field), e.From), e.To)
	return im.tx.Writer().SetValue(historyTable, key, value)
}

func lookAtComment(im *importing, c *Comment) error {
	row, err := im.needIssue(c.IssueID)
	if err != nil {
		return err
	}
	if err := im.needNewer(string(c.ID), row.Value.id()); err != nil || c.ParentID == nil {
		return err
	}
	above, _ := storage.ParseID(*c.ParentID)
	there, err := im.tx.Has(commentTable, commentKey(row.Value.id(), above))
	if err != nil {
		return fmt.Errorf("look for a comment: %w", err)
	}
	if !there || string(*c.ParentID) >= string(c.ID) {
		return im.refuse("data.parentId must be an older comment of the same issue.")
	}
	return nil
}

func takeAttachment(im *importing, data []byte) error {
	var t transferredAttachment
	if err := im.decode(data, &t); err != nil {
		return err
	}
	issue, err := im.needIssue(t.IssueID)
	if err != nil {
		return err
	}
	if err := im.needNewer(string(t.ID), issue.Value.id()); err != nil {
		return err
	}
	content, err := base64.StdEncoding.DecodeString(t.ContentBase64)
	if err != nil || len(content) == 0 || len(content) > maxScreenshot {
		return im.refuse("data.contentBase64 must be 1 to %d bytes in Base64.", maxScreenshot)
	}
	a := t.Attachment
	if got := hex.EncodeToString(sumOf(content)); got != a.SHA256 || int64(len(content)) != a.Size {
		return im.refuse("data.contentBase64 has %d bytes with the SHA-256 %s.", len(content), got)
	}
	if !a.ContentType.begins(content) {
		return im.refuse("data.contentBase64 does not begin like %s.", a.ContentType)
	}
	id := a.id()
	a.URL = attachmentPath(im.tx.Workspace(), id)
	if err := restore(im, &attachments, &a); err != nil {
		return err
	}
	return im.tx.storeChunks(id, content)
}

// takeAccessGrant adds a grant; the first one restricts its issue.
func takeAccessGrant(im *importing, data []byte) error {
	var g AccessGrant
	if err := im.decode(data, &g); err != nil {
		return err
	}
	row, err := im.needIssue(g.IssueID)
	if err != nil {
		return err
	}
	if err := im.needNewer(g.ID, row.Value.id()); err != nil {
		return err
	}
	n, err := im.tx.countGrants(row.Value.id())
	if err != nil {
		return err
	}
	if n >= maxGrants || g.ActorID == "" || isLonger(g.ActorID, 255) {
		return im.refuse("An issue may have %d grants, each to an actor.", maxGrants)
	}
	if err := restore(im, &accessGrants, &g); err != nil || n > 0 {
		return err
	}
	return im.tx.restrict(row, true)
}

func lookAtShare(im *importing, s *IssueShare) error {
	if len(s.Token) != shareTokenLen {
		return im.refuse("data.token must have %d characters.", shareTokenLen)
	}
	_, err := im.needIssue(s.IssueID)
	return err
}
