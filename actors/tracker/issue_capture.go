package tracker

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxCaptureBody limits the body of a capture in bytes: it fits the largest screenshot
// in Base64, and the text of a page.
const maxCaptureBody = 8 << 20

// CaptureIssueIn is the content of a captured web page. Except for the references, it
// comes from the page and is not trusted.
type CaptureIssueIn struct {
	URL             string          `json:"url" rules:"required,uri,max=2048"`
	Title           Opt[string]     `json:"title" rules:"min=1,max=1000"`
	Selection       string          `json:"selection" rules:"max=65536"`
	Source          string          `json:"source" rules:"max=255"`
	TeamID          Opt[TeamID]     `json:"teamId" rules:"max=255"`
	TeamKey         Opt[string]     `json:"teamKey" rules:"max=255"`
	ProjectID       Opt[string]     `json:"projectId" rules:"min=1,max=255"`
	LabelIDs        Opt[[]string]   `json:"labelIds" rules:"max=100" items:"min=1,max=255"`
	PageText        string          `json:"pageText" rules:"max=4194304"`
	IncludeFullText bool            `json:"includeFullText"`
	Summarize       bool            `json:"summarize"`
	Screenshot      Opt[Screenshot] `json:"screenshot"`

	made *capture
}

// capture is a prepared input: Validate does the expensive work, before the input
// reaches the workspace's goroutine.
type capture struct {
	title, description string
	screenshot         *upload // nil without a screenshot
}

// CaptureIssue makes an issue of a web page (Decision 28).
var CaptureIssue = NewCommand[CaptureIssueIn, Issue]("CaptureIssue", "Capture a web page as an issue", Needs{Write, "issues"}, captureIssue, BodyUpTo(maxCaptureBody), Answers(Created))

// Validate checks what the tags can't express, and prepares the input.
func (in *CaptureIssueIn) Validate(faults *Faults) {
	made := &capture{}
	if !faults.Has("url") {
		if page := webAddress(in.URL); page == nil {
			faults.Add("url", "Must be an http or https address with a host.")
		} else {
			made.title = in.Title.Or(titleOf(page))
		}
	}
	if shot := in.Screenshot.Ptr(); shot != nil && !faults.Has("screenshot.contentBase64") && !faults.Has("screenshot.contentType") {
		made.screenshot = shot.read(faults)
		shot.ContentBase64 = "" // frees several megabytes
	}
	if !faults.Empty() {
		return
	}
	made.description = describeCapture(in)
	in.PageText, in.Selection = "", ""
	in.made = made
}

func captureIssue(tx *Tx, in *CaptureIssueIn) (Reply, error) {
	if in.made == nil {
		return Reply{}, fmt.Errorf("capture: the input was not validated")
	}
	fields := IssueFields{
		TeamID: in.TeamID, TeamKey: in.TeamKey, ProjectID: in.ProjectID, LabelIDs: in.LabelIDs,
		Status: Some(StatusTriage), Description: Some(in.made.description),
	}
	row, err := tx.composeIssue(in.made.title, &fields)
	if err != nil {
		return Reply{}, err
	}
	if shot := in.made.screenshot; shot != nil {
		id, err := tx.NewID()
		if err != nil {
			return Reply{}, fmt.Errorf("make an attachment's id: %w", err)
		}
		linked := in.made.description + "\n\n![Screenshot](" + attachmentPath(tx.Workspace(), id) + ")"
		row.Value.Description = &linked
		if err := tx.attach(row.Value.id(), id, "screenshot."+shot.media.extension(), shot); err != nil {
			return Reply{}, err
		}
	}
	w, err := tx.writeIssue(nil, row)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: Created, Body: w.body, ETag: etag(1)}, nil
}

// webAddress parses the address of a web page. It returns nil for any other, above all
// for javascript: and data:, which would run in the browser of a user who follows the
// link.
func webAddress(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil
	}
	return u
}

// titleOf returns the host and path of a page, cut to maxTitle characters.
func titleOf(u *url.URL) string {
	path := u.Path
	if !utf8.ValidString(path) || strings.IndexFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
		path = u.EscapedPath()
	}
	host := u.Host
	if strings.IndexFunc(host, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 || !utf8.ValidString(host) {
		host = url.PathEscape(host)
	}
	return firstRunes(host+strings.TrimSuffix(path, "/"), maxTitle)
}

// firstRunes cuts a text to n characters.
func firstRunes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}
