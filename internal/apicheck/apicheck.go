// Package apicheck compares responses of the HTTP API with its OpenAPI document, in tests.
package apicheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Document is the part of the OpenAPI document that describes responses.
type Document struct {
	Paths      map[string]map[string]Operation `json:"paths"`
	Components struct {
		Parameters map[string]Parameter `json:"parameters"`
		Responses  map[string]Response  `json:"responses"`
		Schemas    map[string]*Schema   `json:"schemas"`
	} `json:"components"`
}

// Operation is an operation of the API.
type Operation struct {
	OperationID string      `json:"operationId"`
	Parameters  []Parameter `json:"parameters"`
	RequestBody *struct {
		Content map[string]Media `json:"content"`
	} `json:"requestBody"`
	Responses map[string]Response `json:"responses"`
}

// Parameter is a parameter of an operation, or a reference to one.
type Parameter struct {
	Ref    string  `json:"$ref"`
	Name   string  `json:"name"`
	In     string  `json:"in"`
	Schema *Schema `json:"schema"`
}

// Response is a response of an operation, or a reference to one.
type Response struct {
	Ref     string           `json:"$ref"`
	Headers map[string]any   `json:"headers"`
	Content map[string]Media `json:"content"`
}

// Media is a body of one content type.
type Media struct {
	Schema *Schema `json:"schema"`
}

// Schema is the part of JSON Schema that the document uses. Other keywords are an error.
type Schema struct {
	Ref                  string             `json:"$ref"`
	Type                 string             `json:"type"`
	Description          string             `json:"description"`
	Default              any                `json:"default"`
	Enum                 []any              `json:"enum"`
	Const                any                `json:"const"`
	Format               string             `json:"format"`
	MinLength            int                `json:"minLength"`
	MaxLength            *int               `json:"maxLength"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	Items                *Schema            `json:"items"`
	MinItems             int                `json:"minItems"`
	MaxItems             *int               `json:"maxItems"`
	Properties           map[string]*Schema `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties *Additional        `json:"additionalProperties"`
	PropertyNames        *Schema            `json:"propertyNames"`
	MaxProperties        *int               `json:"maxProperties"`
}

// Additional is the value of a schema's additionalProperties: true, false or a schema.
type Additional struct {
	allowed bool
	schema  *Schema
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Additional) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &a.allowed) == nil {
		return nil
	}
	a.allowed = true
	return strict(b, &a.schema)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Schema) UnmarshalJSON(b []byte) error {
	type plain Schema
	return strict(b, (*plain)(s))
}

func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v) //nolint:wrapcheck // the error of encoding/json names the value and its position
}

// Parse parses the OpenAPI document.
func Parse(doc []byte) (*Document, error) {
	d := &Document{}
	if err := json.Unmarshal(doc, d); err != nil {
		return nil, fmt.Errorf("apicheck: %w", err)
	}
	return d, nil
}

// Reply is the response to a request. Path is the pattern of its route. If Head is set, the request was a HEAD request
// for the operation of Method.
type Reply struct {
	Method, Path string
	Head         bool
	Code         int
	Header       http.Header
	Body         []byte
}

// Parameter returns the parameter that p refers to, or p if it is not a reference.
func (d *Document) Parameter(p Parameter) Parameter {
	if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
		return d.Components.Parameters[name]
	}
	return p
}

func (d *Document) response(r Response) Response {
	if name, ok := strings.CutPrefix(r.Ref, "#/components/responses/"); ok {
		return d.Components.Responses[name]
	}
	return r
}

// Operation returns the operation of a response, or false if the document has no such operation.
func (d *Document) Operation(a *Reply) (Operation, bool) {
	op, ok := d.Paths[a.Path][strings.ToLower(a.Method)]
	return op, ok && a.Method == strings.ToUpper(a.Method)
}

// Describes returns the key under which the operation describes a status, or false if it does not describe the status.
// The key is "default" for a server error without its own description.
func (o *Operation) Describes(status int) (string, bool) {
	key := strconv.Itoa(status)
	if _, ok := o.Responses[key]; ok || status < http.StatusInternalServerError {
		return key, ok
	}
	_, ok := o.Responses["default"]
	return "default", ok
}

// Wrong returns all differences between a response and the document: in the status, the headers, the content type and
// the body. A property that the schema does not name is a difference.
func (d *Document) Wrong(a *Reply) (wrong []string) {
	fail := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s %s returns %d", a.Method, a.Path, a.Code)+fmt.Sprintf(format, args...))
	}
	op, ok := d.Operation(a)
	if !ok { // not a call of the API
		return d.wrongBody(a,
			map[string]Media{"application/problem+json": {&Schema{Ref: "#/components/schemas/Problem"}}}, fail, &wrong)
	}
	key, ok := op.Describes(a.Code)
	if !ok {
		fail(", which is not described: %s", a.Body)
		return wrong
	}
	res := d.response(op.Responses[key])
	for name := range res.Headers {
		if a.Header.Get(name) == "" {
			fail(" without the header %s", name)
		}
	}
	return d.wrongBody(a, res.Content, fail, &wrong)
}

func (d *Document) wrongBody(
	a *Reply, content map[string]Media, fail func(format string, args ...any), wrong *[]string,
) []string {
	if len(content) == 0 {
		if kind := a.Header.Get("Content-Type"); kind != "" || len(a.Body) > 0 {
			fail(" with %q, but the description has no body: %s", kind, a.Body)
		}
		return *wrong
	}
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	m, ok := content[kind]
	if err != nil || !ok {
		fail(" with %q, but the description has %v", kind, slices.Collect(maps.Keys(content)))
		return *wrong
	}
	if a.Head || kind == "text/event-stream" { // no JSON
		return *wrong
	}
	v, err := Decode(a.Body)
	if err != nil {
		fail(": %v", err)
		return *wrong
	}
	for _, what := range d.Validate(m.Schema, v, "") {
		fail(", where %s: %s", what, a.Body)
	}
	return *wrong
}

// Decode decodes JSON. Numbers become a json.Number.
func Decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("apicheck: %w", err)
	}
	return v, nil
}

// Validate returns all differences between the value v and the schema s. The path of v in its document is at.
func (d *Document) Validate(s *Schema, v any, at string) []string {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		s = d.Components.Schemas[name]
	}
	wrong := s.scalar(v, at)
	switch v := v.(type) {
	case map[string]any:
		wrong = append(wrong, d.object(s, v, at)...)
	case []any:
		if len(v) < s.MinItems || s.MaxItems != nil && len(v) > *s.MaxItems {
			wrong = append(wrong, fmt.Sprintf("%s has %d items", at, len(v)))
		}
		if s.Items == nil {
			break
		}
		for i, item := range v {
			wrong = append(wrong, d.Validate(s.Items, item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	return wrong
}

func (d *Document) object(s *Schema, v map[string]any, at string) (wrong []string) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s.%s is missing", at, name))
		}
	}
	if s.MaxProperties != nil && len(v) > *s.MaxProperties {
		wrong = append(wrong, fmt.Sprintf("%s has %d properties", at, len(v)))
	}
	for name, value := range v {
		in := at + "." + name
		if s.PropertyNames != nil {
			wrong = append(wrong, s.PropertyNames.scalar(name, "the name of "+in)...)
		}
		switch p, more := s.Properties[name], s.AdditionalProperties; {
		case p != nil:
			wrong = append(wrong, d.Validate(p, value, in)...)
		case more != nil && more.schema != nil:
			wrong = append(wrong, d.Validate(more.schema, value, in)...)
		case more == nil && s.Properties != nil, more != nil && !more.allowed:
			wrong = append(wrong, in+" is not described")
		}
	}
	return wrong
}

// scalar checks the keywords that do not apply to the members of objects and arrays.
//
//nolint:gocognit,cyclop // keyword by keyword, as the schema is read
func (s *Schema) scalar(v any, at string) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, at+" "+fmt.Sprintf(format, args...)) }
	if s.Type != "" && s.Type != typeOf(v) && (s.Type != "number" || typeOf(v) != "integer") {
		fail("is of type %s instead of %s", typeOf(v), s.Type)
	}
	if s.Enum != nil && !slices.Contains(s.Enum, v) || s.Const != nil && s.Const != v {
		fail("is %v", v)
	}
	switch v := v.(type) {
	case string:
		if n := utf8.RuneCountInString(v); n < s.MinLength || s.MaxLength != nil && n > *s.MaxLength {
			fail("has %d characters", n)
		}
		if _, err := time.Parse(time.RFC3339, v); s.Format == "date-time" && err != nil {
			fail("is not a time: %s", v)
		}
	case json.Number:
		if f, err := v.Float64(); err != nil || s.Minimum != nil && f < *s.Minimum ||
			s.Maximum != nil && f > *s.Maximum {
			fail("is %s", v)
		}
	}
	return wrong
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}
