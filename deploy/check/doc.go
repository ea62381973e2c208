// Package check tests the files of deploy/ that are for Kubernetes and Prometheus. It renders the
// Helm chart with Helm's own engine for several sets of values, and decodes each object strictly
// into the types of the Kubernetes API: a field that the API does not have is an error, as is a
// field in another case.
//
// It is a module of its own, so that Helm and the Kubernetes types are no dependencies of the
// service. make deploy-check runs it. The rendered objects are kept in testdata: the tests of
// cmd/switchyard, which know the flags of the program, read them there.
package check
