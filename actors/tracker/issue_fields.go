package tracker

import (
	"slices"
	"time"

	json "github.com/goccy/go-json"
)

// IssueFields are the fields that the creation and the change of an issue share. An
// absent one stays unchanged, or has its default; null clears it.
type IssueFields struct {
	ExternalRef       Opt[string]        `json:"externalRef" rules:"nullable,min=1,max=255"`
	TeamID            Opt[TeamID]        `json:"teamId" rules:"max=255"`
	TeamKey           Opt[string]        `json:"teamKey" rules:"max=255"`
	Description       Opt[string]        `json:"description" rules:"nullable,max=262144"`
	Status            Opt[IssueStatus]   `json:"status"`
	Priority          Opt[IssuePriority] `json:"priority"`
	Resolution        Opt[string]        `json:"resolution" rules:"nullable" enum:"duplicate,not_planned,intended_behavior,not_reproducible,obsolete,resolved"`
	ParentID          Opt[IssueID]       `json:"parentId" rules:"nullable,max=255"`
	SubIssueSortOrder Opt[float64]       `json:"subIssueSortOrder" rules:"nullable"`
	Estimate          Opt[int64]         `json:"estimate" rules:"nullable,min=0,max=9007199254740991"`
	IsDraft           Opt[bool]          `json:"isDraft"`
	// TemplateID need not be the id of an existing template (Decision 15); a change
	// ignores it.
	TemplateID   Opt[string]   `json:"templateId" rules:"min=1,max=255"`
	SnoozedUntil Opt[string]   `json:"snoozedUntil" rules:"nullable,datetime"`
	AssigneeID   Opt[string]   `json:"assigneeId" rules:"nullable,min=1,max=255"`
	ProjectID    Opt[string]   `json:"projectId" rules:"nullable,min=1,max=255"`
	CycleID      Opt[string]   `json:"cycleId" rules:"nullable,min=1,max=255"`
	LabelIDs     Opt[[]string] `json:"labelIds" rules:"nullable,max=100" items:"min=1,max=255"`
	Repo         Opt[string]   `json:"repo" rules:"nullable,max=255"`
	Branch       Opt[string]   `json:"branch" rules:"nullable,max=255"`
}

// IssuePatch is a change of an issue.
type IssuePatch struct {
	Title Opt[string] `json:"title" rules:"min=1,max=1000"`
	IssueFields
	PRURL   Opt[string] `json:"prUrl" rules:"nullable,max=2048,uri"`
	PRState Opt[string] `json:"prState" rules:"nullable" enum:"draft,open,merged,closed"`
}

// apply sets the given fields of an issue, except for those that require other records:
// externalRef, team and parent.
func (f *IssueFields) apply(t *Issue) {
	wasClosed := t.Status.Closed()
	t.Status = f.Status.Or(t.Status)
	t.Priority = f.Priority.Or(t.Priority)
	// An open issue has no resolution (Decision 21).
	if wasClosed && !t.Status.Closed() {
		t.Resolution = nil
	}
	t.IsDraft = f.IsDraft.Or(t.IsDraft)
	assign(&t.Description, &f.Description)
	assign(&t.Resolution, &f.Resolution)
	assign(&t.SubIssueSortOrder, &f.SubIssueSortOrder)
	assign(&t.Estimate, &f.Estimate)
	assign(&t.AssigneeID, &f.AssigneeID)
	assign(&t.ProjectID, &f.ProjectID)
	assign(&t.CycleID, &f.CycleID)
	assign(&t.Repo, &f.Repo)
	assign(&t.Branch, &f.Branch)
	if f.SnoozedUntil.Set {
		t.SnoozedUntil = snooze(f.SnoozedUntil.Ptr())
	}
	if f.LabelIDs.Set {
		t.LabelIDs = labelText(f.LabelIDs.Ptr())
	}
}

func (p *IssuePatch) apply(t *Issue) {
	t.Title = p.Title.Or(t.Title)
	p.IssueFields.apply(t)
	assign(&t.PRURL, &p.PRURL)
	assign(&t.PRState, &p.PRState)
}

// assign sets a nullable field to a given value, or to null.
func assign[T any](field **T, given *Opt[T]) {
	if given.Set {
		*field = given.Ptr()
	}
}

// Validate checks what the tags can't express.
func (f *IssueFields) Validate(faults *Faults) { f.validateAt("", faults) }

// validateAt is like Validate, for fields below a path such as "patch.".
func (f *IssueFields) validateAt(path string, faults *Faults) {
	momentFault(path+"snoozedUntil", &f.SnoozedUntil, faults)
}

// snooze returns the timestamp of a date and time, or nil if it is not valid. The rule
// "datetime" has checked that of a request.
func snooze(text *string) *Timestamp {
	if text == nil {
		return nil
	}
	at, ok := ParseDateTime(*text)
	if !ok {
		// Drafts and waiting sessions keep texts that earlier versions took.
		var err error
		if at, err = time.Parse(time.RFC3339Nano, *text); err != nil {
			return nil
		}
	}
	// An offset can move a time out of the four-digit years, in which timestamps
	// compare in the order of time.
	if at = at.UTC(); at.Year() < 0 || at.Year() > 9999 {
		return nil
	}
	stamp := At(at)
	return &stamp
}

// labelText returns the JSON text of a list of labels, in the given order without
// duplicates.
func labelText(labels *[]string) *string {
	if labels == nil {
		return nil
	}
	once := make([]string, 0, len(*labels))
	for _, label := range *labels {
		if !slices.Contains(once, label) {
			once = append(once, label)
		}
	}
	b, err := json.MarshalWithOption(once, json.DisableHTMLEscape())
	if err != nil { // strings can always be encoded
		panic(err)
	}
	text := string(b)
	return &text
}

// labels decodes LabelIDs.
func (t *Issue) labels() []string {
	if t.LabelIDs == nil {
		return nil
	}
	var labels []string
	// labelText wrote the text; the verifier reports damage.
	_ = json.Unmarshal([]byte(*t.LabelIDs), &labels)
	return labels
}
