package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Protocols of services.
const (
	protocolJSON     = "json"
	protocolQuery    = "query"
	protocolRESTJSON = "rest-json"
	protocolRESTXML  = "rest-xml"
)

// Request is an HTTP request to a service.
type Request struct {
	Method string
	Path   string // escaped
	Query  url.Values
	Header http.Header
	// Body is nil if Size bytes were streamed without being stored.
	Body []byte
	Size int64
}

// Call is a decoded request.
type Call struct {
	Service   *Service
	Operation *Operation
	// Input has the members of the request: strings, json.Number, bool, []any, map[string]any and Stream. Blobs are
	// strings in base64.
	Input map[string]any
}

// ErrProtocol is the error of a request whose protocol this package does not decode.
var ErrProtocol = errors.New("protocol is not supported")

// Decode returns the operation of a request and its input.
func (s *Service) Decode(r *Request) (*Call, error) {
	var c *Call
	var err error
	switch s.Metadata.Protocol {
	case protocolJSON:
		c, err = s.decodeJSON(r)
	case protocolQuery:
		c, err = s.decodeQuery(r)
	case protocolRESTJSON, protocolRESTXML:
		c, err = s.decodeREST(r)
	default:
		return nil, fmt.Errorf("%s: %s: %w", s.Name, s.Metadata.Protocol, ErrProtocol)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return c, nil
}

func (s *Service) decodeJSON(r *Request) (*Call, error) {
	target := r.Header.Get("X-Amz-Target")
	prefix, name, _ := strings.Cut(target, ".")
	op, ok := s.Operations[name]
	if !ok || prefix != s.Metadata.TargetPrefix {
		return nil, fmt.Errorf("no operation has the target %q", target)
	}
	input, err := object(r.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Call{s, op, input}, nil
}

// object decodes a JSON object. An empty text is an empty object.
func object(text []byte) (map[string]any, error) {
	input := map[string]any{}
	if len(bytes.TrimSpace(text)) == 0 {
		return input, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&input); err != nil {
		return nil, fmt.Errorf("the body is not a JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body has text after the JSON object")
	}
	if input == nil {
		return nil, errors.New("the body is null")
	}
	return input, nil
}

// decodeREST decodes a request whose operation is in its method and path. Members are in the path, the query, the
// headers and the body.
func (s *Service) decodeREST(r *Request) (*Call, error) {
	op, labels, constants := s.route(r)
	if op == nil {
		return nil, fmt.Errorf("no operation has the request %s %s", r.Method, r.Path)
	}
	c := &Call{s, op, map[string]any{}}
	if op.Input == nil {
		return c, nil
	}
	shape := s.shape(op.Input)
	if err := s.decodeBody(c, shape, r); err != nil {
		return nil, fmt.Errorf("%s: %w", op.Name, err)
	}
	known := map[string]bool{"x-id": true} // which some SDKs add
	for name := range constants {
		known[name] = true
	}
	for name, m := range shape.Members {
		switch m.Location {
		case "uri":
			c.Input[name] = s.typed(m, labels[m.LocationName])
		case "querystring":
			known[m.LocationName] = true
			if values := r.Query[m.LocationName]; len(values) > 0 {
				c.Input[name] = s.typed(m, values...)
			}
		case "header":
			if values := r.Header.Values(m.LocationName); len(values) > 0 {
				c.Input[name] = s.typed(m, values...)
			}
		case "headers":
			if found := prefixed(r.Header, m.LocationName); len(found) > 0 {
				c.Input[name] = found
			}
		}
	}
	for name := range r.Query {
		if !known[name] {
			c.Input["?"+name] = r.Query.Get(name)
		}
	}
	return c, nil
}

func prefixed(header http.Header, prefix string) map[string]any {
	found := map[string]any{}
	for name := range header {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), strings.ToLower(prefix)); ok {
			found[rest] = header.Get(name)
		}
	}
	return found
}

func (s *Service) decodeBody(c *Call, shape *Shape, r *Request) error {
	if shape.Payload != "" {
		m := shape.Members[shape.Payload]
		payload := s.shape(m)
		switch {
		case payload.Type == typeBlob || payload.Type == typeString || m.Streaming:
			c.Input[shape.Payload] = Stream(max(r.Size, int64(len(r.Body))))
			return nil
		case len(r.Body) == 0:
			return nil
		case s.Metadata.Protocol == protocolRESTXML:
			value, err := s.decodeXML(m, r.Body)
			c.Input[shape.Payload] = value
			return err
		}
		value, err := object(r.Body)
		c.Input[shape.Payload] = value
		return err
	}
	if s.Metadata.Protocol != protocolRESTJSON {
		return nil
	}
	fields, err := object(r.Body)
	if err != nil {
		return err
	}
	for name, value := range fields {
		c.Input[s.memberOf(shape, name)] = value
	}
	return nil
}

// memberOf returns the member whose name in a body is given.
func (*Service) memberOf(shape *Shape, name string) string {
	for member, m := range shape.Members {
		if m.Location == "" && m.LocationName == name {
			return member
		}
	}
	return name
}

// typed converts the text of a path, a query or a header to the type of a member. A text of another type remains a
// string, which Validate reports.
func (s *Service) typed(m *Member, values ...string) any {
	text := ""
	if len(values) > 0 {
		text = values[0]
	}
	switch shape := s.shape(m); shape.Type {
	case typeInteger, typeLong, typeFloat, typeDouble:
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return json.Number(text)
		}
	case typeBoolean:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case typeList:
		list := make([]any, len(values))
		for i, value := range values {
			list[i] = s.typed(shape.Member, value)
		}
		return list
	}
	return text
}

// route returns the operation of a REST request, the labels of its path, and the constant parts of its query.
func (s *Service) route(r *Request) (op *Operation, labels map[string]string, constants url.Values) {
	best := []int{}
	for _, name := range s.names() {
		candidate := s.Operations[name]
		if candidate.HTTP.Method != r.Method {
			continue
		}
		path, query, _ := strings.Cut(candidate.HTTP.RequestURI, "?")
		fixed, err := url.ParseQuery(query)
		if err != nil || !contains(r.Query, fixed) {
			continue
		}
		found, literals, ok := match(path, r.Path)
		if !ok {
			continue
		}
		given, missing := s.requiredParts(candidate, r)
		// The operation without missing members wins, then the most specific one.
		if rank := []int{-missing, literals, len(fixed), given}; op == nil || slices.Compare(rank, best) > 0 {
			op, labels, constants, best = candidate, found, fixed, rank
		}
	}
	return op, labels, constants
}

// names returns the names of the operations in a fixed order.
func (s *Service) names() []string {
	names := make([]string, 0, len(s.Operations))
	for name := range s.Operations {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func contains(query, fixed url.Values) bool {
	for name, values := range fixed {
		if !query.Has(name) || values[0] != "" && query.Get(name) != values[0] {
			return false
		}
	}
	return true
}

// requiredParts counts the required members in the query and the headers that a request has, and those that it lacks.
func (s *Service) requiredParts(op *Operation, r *Request) (given, missing int) {
	if op.Input == nil {
		return 0, 0
	}
	shape := s.shape(op.Input)
	for _, name := range shape.Required {
		m := shape.Members[name]
		var has bool
		switch m.Location {
		case "querystring":
			has = r.Query.Has(m.LocationName)
		case "header":
			has = r.Header.Get(m.LocationName) != ""
		default:
			continue
		}
		if has {
			given++
		} else {
			missing++
		}
	}
	return given, missing
}

// match compares an escaped path with a pattern such as /{Bucket}/{Key+}. It returns the unescaped labels, and the
// number of literal segments.
func match(pattern, path string) (labels map[string]string, literals int, ok bool) {
	labels = map[string]string{}
	wanted := strings.Split(strings.Trim(pattern, "/"), "/")
	rest := strings.TrimPrefix(path, "/")
	for i, segment := range wanted {
		last := i == len(wanted)-1
		label, greedy := labelOf(segment)
		part, after, more := strings.Cut(rest, "/")
		if greedy && last {
			part, after, more = rest, "", false
		}
		// A path may end with a slash.
		if last && after != "" || !last && !more {
			return nil, 0, false
		}
		value, err := url.PathUnescape(part)
		switch {
		case err != nil || label != "" && value == "" || label == "" && value != segment:
			return nil, 0, false
		case label != "":
			labels[label] = value
		default:
			literals++
		}
		rest = after
	}
	return labels, literals, true
}

// labelOf returns the name of a label such as {Key+}, and whether it matches slashes. The name is empty for a literal.
func labelOf(segment string) (name string, greedy bool) {
	name, isLabel := strings.CutPrefix(segment, "{")
	if !isLabel {
		return "", false
	}
	return strings.CutSuffix(strings.TrimSuffix(name, "}"), "+")
}
