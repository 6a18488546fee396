package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"unicode/utf8"

	"github.com/perdure/perdure/provider"
)

// maxBodyBytes holds the largest input and, even with every character escaped, all else that a start may bring.
const maxBodyBytes = 256 << 10

const givenTwice = "is given more than once"

// readBody reads a body that must be one JSON object of the given fields, each at most once. Encoding/json alone would
// take fields in the wrong case, or twice.
func readBody(w http.ResponseWriter, r *http.Request, fields map[string]any) error {
	body, err := readAll(w, r)
	switch {
	case err != nil:
		return err
	case !utf8.Valid(body):
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
		return bodyError("must end after the JSON object")
	}
	return nil
}

// readFields reads up to and including the end of the object.
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
		case !known:
			return &provider.FieldError{Field: name, Problem: "is no field of this call"}
		case seen[name]:
			return &provider.FieldError{Field: name, Problem: givenTwice}
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
	var wrong *json.UnmarshalTypeError
	err := d.Decode(into)
	switch {
	case errors.As(err, &wrong):
		return &provider.FieldError{Field: name, Problem: fmt.Sprintf("has a JSON %s where a %s belongs", wrong.Value, jsonType(wrong.Type))}
	case err != nil:
		return notJSON(d)
	default:
		return nil
	}
}

func jsonType(t reflect.Type) string {
	if t.Kind() == reflect.Map {
		return "object"
	}
	return t.Kind().String()
}

func notJSON(d *json.Decoder) error {
	return bodyError(fmt.Sprintf("is not JSON from byte %d on", d.InputOffset()))
}

func bodyError(what string) error { return &provider.FieldError{Field: "body", Problem: what} }
