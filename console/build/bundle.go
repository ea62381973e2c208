package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// pages are the folders of dist: the page that browsers open, and the entry of its scripts.
var pages = []struct{ folder, html, entry, base string }{
	{"app", "index.html", "src/main.tsx", "/console/"},
	{"docs", "docs.html", "docs/docs.ts", "/docs/"},
}

// viewer is the viewer of the API's description. It is used as its makers ship it.
const viewer = "vendor/rapidoc/dist/rapidoc-min.js"

// bundle makes the files of dist, by their slash-separated names, from the sources in web.
func bundle(web string) (map[string][]byte, error) {
	root, err := filepath.Abs(web)
	if err != nil {
		return nil, fmt.Errorf("bundle the console: %w", err)
	}
	files := map[string][]byte{}
	for _, page := range pages {
		entry, err := compile(root, page.folder, page.entry, page.base, files)
		if err != nil {
			return nil, err
		}
		if page.folder == "docs" {
			if entry.viewer, err = copyViewer(root, files); err != nil {
				return nil, err
			}
		}
		html, err := os.ReadFile(filepath.Join(root, page.html))
		if err != nil {
			return nil, fmt.Errorf("read the page: %w", err)
		}
		if files[page.folder+"/index.html"], err = entry.fill(html, page.base); err != nil {
			return nil, fmt.Errorf("%s: %w", page.html, err)
		}
	}
	if files["app/licenses.txt"], err = licenses(root); err != nil {
		return nil, err
	}
	return files, nil
}

// entry names the files that a page loads at once.
type entry struct {
	script, style, viewer string
	// preloads are the chunks that the script imports.
	preloads []string
}

// compile bundles one entry with esbuild. Names carry a hash of the content, and pages that
// are loaded when they are first shown are chunks of their own.
func compile(root, folder, source, base string, files map[string][]byte) (*entry, error) {
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: root, EntryPoints: []string{source}, Outdir: filepath.Join(root, "out"), PublicPath: base,
		EntryNames: "[name]-[hash]", ChunkNames: "[name]-[hash]", AssetNames: "[name]-[hash]",
		Bundle: true, Splitting: true, Format: api.FormatESModule, Platform: api.PlatformBrowser, Target: api.ES2022,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", NodePaths: []string{filepath.Join(root, "vendor")},
		MainFields: []string{"module", "main"}, Conditions: []string{"module"}, Charset: api.CharsetUTF8,
		Define: map[string]string{"process.env.NODE_ENV": `"production"`},
		Write:  false, Metafile: true, LogLevel: api.LogLevelSilent,
	})
	if len(result.Errors) > 0 {
		return nil, errors.New(strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage}), ""))
	}
	e := &entry{}
	for _, file := range result.OutputFiles {
		name := filepath.Base(file.Path)
		if _, taken := files[folder+"/"+name]; taken {
			return nil, fmt.Errorf("two files of %s have the name %s", folder, name)
		}
		files[folder+"/"+name] = file.Contents
	}
	if err := e.read(result.Metafile, source); err != nil {
		return nil, err
	}
	return e, nil
}

// copyViewer adds the viewer under a name with its hash.
func copyViewer(root string, files map[string][]byte) (string, error) {
	body, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(viewer)))
	if err != nil {
		return "", fmt.Errorf("read the viewer: %w", err)
	}
	sum := sha256.Sum256(body)
	name := "rapidoc-" + base32.StdEncoding.EncodeToString(sum[:5]) + ".js"
	files["docs/"+name] = body
	return name, nil
}

// The lines of a page that the names of its files replace.
const (
	styleMark  = `<link rel="stylesheet" href="app.css">`
	scriptMark = `<script type="module" src="app.js"></script>`
)

// fill puts the names of the files in place of the marks in a page.
func (e *entry) fill(html []byte, base string) ([]byte, error) {
	var styles, scripts strings.Builder
	fmt.Fprintf(&styles, `<link rel="stylesheet" href="%s%s">`, base, e.style)
	for _, name := range e.preloads {
		fmt.Fprintf(&styles, `<link rel="modulepreload" href="%s%s">`, base, name)
	}
	if e.viewer != "" {
		fmt.Fprintf(&scripts, `<script type="module" src="%s%s"></script>`, base, e.viewer)
	}
	fmt.Fprintf(&scripts, `<script type="module" src="%s%s"></script>`, base, e.script)
	for _, put := range [...][2]string{{styleMark, styles.String()}, {scriptMark, scripts.String()}} {
		if bytes.Count(html, []byte(put[0])) != 1 {
			return nil, fmt.Errorf("want %s once", put[0])
		}
		html = bytes.Replace(html, []byte(put[0]), []byte(put[1]), 1)
	}
	return html, nil
}

// licenses joins the licenses of what is vendored.
func licenses(root string) ([]byte, error) {
	found, err := filepath.Glob(filepath.Join(root, "vendor", "*", "LICENSE*"))
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no licenses in vendor: %w", err)
	}
	slices.Sort(found)
	var b bytes.Buffer
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a license: %w", err)
		}
		fmt.Fprintf(&b, "%s\n\n%s\n\n", filepath.Base(filepath.Dir(path)), bytes.TrimSpace(text))
	}
	return b.Bytes(), nil
}
