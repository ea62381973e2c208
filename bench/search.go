package bench

import "math/rand/v2"

// searched are the ranks of the words that searches ask for: content words, of
// which each is in some hundreds to thousands of 100,000 issues.
const searchedFrom, searchedTo = 150, 1500

// searches gives requests for the newest issues with some words.
func searches(w *world, connection, words int) func() []byte {
	random := rand.New(rand.NewPCG(textSeed, uint64(connection)))
	requests := make([][]byte, 256)
	for i := range requests {
		query := ""
		for n := range words {
			if n > 0 {
				query += "%20"
			}
			query += vocabulary().words[searchedFrom+random.IntN(searchedTo-searchedFrom)]
		}
		requests[i] = request("GET", w.host, "/workspaces/"+w.read.id+"/issues?limit=50&search="+query, w.read.token, "")
	}
	n := connection
	return func() []byte {
		n++
		return requests[n%len(requests)]
	}
}

// searchOne and searchTwo search the filled workspace.
var searchOne = scenario{
	name: "search", about: "search for a word, 50 issues",
	status: 200, filled: true,
	requests: func(w *world, connection int) func() []byte { return searches(w, connection, 1) },
}

var searchTwo = scenario{
	name: "search-two", about: "search for two words, 50 issues",
	status: 200, filled: true, rateTarget: 6000,
	requests: func(w *world, connection int) func() []byte { return searches(w, connection, 2) },
}
