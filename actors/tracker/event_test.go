package tracker

import (
	"testing"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

func TestEmit_Layout(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	team := home.Team.ID
	raw, _ := storage.ParseID(team)
	w.must(home.Token.Secret, home.Workspace.ID, NewCommand[None, None]("emit", "", Needs{Level: Read}, func(tx *Tx, _ *None) (Reply, error) {
		changes := []Change{{"title", "a<b", json.RawMessage(`{"as":"it is"}`)}, {"assigneeId", nil, 3}}
		if err := tx.Emit(eventIssueUpdated, storage.Header{Flags: 5, Version: 9, Team: raw}, []byte(`{"id":"x"}`), changes); err != nil {
			return Reply{}, err
		}
		return Reply{}, tx.Emit(eventIssueDeleted, storage.Header{}, []byte(`{"id":"x"}`), nil)
	}), &None{})
	v := w.view(home.Workspace.ID.raw())
	var got []string
	var headers []storage.Header
	err := v.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		rec, err := EventRow(&v, fields, value)
		if err != nil {
			return false, err
		}
		got, headers = append(got, string(rec.JSON())), append(headers, rec.Header())
		return true, nil
	})
	if err != nil || len(got) != 2 {
		t.Fatalf("events %q, %v", got, err)
	}
	e := decode[Event](t, []byte(got[0]))
	rest := `","organizationId":"` + string(home.Workspace.ID) + `","sequence":`
	at := `,"createdAt":"` + string(e.CreatedAt) + `","actor":{"id":"` + string(home.Workspace.OwnerID) + `","type":"user"},"data":{"id":"x"}`
	if want := `{"id":"` + e.ID + `","type":"issue.updated` + rest + `1` + at + `,"changes":{"title":{"from":"a<b","to":{"as":"it is"}},"assigneeId":{"from":null,"to":3}}}`; got[0] != want {
		t.Errorf("event %s\nwant  %s", got[0], want)
	}
	second := decode[Event](t, []byte(got[1]))
	if want := `{"id":"` + second.ID + `","type":"issue.deleted` + rest + `2` + at + `}`; got[1] != want {
		t.Errorf("event %s\nwant  %s", got[1], want)
	}
	if headers[0] != (storage.Header{Flags: 5, Version: 1, Team: raw}) {
		t.Errorf("header %+v", headers[0])
	}
	w.verify()
}
