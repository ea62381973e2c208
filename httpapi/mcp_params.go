package httpapi

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK decodes the params of a message several times, and _meta and capabilities into maps. The answer depends on
// few members of them, so the SDK gets no others. A member of a wrong type stays, so that the SDK refuses it.

// sdkParams has the members of each method's params that the SDK gets.
var sdkParams = map[string][]string{
	"initialize":      {"_meta", "protocolVersion", "capabilities", "clientInfo"},
	"server/discover": {"_meta"},
	"ping":            {"_meta"},
	"tools/list":      {"_meta", "cursor"},
	methodCall:        {"_meta", "name", "arguments", "inputResponses", "requestState"},
}

// paramsForSDK returns params with the members that the SDK gets.
func paramsForSDK(method string, params jsontext.Value) jsontext.Value {
	known := sdkParams[method]
	return members(params, func(name string, value jsontext.Value) jsontext.Value {
		switch {
		case !slices.Contains(known, name):
			return nil
		case name == "_meta":
			return metaForSDK(value)
		case name == "capabilities":
			return members(value, clientCapability)
		case name == "clientInfo":
			return members(value, clientProperty)
		}
		return value
	})
}

// metaForSDK returns _meta with the members by which the protocol's version is told; nil for none.
func metaForSDK(meta jsontext.Value) jsontext.Value {
	versioned := false
	kept := members(meta, func(name string, value jsontext.Value) jsontext.Value {
		switch name {
		case mcp.MetaKeyProtocolVersion:
			versioned = value.Kind() == '"'
			return value
		case mcp.MetaKeyClientInfo:
			return members(value, clientProperty)
		case mcp.MetaKeyClientCapabilities:
			return members(value, clientCapability)
		}
		return nil
	})
	if kept.Kind() == '{' && !versioned {
		return nil
	}
	return kept
}

// clientCapability returns the value of a client's capability if its type is wrong. No tool uses capabilities.
func clientCapability(name string, value jsontext.Value) jsontext.Value {
	switch name {
	case "experimental", "extensions", "roots", "sampling", "elicitation":
		return unlessKind(value, '{')
	}
	return nil
}

// clientProperty returns the value of a property of the client's program if its type is wrong. Nothing uses them.
func clientProperty(name string, value jsontext.Value) jsontext.Value {
	switch name {
	case "name", "title", "version":
		return unlessKind(value, '"')
	}
	return nil
}

// unlessKind returns nil for null and for a value of a kind, else the value.
func unlessKind(value jsontext.Value, kind jsontext.Kind) jsontext.Value {
	if k := value.Kind(); k == kind || k == 'n' {
		return nil
	}
	return value
}

// members returns an object whose members have the values that keep returns; a member without a value is left out.
// Any other value is returned as it is.
func members(value jsontext.Value, keep func(name string, value jsontext.Value) jsontext.Value) jsontext.Value {
	if value.Kind() != '{' {
		return value
	}
	// Names that come twice were refused when the message was read. To look for them costs most of the time.
	d := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return value
	}
	kept := jsontext.Value{'{'}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return value
		}
		name := token.String()
		member, err := d.ReadValue()
		if err != nil {
			return value
		}
		if member = keep(name, member); member == nil {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		if kept, err = jsontext.AppendQuote(kept, name); err != nil {
			return value
		}
		kept = append(append(kept, ':'), member...)
	}
	return append(kept, '}')
}
