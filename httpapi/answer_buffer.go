package httpapi

import "sync"

// answerBuffer is a buffer in which the body of an answer is built, and from which it is sent.
// fasthttp would keep a response's buffer for as long as the connection lasts. A client with
// many connections could have an answer of some MiB in each, and then send nothing. So the
// response has the bytes only, and the buffer is lent to the connection until the client's
// next request is read, or the connection ends.
type answerBuffer struct{ bytes []byte }

// answerBuffers has the buffers that are not in use. The garbage collector frees them.
type answerBuffers struct{ pool sync.Pool }

func (p *answerBuffers) get() *answerBuffer {
	if b, ok := p.pool.Get().(*answerBuffer); ok {
		return b
	}
	return new(answerBuffer)
}

// put takes a buffer back that nobody uses; nil is none.
func (p *answerBuffers) put(b *answerBuffer) {
	if b == nil {
		return
	}
	if cap(b.bytes) > keptBuffer {
		b.bytes = nil
	}
	p.pool.Put(b)
}

// lend returns an empty buffer for the request's answer.
func (s *Server) lend(x *exchange) []byte {
	if x.answer == nil {
		x.answer = s.answers.get()
	}
	return x.answer.bytes[:0]
}

// sendLent has the answer's body sent from the request's buffer. body was built in it, or
// replaces it.
func (x *exchange) sendLent(body []byte) {
	if x.answer == nil {
		x.answer = new(answerBuffer)
	}
	x.answer.bytes = body
	x.ctx.Response.SetBodyRaw(body)
}
