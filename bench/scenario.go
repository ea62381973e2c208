package bench

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
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
	// measure is there for what is not the rate of requests and their answers: it adds
	// its results itself. rateTarget and p50Target are what they should reach.
	measure    func(ctx context.Context, r *run, s *scenario, connections int) error
	rateTarget float64
	p50Target  time.Duration
	status     int
	// filled scenarios need the read workspace's issues, those with work the issues
	// that sessions are about.
	filled, work bool
	// prepare makes what else is needed; it is asked before each measurement.
	prepare  func(ctx context.Context, w *world) error
	requests func(w *world, connection int) func() []byte
	// beside begins what goes on while it is measured, and it is judged by its own rate
	// without that; the function it returns ends that,
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
	createMany, createHot, createFollowed, createHooked, deliver, commitToDelivery, cycle, cycleHot, get, poll, listSmall, list, similar, analytics, createLarge, dispatchClaim, waiting,
}

// Names of the limits measured beside the scenarios.
const (
	emptyLimit  = "limit: empty handler"
	pebbleLimit = "limit: pebble sync"
)

// creates gives requests that create issues, in one workspace after another.
// Every connection has its own, and numbers them in place.
func creates(in []workspace, host string, connection int) func() []byte {
	digits := strings.Repeat("0", numberDigits)
	requests := make([][]byte, len(in))
	at := make([]int, len(in))
	description := strings.Repeat("A car rolls over the hump and finds its track. ", 6)
	for i, w := range in {
		body := fmt.Sprintf(`{"title":"Car %s waits at the hump","description":%q,"priority":"high","assigneeId":"crew-%d","projectId":"yard","labelIds":["bench","load"]}`,
			digits, description, connection%8)
		requests[i] = request("POST", host, "/workspaces/"+w.id+"/issues", w.token, body)
		at[i] = bytes.Index(requests[i], []byte(digits))
	}
	n, last := connection, int64(connection)*1_000_000_000
	return func() []byte {
		i := n % len(requests)
		n++
		last++
		number(requests[i][at[i]:at[i]+numberDigits], last)
		return requests[i]
	}
}

// numberDigits is how long the numbers in titles are.
const numberDigits = 12

// number writes n into the whole of spot.
func number(spot []byte, n int64) {
	var text [20]byte
	s := strconv.AppendInt(text[:0], n, 10)
	for i := range spot {
		spot[i] = '0'
	}
	copy(spot[len(spot)-len(s):], s)
}
