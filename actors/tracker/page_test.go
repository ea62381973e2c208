package tracker

import (
	"testing"

	"switchyard/storage"
)

func TestNewPage_RefusesCursorsOfOtherLists(t *testing.T) {
	t.Parallel()
	a, b := storage.ID{1}, storage.ID{2}
	queries := []uint64{
		listQuery(a, "labels"), listQuery(b, "labels"), listQuery(a, "projects"),
		listQuery(a, "labels", Some("")), listQuery(a, "labels", Opt[string]{}),
		listQuery(a, "labels", Some("x"), Some("")), listQuery(a, "labels", Some(""), Some("x")), listQuery(a, "labels", Some("x"), Opt[string]{}),
	}
	for i, of := range queries {
		cursor := Some(string(appendCursor(nil, of, []byte("key"))))
		for j, query := range queries {
			p, err := newPage(nil, pageSpec{name: "labels", limit: 1, cursor: cursor, query: query})
			if i != j {
				wantCode(t, err, CodeBadRequest, "query.cursor")
			} else if err != nil || string(p.after) != "key" {
				t.Errorf("list %d: after %q, %v", i, p.after, err)
			}
		}
		for _, other := range []string{cursor.Value[:len(cursor.Value)-2], cursor.Value + "AA", cursor.Value[2:], "AA" + cursor.Value} {
			_, err := newPage(nil, pageSpec{name: "labels", limit: 1, cursor: Some(other), query: of})
			wantCode(t, err, CodeBadRequest, "query.cursor")
		}
		for _, keyLen := range []int{2, 4} {
			_, err := newPage(nil, pageSpec{name: "labels", limit: 1, cursor: cursor, query: of, keyLen: keyLen})
			wantCode(t, err, CodeBadRequest, "query.cursor")
		}
	}
}

func TestListDeliveries_RefusesCursorsOfOtherFilters(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	for range 2 {
		w.create(CreateIssueIn{})
	}
	reply, err := w.ask(&w.ann, ListDeliveries, &ListDeliveriesIn{ID: hook.ID, Status: DeliveryPending, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	cursor := decode[DeliveryList](t, reply.Body).NextCursor
	for _, status := range []DeliveryStatus{"", DeliveryFailed} {
		_, err := w.ask(&w.ann, ListDeliveries, &ListDeliveriesIn{ID: hook.ID, Status: status, Limit: 1, Cursor: cursor})
		wantCode(t, err, CodeBadRequest, "query.cursor")
	}
}
