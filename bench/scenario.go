package bench

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// scenario is one path through the service under load.
type scenario struct {
	name string
	// about says in a few words what a request does.
	about string
	// limit names the result whose rate this one is judged by, at the same number of
	// connections; empty when there is none. The ratio should reach target.
	limit  string
	target float64
	status int
	// hooked scenarios need the webhooks and their receiver.
	hooked bool
	// filled scenarios need the read workspace's issues, those with work the issues
	// that sessions are about.
	filled, work bool
	// prepare makes what else is needed; it is asked before each measurement.
	prepare  func(ctx context.Context, w *world) error
	requests func(w *world, connection int) func() []byte
	// beside begins what goes on while it is measured; the function it returns ends that,
	// and says what there was. nil: nothing does.
	beside func(ctx context.Context, w *world) (func() string, error)
	// talks stands in for status and requests where they depend on answers.
	talks func(w *world, connection int) talk
	// alone scenarios measure themselves, once a run, and have figures and no rate.
	alone func(ctx context.Context, r *run) error
}

// talk is a connection's requests where each follows from the answers before it.
type talk struct {
	next  func() (request []byte, status int) // and what a good answer has
	heard func(body []byte) error             // sees every good answer
}

// scenarios in the order they run in. One file each.
var scenarios = []scenario{
	createMany, createHot, createFollowed, createHooked, cycle, cycleHot, get, poll, listSmall, list, similar, analytics, createLarge, dispatchClaim, waiting,
}

// Names of the limits measured beside the scenarios.
const (
	emptyLimit  = "limit: empty handler"
	pebbleLimit = "limit: pebble sync"
)

// creates gives requests that create issues, in one workspace after another.
// Every connection has its own, and numbers them in place.
func creates(in []workspace, host string, connection int) func() []byte {
	const digits = "000000000000"
	requests := make([][]byte, len(in))
	at := make([]int, len(in))
	description := strings.Repeat("A car rolls over the hump and finds its track. ", 6)
	for i, w := range in {
		body := fmt.Sprintf(`{"title":"Car %s waits at the hump","description":%q,"priority":"high","assigneeId":"crew-%d","projectId":"yard","labelIds":["bench","load"]}`,
			digits, description, connection%8)
		requests[i] = request("POST", host, "/workspaces/"+w.id+"/issues", w.token, body)
		at[i] = bytes.Index(requests[i], []byte(digits))
	}
	n, number := connection, int64(connection)*1_000_000_000
	return func() []byte {
		i := n % len(requests)
		n++
		number++
		spot := requests[i][at[i] : at[i]+len(digits)]
		copy(spot, digits)
		var text [20]byte
		s := strconv.AppendInt(text[:0], number, 10)
		copy(spot[len(spot)-len(s):], s)
		return requests[i]
	}
}
