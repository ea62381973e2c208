package main

import (
	"encoding/json"
	"fmt"
	"path"
)

// metafile is the part of esbuild's metafile that says which outputs an entry loads.
type metafile struct {
	Outputs map[string]struct {
		EntryPoint string `json:"entryPoint"`
		CSSBundle  string `json:"cssBundle"`
		Imports    []struct {
			Path string `json:"path"`
			Kind string `json:"kind"`
		} `json:"imports"`
	} `json:"outputs"`
}

// read finds the files of an entry.
func (e *entry) read(text, source string) error {
	var meta metafile
	if err := json.Unmarshal([]byte(text), &meta); err != nil {
		return fmt.Errorf("read esbuild's metafile: %w", err)
	}
	for name, output := range meta.Outputs {
		if output.EntryPoint != source || path.Ext(name) != ".js" {
			continue
		}
		e.script = path.Base(name)
		if output.CSSBundle != "" {
			e.style = path.Base(output.CSSBundle)
		}
		for _, imported := range output.Imports {
			if imported.Kind == "import-statement" {
				e.preloads = append(e.preloads, path.Base(imported.Path))
			}
		}
		return nil
	}
	return fmt.Errorf("esbuild gave no script for %s", source)
}
