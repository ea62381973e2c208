package httpapi

import "net/http"

// describeTools adds to the description of an operation what its plan does not say: the
// messages to a session's tools, and how they are refused.
func (d *describer) describeTools(operation doc) {
	d.schemas["ToolMessage"] = doc{
		"type": "object", "required": []string{"jsonrpc"},
		"description": "A message of the Model Context Protocol. A request has an id and a method; what has no id is acknowledged with 202.",
		"properties": doc{
			"jsonrpc": doc{"const": "2.0"},
			"id":      doc{"description": "A text or an integer."},
			"method":  doc{"type": "string"},
			"params":  doc{"type": "object", "additionalProperties": true},
		},
	}
	operation["description"] = "A stateless MCP server over streamable HTTP, for the bearer of the session's lane token. Its tools are described by the method tools/list. GET and DELETE are 405: there is no stream to open and no protocol session to end."
	operation["requestBody"] = doc{
		"required": true,
		"content":  doc{"application/json": doc{"schema": doc{"$ref": "#/components/schemas/ToolMessage"}}},
	}
	headers := doc{"X-Request-Id": headerRef("X-Request-Id"), headerOwner: headerRef(headerOwner)}
	addRates(headers)
	responses := operation["responses"].(doc)
	responses["202"] = doc{"description": http.StatusText(http.StatusAccepted), "headers": headers}
	// The faults of a message are reported in the protocol's own form.
	for _, status := range []string{"400", "404"} {
		responses[status] = doc{
			"description": "An error of JSON-RPC, when the message could not be served; else one of the service.",
			"headers":     headers,
			"content": doc{"application/json": doc{"schema": doc{"anyOf": []doc{
				{"$ref": "#/components/schemas/ToolAnswer"}, {"$ref": "#/components/schemas/Error"},
			}}}},
		}
	}
}
