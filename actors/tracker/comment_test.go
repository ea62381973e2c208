package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

func (w *issueFixture) comment(who *Caller, issue IssueID, body string, parent CommentID) Comment {
	w.Helper()
	in := CreateCommentIn{IssueID: string(issue), Body: body}
	if parent != "" {
		in.ParentID = Some(parent)
	}
	return decode[Comment](w, w.run(who, CreateComment, &in).Body)
}

func (w *issueFixture) bodies(issue IssueID) (all []string) {
	w.Helper()
	in := ListCommentsIn{IssueID: string(issue), Limit: 100}
	for {
		reply, err := w.ask(&w.ann, ListComments, &in)
		if err != nil {
			w.Fatal(err)
		}
		list := decode[CommentList](w, reply.Body)
		for _, c := range list.Comments {
			all = append(all, c.Body)
		}
		if in.Cursor = list.NextCursor; in.Cursor == "" {
			return all
		}
	}
}

// commentEvents returns the events of comments, with the headers that decide who sees
// them.
func (w *issueFixture) commentEvents() (events []string) {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	err := v.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		rec, err := EventRow(&v, fields, value)
		if err != nil {
			return false, err
		}
		var e struct {
			Type    string
			Data    Comment
			Changes map[string]struct{ From, To *string }
		}
		if err := json.Unmarshal(rec.JSON(), &e); err != nil || !strings.HasPrefix(e.Type, "comment.") {
			return true, err
		}
		team := rec.Team()
		text := fmt.Sprintf("%s %s %s", e.Type, e.Data.Body, map[TeamID]string{w.core: "CORE", w.web: "WEB", w.secret: "SEC"}[TeamID(team.String())])
		for field := range e.Changes {
			text += " " + field
		}
		events = append(events, text)
		return true, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return events
}

func TestComments_LiveAndDie(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	first := w.comment(&w.gus, issue.ID, "first", "")
	if first.AuthorID != "gus" || first.AuthorType != ActorUser || first.IssueID != issue.ID || first.ParentID != nil || string(first.OrganizationID) != w.workspace.String() {
		t.Errorf("comment %+v", first)
	}
	reply := w.comment(&w.ann, issue.ID, "reply", first.ID)
	deeper := w.comment(&w.gus, issue.ID, "deeper", reply.ID)
	if *reply.ParentID != first.ID || *deeper.ParentID != reply.ID {
		t.Errorf("replies %+v, %+v", reply, deeper)
	}
	if got := w.bodies(issue.ID); !slices.Equal(got, []string{"deeper", "reply", "first"}) {
		t.Errorf("comments %v", got)
	}
	w.verify()

	if got := decode[Comment](t, w.run(&w.gus, PatchComment, &PatchCommentIn{ID: string(first.ID), Body: Some("better")}).Body); got.Body != "better" || got.UpdatedAt <= first.UpdatedAt {
		t.Errorf("comment %+v", got)
	}
	for _, same := range []Opt[string]{{}, Some("better")} {
		w.run(&w.gus, PatchComment, &PatchCommentIn{ID: string(first.ID), Body: same})
	}
	// Only the author or an admin may edit a comment.
	bot := Caller{Principal: Principal{Type: ActorAgent, ID: "gus", Permissions: permissionWords["write"]}, Role: RoleMember, Level: Write}
	for _, who := range []*Caller{&bot, &w.gus} {
		_, _, err := w.try(who, PatchComment, &PatchCommentIn{ID: string(reply.ID), Body: Some("x")})
		wantCode(t, err, CodeForbidden)
		_, _, err = w.try(who, DeleteComment, &RecordIn{ID: string(reply.ID)})
		wantCode(t, err, CodeForbidden)
	}
	_, _, err := w.try(&bot, DeleteComment, &RecordIn{ID: string(first.ID)}) // an agent with the user's id is another actor
	wantCode(t, err, CodeForbidden)
	w.run(&w.ann, PatchComment, &PatchCommentIn{ID: string(deeper.ID), Body: Some("moderated")})

	// Replies stay when the comment that they reply to is deleted.
	if reply := w.run(&w.gus, DeleteComment, &RecordIn{ID: string(first.ID)}); reply.Outcome != NoContent {
		t.Errorf("reply %+v", reply)
	}
	answer, err := w.ask(&w.gus, CommentByID, &RecordIn{ID: string(reply.ID)})
	if got := decode[Comment](t, answer.Body); err != nil || got.ParentID != nil || got.Body != "reply" {
		t.Errorf("reply %+v, %v", got, err)
	}
	want := []string{
		"comment.created first CORE", "comment.created reply CORE", "comment.created deeper CORE", "comment.updated better CORE body",
		"comment.updated moderated CORE body", "comment.updated reply CORE parentId", "comment.deleted better CORE",
	}
	if got := w.commentEvents(); !slices.Equal(got, want) {
		t.Errorf("events %v,\nwant %v", got, want)
	}
	for _, id := range []string{string(first.ID), "nonsense", string(issue.ID)} {
		_, err := w.ask(&w.ann, CommentByID, &RecordIn{ID: id})
		wantCode(t, err, CodeNotFound)
		_, _, err = w.try(&w.ann, PatchComment, &PatchCommentIn{ID: id, Body: Some("x")})
		wantCode(t, err, CodeNotFound)
		_, _, err = w.try(&w.ann, DeleteComment, &RecordIn{ID: id})
		wantCode(t, err, CodeNotFound)
	}
	w.verify()
}

func TestComments_AreSeenWithTheirIssue(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	mine := w.comment(&w.gus, issue.ID, "mine", "")
	w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	_, err := w.ask(&w.gus, ListComments, &ListCommentsIn{IssueID: string(issue.ID), Limit: 50})
	wantCode(t, err, CodeNotFound)
	_, err = w.ask(&w.gus, CommentByID, &RecordIn{ID: string(mine.ID)})
	wantCode(t, err, CodeNotFound)
	_, _, err = w.try(&w.gus, CreateComment, &CreateCommentIn{IssueID: string(issue.ID), Body: "x"})
	wantCode(t, err, CodeNotFound)
	_, _, err = w.try(&w.gus, PatchComment, &PatchCommentIn{ID: string(mine.ID), Body: Some("x")})
	wantCode(t, err, CodeNotFound)
	_, _, err = w.try(&w.gus, DeleteComment, &RecordIn{ID: string(mine.ID)})
	wantCode(t, err, CodeNotFound)
	// Later events are seen by the callers who see the issue then.
	w.run(&w.ann, PatchComment, &PatchCommentIn{ID: string(mine.ID), Body: Some("secret")})
	if got := w.commentEvents(); !slices.Equal(got, []string{"comment.created mine CORE", "comment.updated secret SEC body"}) {
		t.Errorf("events %v", got)
	}
	w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.web)}})
	if _, err = w.ask(&w.gus, CommentByID, &RecordIn{ID: string(mine.ID)}); err != nil {
		t.Error(err)
	}
	w.verify()
}

func TestCreateComment_Refuses(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue, other := w.create(CreateIssueIn{}), w.create(CreateIssueIn{})
	elsewhere := w.comment(&w.ann, other.ID, "elsewhere", "")
	for _, parent := range []CommentID{elsewhere.ID, "nonsense", CommentID(issue.ID), ""} {
		_, _, err := w.try(&w.ann, CreateComment, &CreateCommentIn{IssueID: string(issue.ID), Body: "x", ParentID: Some(parent)})
		wantCode(t, err, CodeBadRequest, "parentId")
	}
	for _, id := range []string{"nonsense", w.workspace.String(), string(elsewhere.ID)} {
		_, _, err := w.try(&w.ann, CreateComment, &CreateCommentIn{IssueID: id, Body: "x"})
		wantCode(t, err, CodeNotFound)
	}
	w.run(&w.ann, CreateComment, &CreateCommentIn{IssueID: string(issue.ID), Body: "x", ParentID: Opt[CommentID]{Set: true, Null: true}})
	w.verify()
}

func TestListComments_Pages(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue, other := w.create(CreateIssueIn{}), w.create(CreateIssueIn{})
	var want []string
	for i := range 7 {
		want = append([]string{fmt.Sprint(i)}, want...)
		w.comment(&w.ann, issue.ID, fmt.Sprint(i), "")
		w.comment(&w.ann, other.ID, "elsewhere", "")
	}
	var got []string
	in := ListCommentsIn{IssueID: string(issue.ID), Limit: 3}
	for {
		reply, err := w.ask(&w.gus, ListComments, &in)
		if err != nil {
			t.Fatal(err)
		}
		list := decode[CommentList](t, reply.Body)
		for _, c := range list.Comments {
			got = append(got, c.Body)
		}
		if in.Cursor = list.NextCursor; in.Cursor == "" {
			break
		}
		w.comment(&w.ann, issue.ID, "newer", "")
		_, err = w.ask(&w.ann, ListComments, &ListCommentsIn{IssueID: string(other.ID), Limit: 3, Cursor: in.Cursor})
		wantCode(t, err, CodeBadRequest, "query.cursor")
	}
	if !slices.Equal(got, want) {
		t.Errorf("comments %v, want %v", got, want)
	}
	// No cursor leads to comments of another issue.
	id := issue.id()
	for _, key := range []string{"\x00", strings.Repeat("\xff", 40), strings.Repeat("\x80", 16)} {
		reply, err := w.ask(&w.gus, ListComments, &ListCommentsIn{IssueID: string(issue.ID), Limit: 100, Cursor: string(appendCursor(nil, listQuery(id, "comments"), []byte(key)))})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(reply.Body), "elsewhere") {
			t.Errorf("cursor %x shows %s", key, reply.Body)
		}
	}
}

func TestListComments_LargePageEndsEarly(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	large := strings.Repeat("\U0001F600", 65536)
	for range 40 {
		w.comment(&w.ann, issue.ID, large, "")
	}
	reply, err := w.ask(&w.ann, ListComments, &ListCommentsIn{IssueID: string(issue.ID), Limit: 100})
	if err != nil || len(reply.Body) > maxPageBytes+1<<20 || decode[CommentList](t, reply.Body).NextCursor == "" {
		t.Errorf("a page of %d bytes, %v", len(reply.Body), err)
	}
	if got := w.bodies(issue.ID); len(got) != 40 {
		t.Errorf("%d comments", len(got))
	}
}

func TestDeleteComment_ManyReplies(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	first := w.comment(&w.ann, issue.ID, "first", "")
	for range 2*maxBudgetRecords + 1 {
		w.comment(&w.ann, issue.ID, "reply", first.ID)
	}
	_, times, err := w.try(&w.ann, DeleteComment, &RecordIn{ID: string(first.ID)})
	if err != nil || times != 3 {
		t.Errorf("%d runs, %v; want 3", times, err)
	}
	if got := w.bodies(issue.ID); len(got) != 2*maxBudgetRecords+1 {
		t.Errorf("%d comments are left", len(got))
	}
	w.verify()
}

// A deletion removes everything that belongs to an issue, of any number: children and
// comments share the limit of a batch.
func TestDeleteIssue_WithComments(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue, other := w.create(CreateIssueIn{}), w.create(CreateIssueIn{})
	w.comment(&w.ann, other.ID, "stays", "")
	for range 300 {
		w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(issue.ID)}})
	}
	var above CommentID
	for range 400 {
		above = w.comment(&w.gus, issue.ID, "goes", above).ID
	}
	_, times, err := w.try(&w.gus, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if err != nil || times != 2 {
		t.Errorf("%d runs, %v; want 2", times, err)
	}
	_, err = w.ask(&w.ann, CommentByID, &RecordIn{ID: string(above)})
	wantCode(t, err, CodeNotFound)
	if got := w.bodies(other.ID); !slices.Equal(got, []string{"stays"}) {
		t.Errorf("comments %v", got)
	}
	if deleted := slices.DeleteFunc(w.commentEvents(), func(e string) bool { return e != "comment.deleted goes CORE" }); len(deleted) != 400 {
		t.Errorf("%d comments were told to be deleted", len(deleted))
	}
	events := w.events()
	if last := events[len(events)-1]; last.Type != eventIssueDeleted.name {
		t.Errorf("the last event is %+v", last)
	}
	w.verify()
}

func TestDeleteIssue_LargeCommentsTakeSeveralBatches(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{IssueFields: IssueFields{Description: Some(strings.Repeat("x", 1<<20))}})
	large := strings.Repeat("\U0001F600", 65536)
	for range 60 {
		w.comment(&w.ann, issue.ID, large, "")
	}
	child := strings.Repeat("y", 1<<20)
	for range 3 {
		w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(issue.ID), Description: Some(child)}})
	}
	_, times, err := w.try(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if err != nil || times < 4 {
		t.Errorf("%d runs, %v", times, err)
	}
	w.verify()
}

func TestVerify_TellsWhatIsWrongWithComments(t *testing.T) {
	t.Parallel()
	spoil := func(tx *Tx, id CommentID, change func(*Comment)) error {
		c, err := tx.comment(string(id))
		if err != nil {
			return err
		}
		next := c.Value
		change(&next)
		_, err = comments.Update(tx, c.Row, &next)
		return err
	}
	for _, row := range []struct {
		want string
		do   func(tx *Tx, a, b Comment) error
	}{
		{"its issue", func(tx *Tx, a, _ Comment) error {
			issue, err := tx.issue(string(a.IssueID))
			if err != nil {
				return err
			}
			_, err = tx.writeIssue(issue, nil)
			return err
		}},
		{"is not a comment of its issue", func(tx *Tx, a, _ Comment) error {
			c, err := tx.comment(string(a.ID))
			if err != nil {
				return err
			}
			return comments.Delete(tx, c.Row)
		}},
		{"is not older", func(tx *Tx, a, b Comment) error {
			return spoil(tx, a.ID, func(c *Comment) { c.ParentID = &b.ID })
		}},
		{"is not an id", func(tx *Tx, a, _ Comment) error {
			return spoil(tx, a.ID, func(c *Comment) { id := CommentID("x"); c.ParentID = &id })
		}},
		{"says it belongs to workspace w", func(tx *Tx, a, _ Comment) error {
			return spoil(tx, a.ID, func(c *Comment) { c.OrganizationID = "w" })
		}},
		{"comment.id", func(tx *Tx, a, _ Comment) error {
			id, _ := storage.ParseID(a.ID)
			return tx.Writer().DeleteValue(commentByID, id[:])
		}},
	} {
		t.Run(row.want, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			issue := w.create(CreateIssueIn{})
			a := w.comment(&w.ann, issue.ID, "a", "")
			b := w.comment(&w.ann, issue.ID, "b", a.ID)
			w.run(&w.ann, NewCommand[None, None]("spoil", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				return Reply{}, row.do(tx, a, b)
			}), &None{})
			w.verifyFinds(row.want)
		})
	}
}
