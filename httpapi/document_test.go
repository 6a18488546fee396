package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// document is the OpenAPI document, as far as answers are held against it.
type document struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Parameters map[string]parameter `json:"parameters"`
		Responses  map[string]response  `json:"responses"`
		Schemas    map[string]*schema   `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	OperationID string      `json:"operationId"`
	Parameters  []parameter `json:"parameters"`
	RequestBody *struct {
		Content map[string]media `json:"content"`
	} `json:"requestBody"`
	Responses map[string]response `json:"responses"`
}

type parameter struct {
	Ref    string  `json:"$ref"`
	Name   string  `json:"name"`
	In     string  `json:"in"`
	Schema *schema `json:"schema"`
}

type response struct {
	Ref     string           `json:"$ref"`
	Headers map[string]any   `json:"headers"`
	Content map[string]media `json:"content"`
}

type media struct {
	Schema *schema `json:"schema"`
}

// schema is the part of JSON Schema that the document uses; another keyword is an error.
type schema struct {
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
	Items                *schema            `json:"items"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties *additional        `json:"additionalProperties"`
	PropertyNames        *schema            `json:"propertyNames"`
	MaxProperties        *int               `json:"maxProperties"`
}

// additional is what a schema says of properties that it does not name: true, false, or their schema.
type additional struct {
	allowed bool
	schema  *schema
}

func (a *additional) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &a.allowed) == nil {
		return nil
	}
	a.allowed = true
	return strict(b, &a.schema)
}

func (s *schema) UnmarshalJSON(b []byte) error {
	type plain schema
	return strict(b, (*plain)(s))
}

func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

var openAPI = sync.OnceValue(func() *document {
	b, err := os.ReadFile("openapi.json")
	d := &document{}
	if err == nil {
		err = json.Unmarshal(b, d)
	}
	if err != nil {
		panic(err)
	}
	return d
})

func (d *document) parameter(p parameter) parameter {
	if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
		return d.Components.Parameters[name]
	}
	return p
}

func (d *document) response(r response) response {
	if name, ok := strings.CutPrefix(r.Ref, "#/components/responses/"); ok {
		return d.Components.Responses[name]
	}
	return r
}

// operation is the call that was made, if it is one.
func (d *document) operation(a answer) (operation, bool) {
	op, ok := d.Paths[a.path][strings.ToLower(a.method)]
	return op, ok && a.method == strings.ToUpper(a.method)
}

// describes returns the key under which an operation describes a status: "default" stands for what fails on the server's side.
func (o operation) describes(status int) (string, bool) {
	key := strconv.Itoa(status)
	if _, ok := o.Responses[key]; ok || status < http.StatusInternalServerError {
		return key, ok
	}
	_, ok := o.Responses["default"]
	return "default", ok
}

// check holds an answer against the document: its status, its headers, its content type and its body, in which nothing may
// be that the schema does not name.
func (d *document) check(a answer) {
	a.t.Helper()
	op, ok := d.operation(a)
	if !ok { // no call of the API
		a.checkBody(d, map[string]media{"application/problem+json": {&schema{Ref: "#/components/schemas/Problem"}}})
		return
	}
	key, ok := op.describes(a.Code)
	if !ok {
		a.t.Errorf("%s %s answers %d, which is not described: %s", a.method, a.path, a.Code, a.Body)
		return
	}
	res := d.response(op.Responses[key])
	for name := range res.Headers {
		if a.Header().Get(name) == "" {
			a.t.Errorf("%s %s answers %d without the header %s", a.method, a.path, a.Code, name)
		}
	}
	a.checkBody(d, res.Content)
}

func (a answer) checkBody(d *document, content map[string]media) {
	a.t.Helper()
	if len(content) == 0 {
		if kind := a.Header().Get("Content-Type"); kind != "" || a.Body.Len() > 0 {
			a.t.Errorf("%s %s answers %d with %q, described is no body: %s", a.method, a.path, a.Code, kind, a.Body)
		}
		return
	}
	kind, _, err := mime.ParseMediaType(a.Header().Get("Content-Type"))
	m, ok := content[kind]
	if err != nil || !ok {
		a.t.Errorf("%s %s answers %d with %q, described are %v", a.method, a.path, a.Code, kind, slices.Collect(maps.Keys(content)))
		return
	}
	if a.head {
		return
	}
	v, err := decode(a.Body.Bytes())
	if err != nil {
		a.t.Errorf("%s %s answers %d: %v", a.method, a.path, a.Code, err)
		return
	}
	for _, wrong := range d.validate(m.Schema, v, "") {
		a.t.Errorf("%s %s answers %d, where %s: %s", a.method, a.path, a.Code, wrong, a.Body)
	}
}

func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// validate tells all that is wrong with a value.
func (d *document) validate(s *schema, v any, at string) []string {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		s = d.Components.Schemas[name]
	}
	wrong := s.scalar(v, at)
	switch v := v.(type) {
	case map[string]any:
		wrong = append(wrong, d.object(s, v, at)...)
	case []any:
		if s.Items == nil {
			break
		}
		for i, item := range v {
			wrong = append(wrong, d.validate(s.Items, item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	return wrong
}

func (d *document) object(s *schema, v map[string]any, at string) (wrong []string) {
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
			wrong = append(wrong, d.validate(p, value, in)...)
		case more != nil && more.schema != nil:
			wrong = append(wrong, d.validate(more.schema, value, in)...)
		case more == nil && s.Properties != nil, more != nil && !more.allowed:
			wrong = append(wrong, in+" is not described")
		}
	}
	return wrong
}

// scalar checks everything that does not look inside.
func (s *schema) scalar(v any, at string) (wrong []string) {
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
			fail("is no time: %s", v)
		}
	case json.Number:
		if f, err := v.Float64(); err != nil || s.Minimum != nil && f < *s.Minimum || s.Maximum != nil && f > *s.Maximum {
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
