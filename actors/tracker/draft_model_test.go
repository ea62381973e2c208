package tracker

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// modelDraft is the expected state of a draft.
type modelDraft struct {
	id     DraftID
	kind   DraftKind
	issue  IssueID // "": none
	status DraftStatus
}

func TestDrafts_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newIssueFixture(t)
		hook := w.subscribe()
		var all []*modelDraft              // newest first
		said := map[IssueID]int{}          // comments of the issues there are
		title := map[IssueID]string{}      // of the same
		hidden := map[IssueID]bool{}       // from gus
		pick := func(t *rapid.T) IssueID { // in a fixed order
			if len(title) == 0 {
				t.Skip("no issue yet: rapid draws another step")
			}
			ids := make([]IssueID, 0, len(title))
			for id := range title {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			return rapid.SampledFrom(ids).Draw(t, "issue")
		}
		sees := func(who *Caller, d *modelDraft) bool { return who == &w.ann || d.issue == "" || !hidden[d.issue] }
		caller := func(t *rapid.T) *Caller { return rapid.SampledFrom([]*Caller{&w.ann, &w.gus}).Draw(t, "caller") }
		decide := func(op *Op, to DraftStatus) func(*rapid.T) {
			return func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("no draft yet: rapid draws another step")
				}
				d, who := rapid.SampledFrom(all).Draw(t, "draft"), caller(t)
				reply, _, err := w.try(who, op, &DecideDraftIn{ID: string(d.id)})
				switch {
				case !sees(who, d):
					wantCode(t, err, CodeNotFound)
					return
				case d.status != DraftPending:
					wantCode(t, err, CodeConflict)
					return
				case err != nil:
					t.Fatal(err)
				}
				d.status = to
				if to == DraftDiscarded {
					return
				}
				switch d.kind {
				case DraftComment:
					said[d.issue]++
				case DraftIssueUpdate:
					title[d.issue] = string(d.kind)
				case DraftIssueCreate:
					made := IssueID(*decode[Draft](w, reply.Body).EntityID)
					title[made] = string(d.kind)
					if d.issue == "" {
						d.issue = made
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				in := CreateIssueIn{Title: "open"}
				secret := rapid.Bool().Draw(t, "hidden")
				if secret {
					in.TeamID = Some(w.secret)
				}
				id := w.create(in).ID
				title[id], hidden[id] = "open", secret
			},
			"propose": func(t *rapid.T) {
				d := &modelDraft{kind: rapid.SampledFrom([]DraftKind{DraftComment, DraftIssueCreate, DraftIssueUpdate}).Draw(t, "kind"), status: DraftPending}
				in := CreateDraftIn{Kind: d.kind}
				if d.kind != DraftIssueCreate || rapid.Bool().Draw(t, "on an issue") {
					d.issue = pick(t)
					in.IssueID = Some(d.issue)
				}
				d.id = w.propose(&w.ann, in, fmt.Sprintf(`{"body":"said","title":%q}`, d.kind)).ID
				all = append([]*modelDraft{d}, all...)
			},
			"publish": decide(PublishDraft, DraftPublished),
			"discard": decide(DiscardDraft, DraftDiscarded),
			"close": func(t *rapid.T) {
				id := pick(t)
				w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(id)})
				delete(title, id)
				delete(said, id)
				all = slices.DeleteFunc(all, func(d *modelDraft) bool { return d.issue == id })
			},
			"": func(t *rapid.T) {
				status := DraftStatus(rapid.SampledFrom([]string{"", "pending", "published", "discarded"}).Draw(t, "status"))
				who := caller(t)
				in := ListDraftsIn{Limit: 2}
				if status != "" {
					in.Status = Some(status)
				}
				var want []DraftID
				for _, d := range all {
					if sees(who, d) && (status == "" || d.status == status) {
						want = append(want, d.id)
					}
				}
				if got := w.drafts(who, in); !slices.Equal(got, want) {
					t.Fatalf("listed are %v, want %v", got, want)
				}
				for id, want := range title {
					if got := w.get(id).Title; got != want || len(w.bodies(id)) != said[id] {
						t.Fatalf("issue %s is %q with comments %v, want %q with %d", id, got, w.bodies(id), want, said[id])
					}
				}
			},
		})
		w.verify()
		v := storage.NewView(w.db, 1, w.workspace)
		wantAll(t, &v, hook.ID)
	})
}
