package httpapi

import (
	"net/http"
	"strconv"
	"strings"
)

// translate changes the description of an operation to that of a dialect: its bodies,
// its failures and its credentials.
func (d *describer) translate(rt *route, operation doc) {
	dl := rt.dialect
	if dl == nil {
		return
	}
	d.schemas[dl.errors] = dl.errorShape
	operation["security"] = dl.security
	media := bareMedia(dl.media)
	responses := operation["responses"].(doc)
	for status := range responses {
		response := responses[status].(doc)
		if response["$ref"] != nil {
			responses[status] = dl.failureResponse(status)
			continue
		}
		if content, ok := response["content"].(doc); ok {
			response["content"] = doc{media: content["application/json"]}
		}
		headers := response["headers"].(doc)
		for _, h := range dl.headers {
			headers[string(h[0])] = headerText(string(h[1]) + ".")
		}
		if status == strconv.Itoa(http.StatusCreated) {
			headers["Location"] = headerText("The address of the new resource.")
			headers["ETag"] = headerRef("ETag")
		}
	}
	if body, ok := operation["requestBody"].(doc); ok {
		in := body["content"].(doc)["application/json"]
		if dl.forms {
			body["content"] = doc{string(mediaForm): in}
		} else {
			body["content"] = doc{media: in, "application/json": in}
		}
	}
}

// bareMedia is a media type without its parameters.
func bareMedia(media []byte) string {
	bare, _, _ := strings.Cut(string(media), ";")
	return bare
}

func headerText(description string) doc {
	return doc{"description": description, "schema": doc{"type": "string"}}
}

// failureResponse describes the failures of a status, or all others.
func (dl *dialect) failureResponse(status string) doc {
	media := bareMedia(dl.media)
	headers := doc{"X-Request-Id": headerRef("X-Request-Id")}
	if !dl.anywhere {
		headers[headerOwner] = headerRef(headerOwner)
	}
	addRates(headers)
	description := "Any other failure."
	if n, err := strconv.Atoi(status); err == nil {
		description = status + " " + http.StatusText(n)
		switch n {
		case http.StatusUnauthorized:
			headers["WWW-Authenticate"] = headerRef("WWW-Authenticate")
			if dl.challenge != nil {
				headers["WWW-Authenticate"] = headerText(string(dl.challenge))
			}
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			headers["Retry-After"] = headerRef("Retry-After")
		}
	}
	return doc{"description": description, "headers": headers, "content": doc{media: doc{"schema": doc{"$ref": "#/components/schemas/" + dl.errors}}}}
}
