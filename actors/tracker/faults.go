package tracker

import "fmt"

// MaxFaults limits the faults that one answer lists, so that a hostile body can't cause
// an answer many times its size.
const MaxFaults = 256

// faultPast is the fault of a time that has to be in the future.
const faultPast = "Must lie in the future."

// Faults collects everything that is wrong with a request, for one answer. The zero
// value is ready for use; it belongs to one request.
type Faults struct {
	list    []Fault
	dropped int
	// unsure is set when a part of the request was not checked, so that dropped may be too few.
	unsure bool
	hint   string
}

// Add adds a fault at a path such as "labelIds[2]", "query.limit" or "header.If-Match";
// the empty path is the body as a whole.
func (f *Faults) Add(path, message string) {
	if len(f.list) == MaxFaults {
		f.dropped++
		return
	}
	f.list = append(f.list, Fault{Path: path, Message: message})
}

// Hint adds a text to the answer's hint, for faults whose message does not say how to
// mend them.
func (f *Faults) Hint(text string) { f.hint = " " + text }

// Empty reports whether there are no faults.
func (f *Faults) Empty() bool { return len(f.list) == 0 }

// Has reports whether there is a fault at exactly this path. A Validate method need not
// check a field that could not be read.
func (f *Faults) Has(path string) bool {
	for i := range f.list {
		if f.list[i].Path == path {
			return true
		}
	}
	return false
}

// Full reports whether the list is full, so that the caller can stop looking for
// faults. It calls Unsure then.
func (f *Faults) Full() bool { return len(f.list) == MaxFaults }

// Unsure notes that a part of the request was not checked: the answer says that there may be more faults, instead of
// their number.
func (f *Faults) Unsure() { f.unsure = true }

// Err returns nil if there are no faults, and otherwise a BAD_REQUEST that lists the
// first MaxFaults faults and says how many others there are, where all were counted.
func (f *Faults) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := f.list
	if more := f.more(); more != "" {
		list = append(list[:len(list):len(list)], Fault{Message: more})
	}
	err := BadRequest(list...)
	err.Hint += f.hint
	return err
}

// more says how many faults are not in the list; empty: none.
func (f *Faults) more() string {
	switch {
	case f.unsure && f.dropped > 0:
		return fmt.Sprintf("There are more faults, at least %d.", f.dropped)
	case f.unsure:
		return "There may be more faults."
	case f.dropped == 1:
		return "There is 1 more fault."
	case f.dropped > 0:
		return fmt.Sprintf("There are %d more faults.", f.dropped)
	}
	return ""
}
