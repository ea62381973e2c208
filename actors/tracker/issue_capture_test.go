package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"switchyard/storage"
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// image returns a file of n bytes that begins like a PNG.
func image(n int) []byte {
	b := []byte(pngMagic)
	for i := len(b); i < n; i++ {
		b = append(b, byte(i*7)^byte(i>>8))
	}
	return b
}

func shotOf(content []byte, media MediaType) Opt[Screenshot] {
	return Some(Screenshot{ContentBase64: base64.StdEncoding.EncodeToString(content), ContentType: media})
}

// capture captures a page as a caller, like a request does.
func (w *issueFixture) capture(who *Caller, in CaptureIssueIn) (Issue, error) {
	w.Helper()
	var faults Faults
	in.Validate(&faults)
	if err := faults.Err(); err != nil {
		return Issue{}, err
	}
	reply, _, err := w.try(who, CaptureIssue, &in)
	if err != nil {
		return Issue{}, err
	}
	if reply.Outcome != Created || reply.ETag != etag(1) {
		w.Errorf("answered %d with %s", reply.Outcome, reply.ETag)
	}
	return decode[Issue](w, reply.Body), nil
}

func (w *issueFixture) mustCapture(in CaptureIssueIn) Issue {
	w.Helper()
	t, err := w.capture(&w.ann, in)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

func (w *issueFixture) attachments(who *Caller, id IssueID) ([]Attachment, error) {
	w.Helper()
	reply, err := w.ask(who, ListAttachments, &ListAttachmentsIn{ID: string(id)})
	if err != nil {
		return nil, err
	}
	return decode[AttachmentList](w, reply.Body).Attachments, nil
}

// chunks counts the rows with the bytes of attachments.
func (w *issueFixture) chunks() (n int) {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	if err := v.Rows(attachmentChunk, nil, nil, func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
		w.Fatal(err)
	}
	return n
}

func TestCaptureIssue_MakesATriageIssue(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	got := w.mustCapture(CaptureIssueIn{
		URL: "https://example.com/a/b/?q=1&r=(2)", Selection: "It *breaks*\n\n# here", Source: "browser", TeamKey: Some("web"),
		ProjectID: Some("p"), LabelIDs: Some([]string{"bug"}), PageText: "All of it.", IncludeFullText: true,
	})
	if got.Status != StatusTriage || got.Title != "example.com/a/b" || got.TeamID != w.web || *got.ProjectID != "p" || *got.LabelIDs != `["bug"]` || *got.Identifier != "WEB-1" {
		t.Errorf("made %+v", got)
	}
	want := "> It \\*breaks\\*\n> \n> \\# here\n\nSource: browser, [https://example.com/a/b/?q=1&r=(2)](https://example.com/a/b/?q=1&r=%282%29)\n\n## Page text\n\nAll of it."
	if *got.Description != want {
		t.Errorf("described as\n%s", *got.Description)
	}
	got = w.mustCapture(CaptureIssueIn{URL: "http://example.com", Title: Some("Mine"), PageText: "unasked for"})
	if got.Title != "Mine" || got.TeamID != w.core || *got.Description != "Source: [http://example.com](http://example.com)" {
		t.Errorf("made %+v", got)
	}
	if list, err := w.attachments(&w.ann, got.ID); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
	events := w.events()
	if last := events[len(events)-1]; last.Type != eventIssueCreated.name || last.Data.ID != got.ID {
		t.Errorf("told %+v", last)
	}
	w.verify()
}

func TestCaptureIssue_Refusals(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for name, row := range map[string]struct {
		in   CaptureIssueIn
		path string
	}{
		"script":           {CaptureIssueIn{URL: "javascript:alert(1)"}, "url"},
		"script and host":  {CaptureIssueIn{URL: "javascript://example.com/%0aalert(1)"}, "url"},
		"data":             {CaptureIssueIn{URL: "data:text/html,x"}, "url"},
		"file":             {CaptureIssueIn{URL: "file:///etc/passwd"}, "url"},
		"no host":          {CaptureIssueIn{URL: "http:///x"}, "url"},
		"a port alone":     {CaptureIssueIn{URL: "http://:80/x"}, "url"},
		"no base64":        {CaptureIssueIn{URL: "http://a", Screenshot: Some(Screenshot{"%%%%", MediaPNG})}, "screenshot.contentBase64"},
		"no padding":       {CaptureIssueIn{URL: "http://a", Screenshot: Some(Screenshot{strings.TrimRight(base64.StdEncoding.EncodeToString(image(9+1)), "="), MediaPNG})}, "screenshot.contentBase64"},
		"lines":            {CaptureIssueIn{URL: "http://a", Screenshot: Some(Screenshot{"iVBORw0K\nGgo=", MediaPNG})}, "screenshot.contentBase64"},
		"url alphabet":     {CaptureIssueIn{URL: "http://a", Screenshot: Some(Screenshot{"_9j_", MediaJPEG})}, "screenshot.contentBase64"},
		"trailing bits":    {CaptureIssueIn{URL: "http://a", Screenshot: Some(Screenshot{"iVBORw0KGgp=", MediaPNG})}, "screenshot.contentBase64"},
		"another type":     {CaptureIssueIn{URL: "http://a", Screenshot: shotOf(image(20), MediaJPEG)}, "screenshot.contentBase64"},
		"a page":           {CaptureIssueIn{URL: "http://a", Screenshot: shotOf([]byte("<script>alert(1)</script>"), MediaPNG)}, "screenshot.contentBase64"},
		"half a signature": {CaptureIssueIn{URL: "http://a", Screenshot: shotOf([]byte(pngMagic[:7]), MediaPNG)}, "screenshot.contentBase64"},
		"RIFF of sound":    {CaptureIssueIn{URL: "http://a", Screenshot: shotOf([]byte("RIFF\x00\x00\x00\x00WAVEfmt "), MediaWebP)}, "screenshot.contentBase64"},
		"a byte too much":  {CaptureIssueIn{URL: "http://a", Screenshot: shotOf(image(maxScreenshot+1), MediaPNG)}, "screenshot.contentBase64"},
		"no such team":     {CaptureIssueIn{URL: "http://a", TeamKey: Some("NONE")}, "teamKey"},
		"a hidden team":    {CaptureIssueIn{URL: "http://a", TeamID: Some(w.secret), Screenshot: shotOf(image(20), MediaPNG)}, "teamId"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.capture(&w.gus, row.in)
			wantCode(t, err, CodeBadRequest, row.path)
		})
	}
	if n := w.chunks(); n != 0 {
		t.Errorf("refused captures left %d rows of bytes", n)
	}
	w.verify()
}

func TestCaptureIssue_Screenshots(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for _, row := range []struct {
		content []byte
		media   MediaType
		name    string
	}{
		{image(len(pngMagic)), MediaPNG, "screenshot.png"},
		{image(attachmentChunkLen), MediaPNG, "screenshot.png"},
		{image(attachmentChunkLen + 1), MediaPNG, "screenshot.png"},
		{image(maxScreenshot), MediaPNG, "screenshot.png"},
		{[]byte("\xff\xd8\xff"), MediaJPEG, "screenshot.jpg"},
		{[]byte("RIFF\x04\x00\x00\x00WEBP"), MediaWebP, "screenshot.webp"},
	} {
		issue := w.mustCapture(CaptureIssueIn{URL: "https://example.com", Screenshot: shotOf(row.content, row.media)})
		list, err := w.attachments(&w.gus, issue.ID)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		a, sum := list[0], sha256.Sum256(row.content)
		if a.IssueID != issue.ID || a.Name != row.name || a.ContentType != row.media || a.Size != int64(len(row.content)) || a.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("attached %+v", a)
		}
		if !strings.HasSuffix(*issue.Description, "\n\n![Screenshot]("+a.URL+")") {
			t.Errorf("described as %s", *issue.Description)
		}
		reply, err := w.ask(&w.gus, AttachmentByID, &AttachmentByIDIn{ID: string(a.ID)})
		if err != nil || !bytes.Equal(reply.Body, row.content) || cap(reply.Body) > len(row.content)+attachmentChunkLen || reply.File.ContentType != string(row.media) {
			t.Errorf("%v, %d bytes in %d, as %+v", err, len(reply.Body), cap(reply.Body), reply.File)
		}
		again, err := w.ask(&w.gus, AttachmentByID, &AttachmentByIDIn{ID: string(a.ID), IfNoneMatch: "W/" + reply.ETag})
		if err != nil || again.Outcome != NotModified || again.Body != nil {
			t.Errorf("%v %+v", err, again.Outcome)
		}
	}
	w.verify()
}

// A capture with every part at its limit fits into one command.
func TestCaptureIssue_LargestFitsIntoOneBatch(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	in := CaptureIssueIn{URL: "https://example.com", PageText: strings.Repeat("\U0001f600", maxDescription), IncludeFullText: true, Screenshot: shotOf(image(maxScreenshot), MediaPNG)}
	var faults Faults
	in.Validate(&faults)
	req := w.request(&w.ann)
	req.Idempotency = &Idempotency{Key: "k"}
	reply, err := w.buffer.Run(CaptureIssue, req, &in, w.now)
	if err != nil {
		t.Fatal(err)
	}
	if size := w.buffer.Size(); size > maxCommandBytes {
		t.Errorf("writes %d bytes", size)
	}
	if n := utf8.RuneCountInString(*decode[Issue](t, reply.Body).Description); n > maxDescription || n < maxDescription-200 {
		t.Errorf("described in %d characters", n)
	}
	w.commit()
	w.verify()
}

func TestAttachments_SeenWithTheirIssue(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.mustCapture(CaptureIssueIn{URL: "https://example.com", TeamID: Some(w.secret), Screenshot: shotOf(image(99), MediaPNG)})
	list, err := w.attachments(&w.ann, issue.ID)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	hidden := func() {
		t.Helper()
		_, err := w.attachments(&w.gus, issue.ID)
		wantCode(t, err, CodeNotFound)
		_, err = w.ask(&w.gus, AttachmentByID, &AttachmentByIDIn{ID: string(list[0].ID), IfNoneMatch: "*"})
		wantCode(t, err, CodeNotFound)
	}
	hidden()
	w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.web)}})
	if _, err := w.ask(&w.gus, AttachmentByID, &AttachmentByIDIn{ID: string(list[0].ID)}); err != nil {
		t.Errorf("moved to a team that is seen: %v", err)
	}
	w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	hidden()
	for _, id := range []string{"", "x", string(issue.ID), strings.ToUpper(string(list[0].ID))} {
		_, err := w.ask(&w.ann, AttachmentByID, &AttachmentByIDIn{ID: id})
		wantCode(t, err, CodeNotFound)
	}
}

// The issue has more attachments than one batch removes.
func TestDeleteIssue_RemovesAttachmentsInSteps(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	stays := w.mustCapture(CaptureIssueIn{URL: "https://example.com", Screenshot: shotOf(image(9), MediaPNG)})
	goes := w.mustCapture(CaptureIssueIn{URL: "https://example.com", Screenshot: shotOf(image(attachmentChunkLen+9), MediaPNG)})
	parsed, _ := storage.ParseID(goes.ID)
	w.run(&w.ann, NewCommand[None, None]("attach", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		content := image(20)
		for range maxBudgetRecords + 1 {
			id, err := tx.NewID()
			if err != nil {
				return Reply{}, err
			}
			if err := tx.attach(parsed, id, "x.png", &upload{content: content, media: MediaPNG, sum: sha256.Sum256(content)}); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	}), &None{})
	w.verify()
	first, err := w.ask(&w.ann, ListAttachments, &ListAttachmentsIn{ID: string(goes.ID), PageIn: PageIn{Limit: 100}})
	if page := decode[AttachmentList](w, first.Body); err != nil || len(page.Attachments) != 100 || page.NextCursor == "" || page.Attachments[0].ID <= page.Attachments[99].ID {
		t.Errorf("%v, a page of %d", err, len(page.Attachments))
	}
	if _, times, err := w.try(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(goes.ID)}); err != nil || times != 2 {
		t.Errorf("took %d batches: %v", times, err)
	}
	if n := w.chunks(); n != 1 {
		t.Errorf("%d rows of bytes are left, want those of the other issue", n)
	}
	if list, err := w.attachments(&w.ann, stays.ID); err != nil || len(list) != 1 {
		t.Errorf("%v, the other issue has %d attachments", err, len(list))
	}
	w.verify()
}

func TestVerify_FindsBrokenAttachments(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(tx *Tx, a *Attachment) error{
		"a missing part": func(tx *Tx, a *Attachment) error {
			return tx.Writer().DeleteValue(attachmentChunk, chunkKey(a.id(), 1))
		},
		"a changed part": func(tx *Tx, a *Attachment) error {
			return tx.Writer().SetValue(attachmentChunk, chunkKey(a.id(), 1), []byte("123456789"))
		},
		"a part too many": func(tx *Tx, a *Attachment) error {
			return tx.Writer().SetValue(attachmentChunk, chunkKey(a.id(), 2), []byte("1"))
		},
		"parts of nobody": func(tx *Tx, a *Attachment) error {
			return tx.Writer().SetValue(attachmentChunk, chunkKey(a.issue(), 0), []byte("1"))
		},
		"no entry by issue":       func(tx *Tx, a *Attachment) error { return tx.Writer().DeleteRows(attachmentByIssue, nil) },
		"a record count too high": func(tx *Tx, _ *Attachment) error { return tx.countRecord(attachmentTable, 1) },
		"no issue": func(tx *Tx, a *Attachment) error {
			row, err := tx.issue(string(a.IssueID))
			if err != nil {
				return err
			}
			_, err = tx.writeIssue(row, nil)
			return err
		},
		"no record": func(tx *Tx, _ *Attachment) error { return dropFirst(tx, &attachments) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			issue := w.mustCapture(CaptureIssueIn{URL: "https://example.com", Screenshot: shotOf(image(attachmentChunkLen+9), MediaPNG)})
			list, err := w.attachments(&w.ann, issue.ID)
			if err != nil {
				t.Fatal(err)
			}
			w.run(&w.ann, NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				return Reply{}, harm(tx, &list[0])
			}), &None{})
			schema := Schema()
			schema.CheckStore = nil
			report, err := storage.Verify(t.Context(), w.db, schema)
			if err != nil {
				t.Fatal(err)
			}
			if report.Clean() {
				t.Error("nothing was found")
			}
		})
	}
}
