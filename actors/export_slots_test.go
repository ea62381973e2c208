package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// slotTest has places for exports, and a clock.
type slotTest struct {
	t     *testing.T
	x     exports
	now   time.Time
	ended map[string]bool
}

func (b *slotTest) enter(name string, workspace int) *exportSlot {
	slot, end := b.x.enter(workspaceNumber(workspace), 4, b.now)
	if end != nil {
		end()
	}
	if slot != nil {
		b.x.onEnd(slot, func() { b.ended[name] = true })
	}
	return slot
}

// send has clients take blocks of some bytes, each within a second, for some seconds.
func (b *slotTest) send(seconds int, blocks map[*exportSlot]int) {
	for range seconds {
		for slot, bytes := range blocks {
			b.x.sends(slot, bytes, b.now)
		}
		b.now = b.now.Add(time.Second)
		for slot := range blocks {
			b.x.taken(slot, b.now)
		}
	}
}

func (b *slotTest) want(name string, slot *exportSlot, there bool, ended ...string) {
	b.t.Helper()
	if (slot != nil) != there {
		b.t.Errorf("%s has a place: %v", name, slot != nil)
	}
	for _, name := range ended {
		if !b.ended[name] {
			b.t.Errorf("%s goes on", name)
		}
		delete(b.ended, name)
	}
	for name := range b.ended {
		b.t.Errorf("%s was ended", name)
	}
}

func newSlotTest(t *testing.T) *slotTest {
	return &slotTest{t: t, now: time.Unix(1e9, 0), ended: map[string]bool{}}
}

func TestExports_LeaveAPlaceForOthers(t *testing.T) {
	t.Parallel()
	b := newSlotTest(t)
	one := b.enter("one", 1)
	b.want("one", one, true)
	b.want("one again", b.enter("one again", 1), true)
	b.want("a third of one", b.enter("a third", 1), false)
	two := b.enter("two", 2)
	b.want("two", two, true)
	b.want("two again", b.enter("two again", 2), false) // it would be the last place
	b.want("three", b.enter("three", 3), true)
	b.want("four", b.enter("four", 4), false) // nobody is slow
	b.x.leave(two)
	b.x.leave(two)
	b.want("four later", b.enter("four", 4), true)
	for _, slot := range append([]*exportSlot{one}, b.x.slots...) {
		b.x.leave(slot)
	}
	if n := len(b.x.slots); n != 0 {
		t.Errorf("%d places are taken after the end", n)
	}
	for most, want := range map[int]int{1: 1, 2: 1, 3: 1} {
		var x exports
		n := 0
		for ; n <= most; n++ {
			if slot, _ := x.enter(storage.ID{1}, most, b.now); slot == nil {
				break
			}
		}
		if n != want {
			t.Errorf("of %d places a workspace has %d, want %d", most, n, want)
		}
	}
}

func TestExports_TheSlowestMakesRoom(t *testing.T) {
	t.Parallel()
	b := newSlotTest(t)
	slow, slower, quick := b.enter("slow", 1), b.enter("slower", 1), b.enter("quick", 2)
	b.enter("new", 3)
	pace := map[*exportSlot]int{slow: exportPace - 1, slower: exportPace / 2, quick: exportPace}
	b.send(29, pace)
	b.want("four", b.enter("four", 4), false) // too early
	b.send(1, pace)
	b.want("one", b.enter("one", 1), false) // it has two
	five := b.enter("five", 4)
	b.want("five", five, true, "slower")
	b.x.leave(slower) // whose place is another's
	b.want("six", b.enter("six", 5), true, "slow")
	b.want("seven", b.enter("seven", 6), false) // the quick one stays
	// A client that takes nothing any more is slow, and was quick before.
	b.x.sends(quick, 1<<20, b.now)
	b.now = b.now.Add(exportWindow)
	b.want("seven", b.enter("seven", 6), true, "quick")
	b.x.leave(five)
	// The time in which the node makes blocks does not count.
	again := b.enter("again", 7)
	b.x.sends(again, 1, b.now)
	b.x.taken(again, b.now)
	b.now = b.now.Add(time.Hour)
	b.want("eight", b.enter("eight", 8), false)
}

// TestExport_MakesRoomForOthers has clients that take nothing hold all places.
func TestExport_MakesRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t)
		owner := tracker.Caller{Principal: tracker.Principal{Type: tracker.ActorUser, ID: "u"}, Role: tracker.RoleOwner, Level: tracker.Admin}
		workspaces := []storage.ID{y.workspace}
		for _, slug := range []string{"b", "c", "d", "e"} {
			reply, err := y.engine.Do(request(storage.ID{}), tracker.OnboardWorkspace, &tracker.NewWorkspaceIn{Name: slug, Slug: slug})
			if err != nil {
				t.Fatal(err)
			}
			id, _ := storage.ParseID(decodeBody[tracker.Onboarded](t, reply.Body).Workspace.ID)
			workspaces = append(workspaces, id)
		}
		ended := map[tracker.Lines]bool{}
		begin := func(who tracker.Caller, workspace storage.ID) (tracker.Lines, error) {
			req := request(workspace)
			req.Caller = who
			lines, err := y.engine.Export(req, tracker.ExportWorkspace, &tracker.ExportIn{})
			if err != nil {
				return nil, err
			}
			lines.(tracker.EndingLines).OnEnd(func() { ended[lines] = true })
			if _, err := lines.Next(); err != nil {
				t.Fatal(err)
			}
			return lines, nil
		}
		var all []tracker.Lines
		for _, workspace := range workspaces[:4] {
			lines, err := begin(owner, workspace)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, lines)
		}
		_, err := begin(owner, workspaces[4])
		wantOutcome(t, err, "not_applied")
		operator := tracker.Caller{Principal: tracker.OperatorPrincipal(), Level: tracker.Operator}
		for range 5 {
			lines, err := begin(operator, workspaces[4])
			if err != nil {
				t.Fatalf("the operator's export: %v", err)
			}
			all = append(all, lines)
		}
		pass(exportHeld)
		lines, err := begin(owner, workspaces[4])
		if err != nil || len(ended) != 1 {
			t.Errorf("another export: %v, %d were ended", err, len(ended))
		}
		for _, lines := range append(all, lines) {
			lines.Close()
		}
		if n := len(y.engine.exports.slots); n != 0 {
			t.Errorf("%d places are taken after the end", n)
		}
	})
}
