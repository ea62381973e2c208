package main

import (
	"errors"
	"fmt"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// taken are the licenses under which the binary may have components, as SPDX names them. They ask for
// notices, and MPL-2.0 for the source of changed files, of which there are none.
var taken = map[string]bool{
	"0BSD": true, "Apache-2.0": true, "BSD-2-Clause": true, "BSD-3-Clause": true, "ISC": true, "MIT": true, "MPL-2.0": true, "Unlicense": true,
}

// reviewed are the licenses of modules for which detection finds none or a wrong one. A person has read
// their texts. A key that ends in a slash is for all modules below.
var reviewed = map[string]string{
	"github.com/gogo/protobuf":               "BSD-3-Clause",
	"github.com/hashicorp/go-metrics":        "MIT",
	"github.com/modelcontextprotocol/go-sdk": "Apache-2.0", // and MIT for older parts
	"github.com/twmb/murmur3":                "BSD-3-Clause",
	"golang.org/x/":                          "BSD-3-Clause",
	"std":                                    "BSD-3-Clause",
}

// review returns the license of a module that a person has read; "" for none.
func review(module string) string {
	if license, ok := reviewed[module]; ok {
		return license
	}
	for prefix, license := range reviewed {
		if strings.HasSuffix(prefix, "/") && strings.HasPrefix(module, prefix) {
			return license
		}
	}
	return ""
}

func licensed(id string) *cdx.Licenses {
	return &cdx.Licenses{{License: &cdx.License{ID: id}}}
}

// setLicenses gives each component its license: the reviewed one, or else the one that was detected.
// Its error names every component without one, and those whose license is not taken.
func setLicenses(components []cdx.Component) (err error) {
	for i := range components {
		c := &components[i]
		id := review(c.Name)
		if id == "" && c.Evidence != nil && c.Evidence.Licenses != nil && len(*c.Evidence.Licenses) == 1 && (*c.Evidence.Licenses)[0].License != nil {
			id = (*c.Evidence.Licenses)[0].License.ID
		}
		switch {
		case id == "":
			err = errors.Join(err, fmt.Errorf("%s: no license was detected, or several: read its text and add it to the reviewed ones", c.Name))
		case !taken[id]:
			err = errors.Join(err, fmt.Errorf("%s: the license %s is not among those taken", c.Name, id))
		}
		c.Licenses, c.Evidence = licensed(id), nil
	}
	return err
}
