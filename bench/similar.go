package bench

import "math/rand/v2"

// similar asks for the issues most like one, at random.
var similar = scenario{
	name: "similar", about: "rank the issues like one by their words",
	status: 200, filled: true, rateTarget: 1000,
	requests: func(w *world, connection int) func() []byte {
		random := rand.New(rand.NewPCG(uint64(connection), 9))
		requests := make([][]byte, min(128, len(w.ids)))
		for i := range requests {
			id := w.ids[random.IntN(len(w.ids))]
			requests[i] = request("GET", w.host, "/workspaces/"+w.read.id+"/issues/"+id+"/similar", w.read.token, "")
		}
		n := 0
		return func() []byte {
			n++
			return requests[n%len(requests)]
		}
	},
}
