package transfer

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A move that fails opens the old place only if the new cluster says that the workspace has not begun
// there, and will not: both would take changes otherwise. A refusal does not say so if an earlier try
// of the same request had no answer, and another run may have moved the workspace meanwhile.
func TestMove_OpensTheOldPlaceOnlyIfNothingHasBegun(t *testing.T) {
	t.Parallel()
	const lock, unlock = "PUT /read-only", "DELETE /read-only"
	const begin, end, drop, dropAny = "POST /arrival", "POST /arrival/a/end", "DELETE /arrival/a", "DELETE /arrival"
	const ours, arrived = `{"arrival":{"id":"a","from":"old","state":"running"}}`, `{"arrival":{"id":"a","from":"old","state":"done"}}`
	const others, othersArrived = `{"arrival":{"id":"b","from":"old","state":"running"}}`, `{"arrival":{"id":"b","from":"old","state":"done"}}`
	const stays = "may have begun"
	proxy := func(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }
	for name, c := range map[string]struct {
		end      []int  // answers to the tries of the end; 0: the connection breaks
		lost     bool   // the arrival is not there in the closing pass
		drop     []int  // answers to the tries of the arrival's end; 0: the connection breaks
		arrival  string // what the new cluster shows by then
		proxied  bool   // a proxy answers instead of the new cluster by then
		noPath   bool   // the new cluster knows no path for the end of one arrival
		fails    string
		old, new []string
	}{
		"the end took effect, and its repeat is refused": {
			end: []int{0, 401}, drop: []int{409},
			fails: stays, old: []string{lock}, new: []string{begin, end, end, drop},
		},
		"the end took effect, and its repeat is a conflict": {
			end: []int{502, 409}, drop: []int{409},
			fails: stays, old: []string{lock}, new: []string{begin, end, end, drop},
		},
		"the end had no effect, and its repeat is refused": {
			end: []int{0, 409}, drop: []int{204},
			fails: "409", old: []string{lock, unlock}, new: []string{begin, end, end, drop},
		},
		"the new cluster can't be asked any more": {
			end: []int{0, 403}, drop: []int{403},
			fails: stays, old: []string{lock}, new: []string{begin, end, end, drop},
		},
		"a proxy takes the new cluster's place": {
			end: []int{404}, drop: []int{404}, proxied: true,
			fails: stays, old: []string{lock}, new: []string{begin, end, drop},
		},
		"the end had no answer, and the arrival is gone": {
			end: []int{0, 404}, drop: []int{404},
			fails: stays, old: []string{lock}, new: []string{begin, end, end, drop},
		},
		"the arrival is gone": {
			end: []int{404}, drop: []int{404},
			fails: "404", old: []string{lock, unlock}, new: []string{begin, end, drop},
		},
		"the new cluster can't answer at first": {
			end: []int{409}, drop: []int{503, 204},
			fails: "409", old: []string{lock, unlock}, new: []string{begin, end, drop, drop},
		},
		"another run is under way": {
			lost: true, drop: []int{404}, arrival: others,
			fails: stays, old: []string{lock}, new: []string{begin, drop},
		},
		"another run has moved the workspace": {
			lost: true, drop: []int{404}, arrival: othersArrived,
			fails: stays, old: []string{lock}, new: []string{begin, drop},
		},
		"an older cluster": {
			end: []int{409}, drop: []int{204}, arrival: ours, noPath: true,
			fails: "409", old: []string{lock, unlock}, new: []string{begin, end, drop, dropAny},
		},
		"an older cluster where the end took effect": {
			end: []int{0, 409}, drop: []int{204}, arrival: arrived, noPath: true,
			fails: stays, old: []string{lock}, new: []string{begin, end, end, drop},
		},
		"an older cluster where another run is under way": {
			lost: true, drop: []int{204}, arrival: others, noPath: true,
			fails: stays, old: []string{lock}, new: []string{begin, drop},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked bool // the arrival's end was asked for
			next := func(w http.ResponseWriter, answers *[]int) {
				status := (*answers)[0]
				*answers = (*answers)[1:]
				switch {
				case status == 0:
					panic(http.ErrAbortHandler)
				case status == http.StatusNoContent:
					w.WriteHeader(status)
				case status == http.StatusNotFound && c.proxied:
					proxy(w)
				default:
					refuse(w, status)
				}
			}
			from, to := &fakeCluster{id: "old"}, &fakeCluster{id: "new"}
			from.rows = func(w http.ResponseWriter, after string) { sendRows(w, after, "rows", "more") }
			to.end = func(w http.ResponseWriter) { next(w, &c.end) }
			to.show = func(w http.ResponseWriter) bool {
				if !asked {
					return false
				}
				if to.arrival = c.arrival; c.proxied {
					proxy(w)
				}
				return c.proxied
			}
			to.drop = func(w http.ResponseWriter, path string) {
				asked = true
				if c.noPath && path != dropAny[len("DELETE "):] {
					refuse(w, http.StatusNotFound)
					return
				}
				next(w, &c.drop)
			}
			to.refuses = func(r *http.Request) bool { return c.lost && r.URL.Query().Get("n") == "2" }
			moved, err := runMove(t, t.Context(), from, to, 0)
			if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), stays) != (c.fails == stays) {
				t.Errorf("%+v, %v", moved, err)
			}
			if !slices.Equal(from.changes, c.old) || !slices.Equal(to.changes, c.new) {
				t.Errorf("the old cluster was asked for %q, and the new one for %q", from.changes, to.changes)
			}
		})
	}
}

// A run that finds another one in its place does not begin anew: it would take that one's place in
// turn.
func TestMove_LeavesAnotherRunAlone(t *testing.T) {
	t.Parallel()
	for _, closing := range []bool{false, true} {
		from, to := &fakeCluster{id: "old"}, &fakeCluster{id: "new"}
		from.rows = func(w http.ResponseWriter, after string) {
			switch {
			case after != "":
				refuse(w, http.StatusConflict) // the log does not reach back
			case closing:
				sendRows(w, after, "rows")
			default:
				sendRows(w, after, strings.Repeat("rows", settled)) // too much to close the workspace
			}
		}
		to.drop = func(w http.ResponseWriter, _ string) {
			to.arrival = `{"arrival":{"id":"b","from":"old","state":"running"}}`
			refuse(w, http.StatusNotFound)
		}
		moved, err := runMove(t, t.Context(), from, to, 0)
		if err == nil || !strings.Contains(err.Error(), "another run") || strings.Contains(err.Error(), "read-only") != closing {
			t.Errorf("closing %t: %+v, %v", closing, moved, err)
		}
		if slices.Contains(from.changes, "DELETE /read-only") || !slices.Equal(to.changes, []string{"POST /arrival", "DELETE /arrival/a"}) {
			t.Errorf("closing %t: the old cluster was asked for %q, and the new one for %q", closing, from.changes, to.changes)
		}
	}
}

// The old place is opened only from the mode that was there before the new cluster was asked: a run
// that has closed it since counts on it. A repeat of the opening finds nothing to open.
func TestMove_OpensItsOwnModeAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string // of the mode that another run has begun meanwhile
		before bool   // it has begun before the mode was read
		cut    bool   // the answer to the first try is lost
		left   string
	}{
		"its own mode":                  {},
		"the answer is lost":            {cut: true},
		"another run closes it":         {reason: movingTo + "there", left: movingTo + "there"},
		"another run has moved it":      {reason: movedTo + "there", left: movedTo + "there"},
		"the operator has closed it so": {reason: "Disks are replaced.", left: "Disks are replaced."},
		"another move, before":          {reason: movingTo + "elsewhere", before: true, left: movingTo + "elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := &fakeCluster{id: "old", cutEnd: c.cut}, &fakeCluster{id: "new"}
			from.rows = func(w http.ResponseWriter, after string) { sendRows(w, after, "rows", "more") }
			begin := func() {
				if c.reason != "" {
					from.mode, from.modes = c.reason, from.modes+1
				}
			}
			if !c.before {
				from.reclose = begin
			}
			to.end = func(w http.ResponseWriter) {
				if c.before {
					begin()
				}
				refuse(w, http.StatusConflict)
			}
			moved, err := runMove(t, t.Context(), from, to, 0)
			if err == nil || !strings.Contains(err.Error(), "409") || strings.Contains(err.Error(), "another run") != (c.left != "" && !c.before) {
				t.Errorf("%+v, %v", moved, err)
			}
			if from.mode != c.left {
				t.Errorf("the old place is read-only by %q", from.mode)
			}
		})
	}
}
