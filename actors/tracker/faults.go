package tracker

import "fmt"

// MaxFaults bounds how many faults one answer lists, so that a hostile body can't
// be turned into an answer many times its size.
const MaxFaults = 256

// Faults collects what is wrong with a request, so that it is told all at once.
// The zero value is ready for use; it belongs to one request.
type Faults struct {
	list    []Fault
	dropped int
	hint    string
}

// Add notes a fault at a path such as "labelIds[2]", "query.limit" or
// "header.If-Match"; the empty path is the body as a whole.
func (f *Faults) Add(path, message string) {
	if len(f.list) == MaxFaults {
		f.dropped++
		return
	}
	f.list = append(f.list, Fault{Path: path, Message: message})
}

// Hint has the answer say what helps against a fault, where its message does not.
func (f *Faults) Hint(text string) { f.hint = " " + text }

// Empty tells whether nothing is wrong.
func (f *Faults) Empty() bool { return len(f.list) == 0 }

// Has tells whether a fault was noted at exactly this path; a Validate method
// need not judge a field that could not be read.
func (f *Faults) Has(path string) bool {
	for i := range f.list {
		if f.list[i].Path == path {
			return true
		}
	}
	return false
}

// Full tells whether no more faults will be listed, and looking for them is
// wasted work.
func (f *Faults) Full() bool { return len(f.list) == MaxFaults }

// Err is the error to answer with: nil when nothing is wrong, else a BAD_REQUEST
// that lists every fault, or the first MaxFaults and how many there are beyond.
func (f *Faults) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := f.list
	if f.dropped > 0 {
		list = append(list[:len(list):len(list)], Fault{Message: fmt.Sprintf("There are %d more faults.", f.dropped)})
	}
	err := BadRequest(list...)
	err.Hint += f.hint
	return err
}
