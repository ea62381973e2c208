package bench

import "math/rand/v2"

// get reads single issues at random. Its limit is an HTTP server that answers the
// same number of bytes and does nothing else.
var get = scenario{
	name: "get", about: "get an issue",
	limit: emptyLimit, target: 0.6, status: 200, filled: true,
	requests: func(w *world, connection int) func() []byte {
		// Requests are made beforehand, but not for every issue on every connection.
		const each = 512
		random := rand.New(rand.NewPCG(uint64(connection), 7))
		requests := make([][]byte, min(each, len(w.ids)))
		for i := range requests {
			id := w.ids[random.IntN(len(w.ids))]
			requests[i] = request("GET", w.host, "/workspaces/"+w.read.id+"/issues/"+id, w.read.token, "")
		}
		n := 0
		return func() []byte {
			n++
			return requests[n%len(requests)]
		}
	},
}
