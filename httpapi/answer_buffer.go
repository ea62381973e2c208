package httpapi

import "sync"

// answerBuffer is a buffer in which the body of an answer is built, and from which it is sent.
// fasthttp would keep a response's buffer for as long as the connection lasts. A client with
// many connections could have an answer of some MiB in each, and then send nothing. So the
// response has the bytes only, and the buffer is lent to the connection until the client's
// next request is read, or the connection ends.
type answerBuffer struct{ bytes []byte }

const (
	// keptAnswer is the largest buffer that is kept for another answer. Pages of lists take some 100 KiB.
	keptAnswer = 512 << 10
	// largeKept is the number of buffers of more than keptBuffer that are kept.
	largeKept = 16
)

// answerBuffers has the buffers that are not in use. The garbage collector frees the small ones. Large
// ones are few, and stay: while many pages are made the collector runs so often that it would free
// them all the time.
//
// Large ones are by themselves: a small answer in such a buffer would take its memory for as long
// as the client takes to read.
type answerBuffers struct {
	small sync.Pool
	large chan *answerBuffer
}

// get returns a buffer, a large one if there is one and it is asked for.
func (p *answerBuffers) get(large bool) *answerBuffer {
	if large {
		select {
		case b := <-p.large:
			return b
		default:
		}
	}
	if b, ok := p.small.Get().(*answerBuffer); ok {
		return b
	}
	return new(answerBuffer)
}

// put takes a buffer back that nobody uses; nil is none.
func (p *answerBuffers) put(b *answerBuffer) {
	switch {
	case b == nil || cap(b.bytes) > keptAnswer:
	case cap(b.bytes) > keptBuffer:
		select {
		case p.large <- b:
		default:
		}
	default:
		p.small.Put(b)
	}
}

// largeAnswers is how many small answers of a route in a row end the use of large buffers for it.
const largeAnswers = 64

// lend returns an empty buffer for the request's answer: a large one where one of the route's last answers
// was large.
func (s *Server) lend(x *exchange) []byte {
	if x.answer == nil {
		x.answer = s.answers.get(x.route.large.Load() > 0)
	}
	return x.answer.bytes[:0]
}

// sendLent has the answer's body sent from the request's buffer. body was built in it, or
// replaces it. A body that fits into a small buffer, and is much smaller than its large one, is
// copied. A larger one stays where it is: a new buffer for it would take the place of a larger one.
func (s *Server) sendLent(x *exchange, body []byte) {
	if x.answer == nil {
		x.answer = new(answerBuffer)
	}
	x.answer.bytes = body
	if cap(body) > keptBuffer && len(body) <= min(keptBuffer, cap(body)/4) {
		fits := s.answers.get(false)
		fits.bytes = append(fits.bytes[:0], body...)
		s.answers.put(x.answer)
		x.answer, body = fits, fits.bytes
		if x.conn != nil {
			s.budget.lower(x.conn, answerPart, cap(body))
		}
	}
	switch last := x.route.large.Load(); {
	case len(body) > keptBuffer && last < largeAnswers/2: // not at each answer, since all processors look at it
		x.route.large.Store(largeAnswers)
	case len(body) <= keptBuffer && last > 0:
		x.route.large.Store(last - 1)
	}
	x.ctx.Response.SetBodyRaw(body)
}
