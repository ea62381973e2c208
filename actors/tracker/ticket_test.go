package tracker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	json "github.com/goccy/go-json"
	"pgregory.net/rapid"
)

// message stores a message from outside in the fixture's workspace.
func (w *issueFixture) message(in receiveMessageIn) InboundAnswer {
	w.Helper()
	if in.Source == "" {
		in.Source = "mail"
	}
	caller := inboundCaller(in.Source)
	return decode[InboundAnswer](w, w.run(&caller, receiveMessageOp, &in).Body)
}

func (w *issueFixture) ticket(id TicketID) Ticket {
	w.Helper()
	reply, err := w.ask(&w.ann, TicketByID, &RecordIn{ID: string(id)})
	if err != nil {
		w.Fatal(err)
	}
	return decode[Ticket](w, reply.Body)
}

func TestPatchTicket_LinksWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hidden := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	seen := w.create(CreateIssueIn{})
	id := w.message(receiveMessageIn{inboundCall: inboundCall{Delivery: "1"}, From: "x", Text: "x"}).TicketID
	link := func(who *Caller, issue IssueID) error {
		_, _, err := w.try(who, PatchTicket, &PatchTicketIn{ID: string(id), IssueID: Some(issue)})
		return err
	}
	for _, issue := range []IssueID{hidden.ID, "01935000-0000-7000-8000-0000000000dd", "x", ""} {
		wantCode(t, link(&w.gus, issue), CodeBadRequest, "issueId")
	}
	if err := link(&w.gus, seen.ID); err != nil {
		t.Fatal(err)
	}
	if err := link(&w.ann, hidden.ID); err != nil {
		t.Fatal(err)
	}
	// For a caller who may not see the issue the ticket has none, and can't be linked
	// to it by its id.
	wantCode(t, link(&w.gus, hidden.ID), CodeBadRequest, "issueId")
	null := Opt[IssueID]{Set: true, Null: true}
	w.run(&w.gus, PatchTicket, &PatchTicketIn{ID: string(id), IssueID: null})
	if issue := w.ticket(id).IssueID; issue == nil || *issue != hidden.ID {
		t.Errorf("null took away a link that it was shown for: %v", issue)
	}
	_, _, err := w.try(&w.gus, CreateTicketIssue, &TicketIssueIn{TicketID: string(id)})
	wantCode(t, err, CodeConflict)
	w.run(&w.ann, PatchTicket, &PatchTicketIn{ID: string(id), IssueID: null})
	made := decode[CreatedIssue](t, w.run(&w.gus, CreateTicketIssue, &TicketIssueIn{TicketID: string(id), TeamKey: Some("WEB"), Status: Some(StatusTodo)}).Body)
	if made.Title != "x" || made.TeamID != w.web || made.Status != StatusTodo || *w.ticket(id).IssueID != made.ID {
		t.Errorf("%+v", made)
	}
	w.verify()
}

// Callers who may not see a ticket's issue see the ticket without it, in every answer
// and event (Decision 26).
func TestTickets_HideIssues(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	mel := w.somebody(ActorUser, "mel", w.core)
	id := w.message(receiveMessageIn{inboundCall: inboundCall{Delivery: "1"}, From: "x", Text: `{"issueId":"01935000-0000-7000-8000-0000000000dd"}`, Subject: `"issueId":{"from":`}).TicketID
	first, second := w.create(CreateIssueIn{}), w.create(CreateIssueIn{})
	link := func(issue IssueID) { w.run(&w.ann, PatchTicket, &PatchTicketIn{ID: string(id), IssueID: Some(issue)}) }
	link(first.ID)
	link(second.ID)
	issueOf := func(r Reply, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if at := decode[Ticket](t, r.Body).IssueID; at != nil {
			return string(*at)
		}
		return "null"
	}
	text := func(raw []byte) string { return strings.Trim(string(raw), `"`) }
	check := func(what string, who *Caller, one, two string) {
		t.Helper()
		if got := issueOf(w.ask(who, TicketByID, &RecordIn{ID: string(id)})); got != two {
			t.Errorf("%s: the ticket has issue %s, want %s", what, got, two)
		}
		list, err := w.ask(who, ListTickets, &ListTicketsIn{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if got := decode[struct{ Tickets []json.RawMessage }](t, list.Body).Tickets; len(got) != 1 || issueOf(Reply{Body: got[0]}, nil) != two {
			t.Errorf("%s: the list has %s, want %s", what, got, two)
		}
		patched := w.run(who, PatchTicket, &PatchTicketIn{ID: string(id), Status: Some(TicketOpen)})
		if got := issueOf(patched, nil); got != two {
			t.Errorf("%s: the PATCH answers with issue %s, want %s", what, got, two)
		}
		var got []string
		for _, e := range w.page(who, ListEventsIn{Types: "ticket.updated"}).Events {
			c := e.Changes["issueId"]
			got = append(got, issueOf(Reply{Body: e.Data}, nil), text(c.From), text(c.To))
		}
		if want := []string{one, "null", one, two, one, two}; !slices.Equal(got, want) {
			t.Errorf("%s: events tell of %s, want %s", what, got, want)
		}
	}
	a, b := string(first.ID), string(second.ID)
	check("open", mel, a, b)
	w.grant(second.ID, "ann", GranteeUser)
	check("restricted", mel, a, "null")
	check("restricted", &w.ann, a, b)
	w.patch(first.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	check("moved away", mel, "null", "null")
	w.ungrant(second.ID, "ann")
	check("open again", mel, "null", b)
	w.verify()
}

func TestTickets_TellWhatHappens(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	thread := "t"
	id := w.message(receiveMessageIn{inboundCall: inboundCall{Delivery: "1"}, From: "x", Text: "a", ThreadID: &thread}).TicketID
	w.run(&w.ann, CreateTicketMessage, &CreateTicketMessageIn{TicketID: string(id), Body: "b", Direction: Outbound})
	w.run(&w.ann, PatchTicket, &PatchTicketIn{ID: string(id), Status: Some(TicketClosed)})
	w.run(&w.ann, PatchTicket, &PatchTicketIn{ID: string(id), Status: Some(TicketClosed)}) // nothing new
	w.message(receiveMessageIn{inboundCall: inboundCall{Delivery: "2"}, From: "x", Text: "c", ThreadID: &thread})
	w.message(receiveMessageIn{inboundCall: inboundCall{Delivery: "2"}, From: "x", Text: "c", ThreadID: &thread}) // a repeat
	deal := decode[Deal](w, w.run(&w.ann, Deals.Create, &CreateDealIn{Name: "d"}).Body)
	w.run(&w.ann, Deals.Patch, &PatchDealIn{ID: string(deal.ID), DealFields: DealFields{Stage: Some("won")}})
	w.run(&w.ann, Deals.Patch, &PatchDealIn{ID: string(deal.ID), DealFields: DealFields{Stage: Some("won")}}) // nothing new
	w.run(&w.ann, Deals.Delete, &RecordIn{ID: string(deal.ID)})
	var got []string
	for _, e := range w.events() {
		line := e.Type
		for field, c := range e.Changes {
			line += fmt.Sprintf(" %s:%v>%v", field, c.From, c.To)
		}
		got = append(got, line)
	}
	want := []string{
		"ticket.created", "ticket.message", "ticket.message", "ticket.updated status:open>closed", "ticket.message", "ticket.updated status:closed>open",
		"deal.created", "deal.updated stage:new>won", "deal.deleted",
	}
	if !slices.Equal(got, want) {
		t.Errorf("events\n%q, want\n%q", got, want)
	}
	w.verify()
}

func TestCreateTicketMessage_HasABound(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	id := w.message(receiveMessageIn{inboundCall: inboundCall{Delivery: "1"}, From: "x", Text: "a"}).TicketID
	w.run(&w.ann, NewCommand[None, None]("fill", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		row, err := recordIn(&tx.View, &tickets, string(id), "ticket")
		if err != nil {
			return Reply{}, err
		}
		full := row.Value
		full.MessageCount = maxTicketMessages
		_, err = tickets.Update(tx, row, &full)
		return Reply{}, err
	}), &None{})
	_, _, err := w.try(&w.ann, CreateTicketMessage, &CreateTicketMessageIn{TicketID: string(id), Body: "b"})
	wantCode(t, err, CodeConflict)
}

// After any operations every list agrees with a simple model.
func TestTickets_ListsAgreeWithAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newIssueFixture(r)
		var sources []string
		for range 2 {
			c := decode[SupportChannel](w, w.run(&w.ann, CreateChannel, &CreateChannelIn{Type: ChannelAPI, Name: "c", IsActive: true}).Body)
			sources = append(sources, string(c.ID))
		}
		sources = append(sources, "mail")
		var model []Ticket // newest first
		find := func(id TicketID) *Ticket {
			return &model[slices.IndexFunc(model, func(t Ticket) bool { return t.ID == id })]
		}
		for call := range rapid.IntRange(1, 25).Draw(r, "steps") {
			switch rapid.SampledFrom([]string{"message", "message", "patch", "answer"}).Draw(r, "step") {
			case "message":
				source, thread := rapid.SampledFrom(sources).Draw(r, "source"), rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "thread")
				in := receiveMessageIn{inboundCall: inboundCall{Source: source, Delivery: strconv.Itoa(call)}, From: "x", Text: "x", Fresh: rapid.Bool().Draw(r, "fresh")}
				at := -1
				if thread != "" {
					in.ThreadID = &thread
					at = slices.IndexFunc(model, func(t Ticket) bool {
						return t.Source == source && t.ThreadID != nil && *t.ThreadID == thread && (!in.Fresh || t.Status != TicketClosed)
					})
				}
				a := w.message(in)
				if at < 0 {
					made := Ticket{ID: a.TicketID, Source: source, ThreadID: in.ThreadID, Status: TicketOpen, MessageCount: 1}
					if source != "mail" {
						id := ChannelID(source)
						made.ChannelID = &id
					}
					model = slices.Insert(model, 0, made)
					continue
				}
				if model[at].ID != a.TicketID {
					r.Fatalf("the message went to %s instead of %s", a.TicketID, model[at].ID)
				}
				model[at].Status = TicketOpen
				model[at].MessageCount++
			case "patch":
				if len(model) == 0 {
					continue
				}
				m := find(rapid.SampledFrom(model).Draw(r, "ticket").ID)
				m.Status = rapid.SampledFrom([]TicketStatus{TicketOpen, TicketPending, TicketClosed}).Draw(r, "status")
				w.run(&w.ann, PatchTicket, &PatchTicketIn{ID: string(m.ID), Status: Some(m.Status)})
			case "answer":
				if len(model) == 0 {
					continue
				}
				m := find(rapid.SampledFrom(model).Draw(r, "ticket").ID)
				m.MessageCount++
				w.run(&w.ann, CreateTicketMessage, &CreateTicketMessageIn{TicketID: string(m.ID), Body: "b"})
			}
		}
		in := ListTicketsIn{
			Status:    rapid.SampledFrom([]TicketStatus{"", TicketOpen, TicketPending, TicketClosed}).Draw(r, "filter"),
			ChannelID: rapid.SampledFrom(append(sources, "")).Draw(r, "channel"),
			Limit:     rapid.IntRange(1, 5).Draw(r, "limit"),
		}
		var want, got []string
		for _, m := range model {
			if (in.Status == "" || m.Status == in.Status) && (in.ChannelID == "" || m.ChannelID != nil && string(*m.ChannelID) == in.ChannelID) {
				want = append(want, fmt.Sprint(m.ID, m.Status, m.MessageCount))
			}
		}
		for more := true; more; more = in.Cursor != "" {
			reply, err := w.ask(&w.ann, ListTickets, &in)
			if err != nil {
				r.Fatal(err)
			}
			page := decode[TicketList](w, reply.Body)
			for _, m := range page.Tickets {
				got = append(got, fmt.Sprint(m.ID, m.Status, m.MessageCount))
			}
			in.Cursor = page.NextCursor
		}
		if !slices.Equal(got, want) {
			r.Fatalf("listed %v, want %v", got, want)
		}
		w.verify()
	})
}
