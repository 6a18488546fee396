// Package request reads the requests of the HTTP API strictly: bodies, query parameters and IDs in paths.
package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/provider"
)

// maxBodyBytes is the maximum size of a body. It fits the largest input with all other fields of a start, even with
// every character escaped.
const maxBodyBytes = 256 << 10

const repeatedField = "is given more than once"

// Body reads a body that must be one JSON object with only the given fields.
func Body(w http.ResponseWriter, r *http.Request, fields map[string]any) error {
	body, err := All(w, r)
	if err != nil {
		return err
	}
	return Object(body, fields)
}

// All reads a body of at most maxBodyBytes. It rejects a body that is not declared as JSON in UTF-8.
func All(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	from := r.Body
	if from == nil {
		from = http.NoBody // a net/http server sets Body, but other callers may not
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, from, maxBodyBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, problem.BodyTooLarge(maxBodyBytes)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, bodyError("did not arrive in time")
	}
	if err != nil {
		return nil, bodyError("could not be read")
	}
	if len(body) > 0 && !isJSON(strings.Join(r.Header.Values("Content-Type"), ", ")) {
		return nil, problem.ErrMediaType
	}
	return body, nil
}

// isJSON reports whether contentType declares JSON in UTF-8. It returns false for a missing type, because browsers send
// a body without a type to another origin without a CORS preflight request.
func isJSON(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	charset, given := params["charset"]
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) &&
		(!given || strings.EqualFold(charset, "utf-8"))
}

// Object reads one JSON object with only the given fields, each at most once. Package encoding/json would also accept
// repeated fields and names in another case.
func Object(body []byte, fields map[string]any) error {
	if !utf8.Valid(body) {
		return bodyError("is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return bodyError("must be a JSON object")
	}
	if err := readFields(d, fields); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bodyError("must not continue after the JSON object")
	}
	return nil
}

// readFields reads the fields of an object and its end.
func readFields(d *json.Decoder, fields map[string]any) error {
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return notJSON(d)
		}
		into, known := fields[name]
		switch {
		case name == "":
			return bodyError("has a field without a name")
		case !known:
			return &provider.FieldError{Field: provider.Excerpt(name), Problem: "is not a field of this call"}
		case seen[name]:
			return &provider.FieldError{Field: name, Problem: repeatedField}
		}
		seen[name] = true
		if err := readField(d, name, into); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return notJSON(d)
	}
	return nil
}

func readField(d *json.Decoder, name string, into any) error {
	var (
		wrong  *json.UnmarshalTypeError
		syntax *json.SyntaxError
	)
	err := d.Decode(into)
	switch {
	case errors.As(err, &wrong):
		return &provider.FieldError{Field: name, Problem: fmt.Sprintf("must be a %s, has a JSON %s",
			jsonType(wrong.Type), provider.Excerpt(wrong.Value))}
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return notJSON(d)
	case err != nil: // the error of a time already describes the problem
		return &provider.FieldError{Field: name, Problem: mustBeTime}
	default:
		return nil
	}
}

func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Map:
		return "object"
	case reflect.Slice:
		return "list"
	case reflect.Int64:
		return "whole number"
	default:
		return t.Kind().String()
	}
}

func notJSON(d *json.Decoder) error {
	return bodyError(fmt.Sprintf("is not valid JSON at byte %d", d.InputOffset()))
}

func bodyError(what string) error {
	return &provider.FieldError{Field: problem.FieldBody, Problem: what}
}
