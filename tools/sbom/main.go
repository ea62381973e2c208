// Command sbom completes the bill of materials that cyclonedx-gomod makes of the binary, checks the
// licenses in it, and writes the texts that have to go with the binary. It is run by make sbom. The
// licenses that are taken, and those that were read by a person, are in licenses.go.
package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	root := flag.String("root", "../..", "the repository")
	file := flag.String("bom", "../../bin/switchyard.cdx.json", "bill of materials in JSON, which is written anew")
	texts := flag.String("texts", "../../bin/switchyard-licenses.txt", "file for the texts of the licenses")
	flag.Parse()
	n, err := run(*root, *file, *texts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d components.\n%s\n", *file, n, *texts)
}

// run completes the bill, and returns how many components it has.
func run(root, file, texts string) (int, error) {
	bom, err := readBOM(file)
	if err != nil {
		return 0, err
	}
	vendored := filepath.Join(root, "console", "web", "vendor")
	packages, err := readPackages(filepath.Join(vendored, "vendor.json"))
	if err != nil {
		return 0, err
	}
	if bom.Components == nil {
		return 0, errors.New("the bill has no components")
	}
	if err := setLicenses(*bom.Components); err != nil {
		return 0, err
	}
	dirs, err := moduleDirs(root)
	if err != nil {
		return 0, err
	}
	var all []component
	for _, c := range *bom.Components {
		all = append(all, component{c.Name, c.Version, dirs[c.Name]})
	}
	for _, p := range packages {
		c, err := p.component()
		if err != nil {
			return 0, err
		}
		*bom.Components = append(*bom.Components, c)
		dependOn(bom, c.BOMRef)
		all = append(all, component{p.Name, p.Version, filepath.Join(vendored, p.Name)})
	}
	if err := writeTexts(texts, all); err != nil {
		return 0, err
	}
	return len(all), writeBOM(file, bom)
}

func readBOM(file string) (*cdx.BOM, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the bill: %w", err)
	}
	defer func() { _ = in.Close() }()
	bom := new(cdx.BOM)
	if err := cdx.NewBOMDecoder(in, cdx.BOMFileFormatJSON).Decode(bom); err != nil {
		return nil, fmt.Errorf("read the bill: %w", err)
	}
	return bom, nil
}

func writeBOM(file string, bom *cdx.BOM) error {
	var text strings.Builder
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("write the bill: %w", err)
	}
	return os.WriteFile(file, []byte(text.String()), 0o644) //nolint:gosec // it is to be published
}

// npmPackage is a package whose files the console's bundle is made of.
type npmPackage struct {
	Name, Version, License string
	Integrity              string // as npm has it: algorithm, hyphen, base64
}

func readPackages(file string) ([]npmPackage, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the console's packages: %w", err)
	}
	var list struct{ Packages []npmPackage }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(list.Packages) == 0 {
		return nil, fmt.Errorf("%s names no packages", file)
	}
	return list.Packages, nil
}

// component returns the entry of a package in the bill.
func (p *npmPackage) component() (cdx.Component, error) {
	encoded, ok := strings.CutPrefix(p.Integrity, "sha512-")
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return cdx.Component{}, fmt.Errorf("%s: integrity %q", p.Name, p.Integrity)
	}
	if !taken[p.License] {
		return cdx.Component{}, fmt.Errorf("%s: the license %q is not among those taken", p.Name, p.License)
	}
	url := "pkg:npm/" + p.Name + "@" + p.Version
	return cdx.Component{
		BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: url,
		Scope: cdx.ScopeRequired, Licenses: licensed(p.License),
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(sum)}},
	}, nil
}

// dependOn adds a component to those that the program depends on.
func dependOn(bom *cdx.BOM, ref string) {
	if bom.Metadata == nil || bom.Metadata.Component == nil || bom.Dependencies == nil {
		return
	}
	for i := range *bom.Dependencies {
		if d := &(*bom.Dependencies)[i]; d.Ref == bom.Metadata.Component.BOMRef && d.Dependencies != nil {
			*d.Dependencies = append(*d.Dependencies, ref)
		}
	}
	*bom.Dependencies = append(*bom.Dependencies, cdx.Dependency{Ref: ref})
}
