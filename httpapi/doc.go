// Package httpapi is the service's HTTP side: the fasthttp server with its
// limits, the table of routes, the binding of requests to the inputs of
// operations, and the responses, errors and API description.
//
// The operations themselves, their permissions and the choice of the node that runs them
// are elsewhere, in package tracker and the Engine; this package knows them as
// *tracker.Op and the methods of Engine. Status codes, on the other hand,
// are only here: errors.go has those of failures, respond.go the others.
//
// The operator's operations on the cluster are the exception: they are declared in
// cluster.go and run by the Cluster that the server was given, on this node.
//
// The life of a request: route, request id, refusals that need no body (404, 405,
// 415, 413), admission (401, 403, 404), reading and binding the body, query,
// headers and path (400 with every fault), the operation, the response.
//
// Goroutines: fasthttp runs one per connection and every function here runs on
// it. Serve runs on its caller's until Shutdown. A request that waits for a change holds
// no goroutine; it gets a new one to continue when it has its turn, see park.go and resume_turns.go. A timer runs while requests wait
// at other nodes, see forward_gone.go. A connection with TLS is closed on a goroutine of its own, which
// Shutdown waits for, see goodbye.go.
//
// Pooled are the exchanges, one per request in progress, and the inputs of queries.
// Nothing handed to an operation points into a buffer of fasthttp or of an
// exchange; a query's Request and input are reused after Engine.Do returns.
package httpapi
