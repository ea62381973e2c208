package tracker

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelComment is the expected state of a comment; an empty parent stands for null.
type modelComment struct {
	id, parent CommentID
	author     *Caller
	body       string
}

func TestComments_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newIssueFixture(t)
		eve := Caller{Principal: Principal{Type: ActorUser, ID: "eve", Permissions: permissionWords["write"]}, Role: RoleMember, Level: Write}
		said := map[IssueID][]*modelComment{} // newest first
		var open []IssueID
		pick := func(t *rapid.T) (IssueID, *modelComment) {
			if len(open) == 0 {
				t.Skip("no issue yet: rapid draws another step")
			}
			issue := rapid.SampledFrom(open).Draw(t, "issue")
			if len(said[issue]) == 0 {
				return issue, nil
			}
			return issue, rapid.SampledFrom(said[issue]).Draw(t, "comment")
		}
		caller := func(t *rapid.T) *Caller {
			return rapid.SampledFrom([]*Caller{&w.ann, &w.gus, &eve}).Draw(t, "caller")
		}
		// may reports whether the caller may edit a comment, and checks that the
		// attempt ended accordingly.
		may := func(t *rapid.T, who *Caller, c *modelComment, err error) bool {
			allowed := who == &w.ann || who == c.author
			if !allowed {
				wantCode(t, err, CodeForbidden)
			} else if err != nil {
				t.Fatal(err)
			}
			return allowed
		}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(*rapid.T) { open = append(open, w.create(CreateIssueIn{}).ID) },
			"say": func(t *rapid.T) {
				issue, above := pick(t)
				c := &modelComment{author: caller(t), body: fmt.Sprint(w.now.UnixMilli())}
				if above != nil && rapid.Bool().Draw(t, "replies") {
					c.parent = above.id
				}
				c.id = w.comment(c.author, issue, c.body, c.parent).ID
				said[issue] = append([]*modelComment{c}, said[issue]...)
			},
			"edit": func(t *rapid.T) {
				_, c := pick(t)
				if c == nil {
					t.Skip("no comment yet: rapid draws another step")
				}
				who := caller(t)
				_, _, err := w.try(who, PatchComment, &PatchCommentIn{ID: string(c.id), Body: Some("edited")})
				if may(t, who, c, err) {
					c.body = "edited"
				}
			},
			"remove": func(t *rapid.T) {
				issue, c := pick(t)
				if c == nil {
					t.Skip("no comment yet: rapid draws another step")
				}
				who := caller(t)
				_, _, err := w.try(who, DeleteComment, &RecordIn{ID: string(c.id)})
				if !may(t, who, c, err) {
					return
				}
				said[issue] = slices.DeleteFunc(said[issue], func(other *modelComment) bool { return other == c })
				for _, other := range said[issue] {
					if other.parent == c.id {
						other.parent = ""
					}
				}
			},
			"close": func(t *rapid.T) {
				issue, _ := pick(t)
				w.run(&eve, DeleteIssue, &DeleteIssueIn{ID: string(issue)})
				delete(said, issue)
				open = slices.DeleteFunc(open, func(other IssueID) bool { return other == issue })
			},
			"": func(t *rapid.T) {
				for _, issue := range open {
					reply, err := w.ask(&w.gus, ListComments, &ListCommentsIn{IssueID: string(issue), Limit: 100})
					if err != nil {
						t.Fatal(err)
					}
					var got, want []string
					for _, c := range decode[CommentList](t, reply.Body).Comments {
						var parent CommentID
						if c.ParentID != nil {
							parent = *c.ParentID
						}
						got = append(got, fmt.Sprint(c.ID, parent, c.AuthorID, c.Body))
					}
					for _, c := range said[issue] {
						want = append(want, fmt.Sprint(c.id, c.parent, c.author.ID, c.body))
					}
					if !slices.Equal(got, want) {
						t.Fatalf("issue %s has %v, want %v", issue, got, want)
					}
				}
			},
		})
		w.verify()
	})
}
