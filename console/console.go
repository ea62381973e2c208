package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"sync"
)

//go:embed dist
var dist embed.FS

// PageName is the file of a folder that browsers open; it loads the others.
const PageName = "index.html"

// File is a file in the form in which it is sent.
type File struct {
	Name string
	// Type is its Content-Type.
	Type string
	Body []byte
	// ETag names the content, with its quotes.
	ETag string
	// Lasting is set if the name changes whenever the content does.
	Lasting bool
}

// Folder is a page with the files that it loads.
type Folder struct {
	Page  *File
	Files []*File
}

// App returns the console.
func App() (*Folder, error) { return app() }

// Docs returns the reference of the API.
func Docs() (*Folder, error) { return docs() }

var (
	app  = sync.OnceValues(func() (*Folder, error) { return read("dist/app") })
	docs = sync.OnceValues(func() (*Folder, error) { return read("dist/docs") })
)

// types are the types of files by the ends of their names.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

func read(folder string) (*Folder, error) {
	entries, err := fs.ReadDir(dist, folder)
	if err != nil {
		return nil, fmt.Errorf("read the console's files: %w", err)
	}
	f := &Folder{}
	for _, entry := range entries {
		body, err := dist.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read the console's files: %w", err)
		}
		end := path.Ext(entry.Name())
		kind := types[end]
		if kind == "" {
			return nil, fmt.Errorf("read the console's files: %s has no known type", entry.Name())
		}
		sum := sha256.Sum256(body)
		file := &File{
			Name: entry.Name(), Type: kind, Body: body, ETag: `"` + hex.EncodeToString(sum[:12]) + `"`,
			Lasting: end == ".js" || end == ".css",
		}
		if file.Name == PageName {
			f.Page = file
			continue
		}
		f.Files = append(f.Files, file)
	}
	if f.Page == nil {
		return nil, fmt.Errorf("read the console's files: %s has no %s; make console builds it", folder, PageName)
	}
	return f, nil
}
