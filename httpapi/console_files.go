package httpapi

import (
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"switchyard/console"
)

// consolePolicy isolates the console's pages. They load scripts and styles of the service
// alone, no text becomes a script, and no page of others frames them.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; font-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify"

// docsPolicy isolates the API's reference. Its viewer styles elements by attributes, which
// style-src has to allow.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Headers of pages and of what they load.
var (
	headerReferrer     = []byte("Referrer-Policy")
	headerOpener       = []byte("Cross-Origin-Opener-Policy")
	headerResource     = []byte("Cross-Origin-Resource-Policy")
	headerFrames       = []byte("X-Frame-Options")
	valueNoReferrer    = []byte("no-referrer")
	valueSameOrigin    = []byte("same-origin")
	valueDeny          = []byte("DENY")
	valuePublicLasting = []byte("public, max-age=31536000, immutable")
)

// site is a folder of files with a page.
type site struct {
	prefix string // "/console"
	policy []byte
	page   *siteFile
	files  map[string]*siteFile // by the path's rest behind prefix and slash
}

type siteFile struct {
	*console.File
	etag     []byte
	constant *constantBody
}

func newSite(prefix string, folder *console.Folder, policy string) *site {
	s := &site{prefix: prefix, policy: []byte(policy), files: map[string]*siteFile{}}
	made := func(f *console.File) *siteFile {
		return &siteFile{File: f, etag: []byte(f.ETag), constant: &constantBody{plain: f.Body, small: true}}
	}
	s.page = made(folder.Page)
	for _, f := range folder.Files {
		s.files[f.Name] = made(f)
	}
	return s
}

// finds returns the file at a path: one of the folder's or, where every other path is one of
// the page's own, the page. It returns nil for paths outside of the folder, and for names of
// files that are not there.
func (s *site) finds(path []byte, pages bool) *siteFile {
	rest, below := strings.CutPrefix(string(path), s.prefix)
	switch {
	case !below:
		return nil
	case rest == "":
		return s.page
	case rest[0] != '/':
		return nil
	}
	if f := s.files[rest[1:]]; f != nil {
		return f
	}
	// Files lie in the folder itself; further down a point may be part of an id.
	if !pages || strings.Contains(rest, ".") && strings.Count(rest, "/") == 1 {
		return nil
	}
	return s.page
}

// place returns the place of a console's path that no route has. The files are looked for
// after the routes, so that requests to the API pay nothing for them.
func (s *Server) place(t *target) *routedPath {
	for _, at := range s.sites {
		if f := at.site.finds(t.path, at.pages); f != nil {
			return &at.place
		}
	}
	return nil
}

// servedSite is a site with its route.
type servedSite struct {
	site  *site
	pages bool // the site's page has every path below it that is no file
	place routedPath
}

// newSites returns the sites of a server: the API's reference, and the console.
func (s *Server) newSites(docs *site) []*servedSite {
	sites := []*servedSite{{site: docs}}
	if s.console != nil {
		sites = append(sites, &servedSite{site: s.console.pages, pages: true})
	}
	for _, at := range sites {
		path := at.site.prefix + "/{path...}"
		rt := &route{
			Route: Route{Method: fasthttp.MethodGet, Path: path}, observers: s.metrics.observers(fasthttp.MethodGet, path),
			label: fasthttp.MethodGet + " " + path, workspaceAt: -1, maxBody: defaultMaxBody,
		}
		rt.direct = func(x *exchange) error {
			at.site.respond(x, at.site.finds(x.target.path, at.pages))
			return nil
		}
		at.place.routes = []*route{rt}
		at.place.allow = at.place.methods()
	}
	return sites
}

// respond answers with a file. Files whose names change with their content are kept for good;
// the page is asked for each time, which its ETag makes cheap.
func (s *site) respond(x *exchange, f *siteFile) {
	x.respondBytes(f.Type, f.Body)
	header := &x.ctx.Response.Header
	header.SetCanonical(headerETag, f.etag)
	header.SetCanonical(headerResource, valueSameOrigin)
	header.SetCanonical(headerReferrer, valueNoReferrer)
	if f.Lasting {
		header.SetCanonical(headerCacheControl, valuePublicLasting)
	}
	if f == s.page {
		header.SetCanonical(headerContentPolicy, s.policy)
		header.SetCanonical(headerOpener, valueSameOrigin)
		header.SetCanonical(headerFrames, valueDeny)
	}
	x.constant = f.constant
	if strings.Contains(string(x.ctx.Request.Header.Peek("If-None-Match")), f.ETag) {
		x.ctx.Response.SetStatusCode(fasthttp.StatusNotModified)
		x.ctx.Response.SetBodyRaw(nil)
	}
}

// newDocs returns the site of the API's reference.
func newDocs() (*site, error) {
	files, err := console.Docs()
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	return newSite("/docs", files, docsPolicy), nil
}
