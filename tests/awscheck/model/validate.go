package model

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Stream is the value of a streaming member: its size in bytes.
type Stream int64

// Validate returns the violations of the model in the input of an operation. Each starts with the path of a member.
func (s *Service) Validate(op *Operation, input map[string]any) []string {
	if op.Input == nil {
		return nil
	}
	v := validation{service: s}
	v.structure("", s.shape(op.Input), input)
	return v.faults
}

type validation struct {
	service *Service
	faults  []string
}

func (v *validation) addf(path, format string, args ...any) {
	if path == "" {
		path = "input"
	}
	v.faults = append(v.faults, path+": "+fmt.Sprintf(format, args...))
}

func (v *validation) value(path string, m *Member, value any) {
	shape := v.service.shape(m)
	if shape.Document || value == nil {
		return
	}
	switch shape.Type {
	case typeStructure, typeMap:
		v.object(path, shape, value)
	case typeList:
		v.list(path, shape, value)
	case typeString:
		v.text(path, shape, value)
	case typeBlob:
		v.blob(path, shape, value)
	case typeInteger, typeLong, typeFloat, typeDouble:
		v.number(path, shape, value)
	case typeBoolean:
		if _, ok := value.(bool); !ok {
			v.addf(path, "want a boolean, got %T", value)
		}
	case typeTimestamp:
		_, isText := value.(string)
		if _, isNumber := value.(json.Number); !isText && !isNumber {
			v.addf(path, "want a timestamp, got %T", value)
		}
	}
}

func (v *validation) object(path string, shape *Shape, value any) {
	fields, ok := value.(map[string]any)
	switch {
	case !ok:
		v.addf(path, "want an object, got %T", value)
	case shape.Type == typeMap:
		v.entries(path, shape, fields)
	default:
		v.structure(path, shape, fields)
	}
}

func (v *validation) structure(path string, shape *Shape, fields map[string]any) {
	for _, name := range shape.Required {
		if fields[name] == nil {
			v.addf(join(path, name), "required member is missing")
		}
	}
	given := 0
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		m, ok := shape.Members[name]
		if !ok {
			v.addf(join(path, name), "the service has no such member")
			continue
		}
		if fields[name] != nil {
			given++
		}
		v.value(join(path, name), m, fields[name])
	}
	if shape.Union && given != 1 {
		v.addf(path, "want exactly one member of a union, got %d", given)
	}
}

func (v *validation) entries(path string, shape *Shape, entries map[string]any) {
	v.length(path, shape, len(entries), "entries")
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if shape.Key != nil {
			v.text(path+"{key}", v.service.shape(shape.Key), key)
		}
		if entries[key] == nil {
			v.addf(path+"{"+shorten(key)+"}", "a value of a map is null")
		}
		v.value(path+"{"+shorten(key)+"}", shape.Value, entries[key])
	}
}

func (v *validation) list(path string, shape *Shape, value any) {
	members, ok := value.([]any)
	if !ok {
		v.addf(path, "want a list, got %T", value)
		return
	}
	v.length(path, shape, len(members), "members")
	for i, member := range members {
		at := path + "[" + strconv.Itoa(i) + "]"
		if member == nil {
			v.addf(at, "a member of a list is null")
		}
		v.value(at, shape.Member, member)
	}
}

func (v *validation) text(path string, shape *Shape, value any) {
	text, ok := value.(string)
	if !ok {
		v.addf(path, "want a string, got %T", value)
		return
	}
	if !utf8.ValidString(text) {
		v.addf(path, "the string is not UTF-8")
		return
	}
	v.length(path, shape, utf8.RuneCountInString(text), "characters")
	if len(shape.Enum) > 0 && !slices.Contains(shape.Enum, text) {
		v.addf(path, "%q is not one of the values %s", shorten(text), strings.Join(shape.Enum, ", "))
	}
	if shape.Pattern == "" {
		return
	}
	if pattern, ok := compiled(shape.Pattern); ok && !pattern.MatchString(text) {
		v.addf(path, "%q does not match the pattern %s", shorten(text), shape.Pattern)
	}
}

func (v *validation) blob(path string, shape *Shape, value any) {
	switch value := value.(type) {
	case Stream:
		v.length(path, shape, int(value), "bytes")
	case string:
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			v.addf(path, "the blob is not base64: %v", err)
			return
		}
		v.length(path, shape, len(decoded), "bytes")
	default:
		v.addf(path, "want a blob, got %T", value)
	}
}

func (v *validation) number(path string, shape *Shape, value any) {
	given, ok := value.(json.Number)
	if !ok {
		v.addf(path, "want a number, got %T", value)
		return
	}
	var n float64
	switch shape.Type {
	case typeInteger, typeLong:
		i, err := given.Int64()
		if err != nil || shape.Type == typeInteger && (i < math.MinInt32 || i > math.MaxInt32) {
			v.addf(path, "%s is not a value of the type %s", given, shape.Type)
			return
		}
		n = float64(i)
	default:
		f, err := given.Float64()
		if err != nil {
			v.addf(path, "%s is not a value of the type %s", given, shape.Type)
			return
		}
		n = f
	}
	if shape.Min != nil && n < *shape.Min {
		v.addf(path, "%s is less than %v", given, *shape.Min)
	}
	if shape.Max != nil && n > *shape.Max {
		v.addf(path, "%s is more than %v", given, *shape.Max)
	}
}

func (v *validation) length(path string, shape *Shape, n int, unit string) {
	if shape.Min != nil && float64(n) < *shape.Min {
		v.addf(path, "got %d %s, want at least %v", n, unit, *shape.Min)
	}
	if shape.Max != nil && float64(n) > *shape.Max {
		v.addf(path, "got %d %s, want at most %v", n, unit, *shape.Max)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// mostShown is the number of bytes of a value that a violation shows.
const mostShown = 40

func shorten(text string) string {
	if len(text) <= mostShown {
		return text
	}
	return strings.ToValidUTF8(text[:mostShown], "") + "..."
}

// patterns has the compiled patterns, and nil for those that Go does not support.
var patterns sync.Map

// compiled returns a pattern of a model, which must match the whole string. It returns false for a pattern with
// features that Go does not support, such as lookahead.
func compiled(pattern string) (*regexp.Regexp, bool) {
	if found, ok := patterns.Load(pattern); ok {
		p, _ := found.(*regexp.Regexp)
		return p, p != nil
	}
	p, err := regexp.Compile(`^(?:` + unicodeEscape.ReplaceAllString(pattern, `\x{$1}`) + `)$`)
	if err != nil {
		p = nil
	}
	patterns.Store(pattern, p)
	return p, p != nil
}

// unicodeEscape is the escape of a character in Java, which has four digits.
var unicodeEscape = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)

// Compiles reports whether this package can check a pattern of a model.
func Compiles(pattern string) bool {
	_, ok := compiled(pattern)
	return ok
}
