package main

import (
	"fmt"
	"os"

	"switchyard/httpapi"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: apidoc FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

func write(file string) error {
	text, err := reference()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // a file of the source tree
		return fmt.Errorf("write the reference: %w", err)
	}
	return nil
}

// reference returns the text of docs/api.md.
func reference() ([]byte, error) {
	// Only the description is asked for, so neither is called.
	server, err := httpapi.New(httpapi.Config{Engine: struct{ httpapi.Engine }{}, Cluster: struct{ httpapi.Cluster }{}})
	if err != nil {
		return nil, fmt.Errorf("make the server: %w", err)
	}
	d, err := parse(server.Description())
	if err != nil {
		return nil, err
	}
	return d.render(), nil
}
