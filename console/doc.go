// Package console holds the pages that people use in browsers: the console, and the
// reference of the API.
//
// The sources are in web: TypeScript with Preact, styles, and under web/vendor what comes
// from npm, with its licenses and hashes. The command in build bundles them with esbuild into
// dist, which is committed and embedded here. So a node needs no files beside its binary, and
// a build of the service needs nothing but Go. DESIGN.md has the reasons.
//
// The package serves nothing: httpapi answers with the files. It has no goroutines.
package console
