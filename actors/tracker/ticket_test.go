package tracker

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// message has somebody outside write to the world's workspace.
func (w *issueWorld) message(in receiveMessageIn) InboundAnswer {
	w.Helper()
	if in.Source == "" {
		in.Source = "mail"
	}
	caller := inboundCaller(in.Source)
	return decode[InboundAnswer](w, w.run(&caller, receiveMessageOp, &in).Body)
}

func (w *issueWorld) ticket(id TicketID) Ticket {
	w.Helper()
	reply, err := w.ask(&w.ann, TicketByID, &RecordIn{ID: string(id)})
	if err != nil {
		w.Fatal(err)
	}
	return decode[Ticket](w, reply.Body)
}

func TestPatchTicket_LinksWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
	hidden := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	seen := w.create(CreateIssueIn{})
	id := w.message(receiveMessageIn{inboundCall: inboundCall{"", "1"}, From: "x", Text: "x"}).TicketID
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
	// Sending it back is no look at it.
	if err := link(&w.gus, hidden.ID); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.try(&w.ann, CreateTicketIssue, &TicketIssueIn{TicketID: string(id)})
	wantCode(t, err, CodeConflict)
	w.run(&w.gus, PatchTicket, &PatchTicketIn{ID: string(id), IssueID: Opt[IssueID]{Set: true, Null: true}})
	made := decode[CreatedIssue](t, w.run(&w.gus, CreateTicketIssue, &TicketIssueIn{TicketID: string(id), TeamKey: Some("WEB"), Status: Some(StatusTodo)}).Body)
	if made.Title != "x" || made.TeamID != w.web || made.Status != StatusTodo || *w.ticket(id).IssueID != made.ID {
		t.Errorf("%+v", made)
	}
	w.verify()
}

func TestTickets_TellWhatHappens(t *testing.T) {
	t.Parallel()
	w := newIssueWorld(t)
	thread := "t"
	id := w.message(receiveMessageIn{inboundCall: inboundCall{"", "1"}, From: "x", Text: "a", ThreadID: &thread}).TicketID
	w.run(&w.ann, CreateTicketMessage, &CreateTicketMessageIn{TicketID: string(id), Body: "b", Direction: Outbound})
	w.run(&w.ann, PatchTicket, &PatchTicketIn{ID: string(id), Status: Some(TicketClosed)})
	w.run(&w.ann, PatchTicket, &PatchTicketIn{ID: string(id), Status: Some(TicketClosed)}) // nothing new
	w.message(receiveMessageIn{inboundCall: inboundCall{"", "2"}, From: "x", Text: "c", ThreadID: &thread})
	w.message(receiveMessageIn{inboundCall: inboundCall{"", "2"}, From: "x", Text: "c", ThreadID: &thread}) // a repeat
	deal := decode[Deal](w, w.run(&w.ann, CreateDeal, &CreateDealIn{Name: "d"}).Body)
	w.run(&w.ann, PatchDeal, &PatchDealIn{ID: string(deal.ID), DealFields: DealFields{Stage: Some("won")}})
	w.run(&w.ann, PatchDeal, &PatchDealIn{ID: string(deal.ID), DealFields: DealFields{Stage: Some("won")}}) // nothing new
	w.run(&w.ann, DeleteDeal, &RecordIn{ID: string(deal.ID)})
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
	w := newIssueWorld(t)
	id := w.message(receiveMessageIn{inboundCall: inboundCall{"", "1"}, From: "x", Text: "a"}).TicketID
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

// Whatever happens to tickets, every list shows those that a plain slice would.
func TestTickets_ListsAgreeWithAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newIssueWorld(r)
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
				in := receiveMessageIn{inboundCall: inboundCall{source, strconv.Itoa(call)}, From: "x", Text: "x", Fresh: rapid.Bool().Draw(r, "fresh")}
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
