package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// Limits of a result, in bytes of JSON.
const (
	// maxResultBytes is the maximum size of the structured content. The text of a result is part of it and also a
	// content block of its own.
	maxResultBytes = 64 << 10
	maxTextBytes   = 12 << 10
	maxListBytes   = 36 << 10
	maxItemBytes   = 8 << 10
	// maxFieldBytes is the size from which a field of an item is cut, and smallFieldBytes that in an item with many
	// large fields.
	maxFieldBytes   = 1 << 10
	smallFieldBytes = 128
	// markerBytes is the space for the marker of a cut text.
	markerBytes = 48
)

// cutField replaces a field that is too large: its beginning, and its size in bytes of JSON.
type cutField struct {
	Cut   string `json:"cut"`
	Bytes int    `json:"bytes"`
}

// encodeItem returns v as JSON of at most maxItemBytes, with large fields cut and all texts escaped.
func encodeItem(v any) (json.RawMessage, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode an item: %w", err)
	}
	doc = escapeJSON(doc)
	for _, limit := range []int{maxFieldBytes, smallFieldBytes} {
		short, err := cutFields(doc, limit)
		if err != nil {
			return nil, fmt.Errorf("encode an item: %w", err)
		}
		if len(short) <= maxItemBytes {
			return short, nil
		}
	}
	return cutValue(doc, maxItemBytes-markerBytes)
}

// cutFields cuts the fields of an object that are larger than limit. Other values are cut as a whole.
func cutFields(doc []byte, limit int) ([]byte, error) {
	if len(doc) == 0 || doc[0] != '{' {
		if len(doc) <= limit {
			return doc, nil
		}
		return cutValue(doc, limit)
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	out := []byte{'{'}
	for d.More() {
		key, value, err := nextField(d)
		if err != nil {
			return nil, err
		}
		if len(value) > limit {
			if value, err = cutValue(value, limit); err != nil {
				return nil, err
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// nextField returns the next key, as JSON, and value of an object.
func nextField(d *json.Decoder) (key, value []byte, err error) {
	name, err := d.Token()
	if err != nil {
		return nil, nil, fmt.Errorf("read a key: %w", err)
	}
	if key, err = json.Marshal(name); err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return nil, nil, fmt.Errorf("read a value: %w", err)
	}
	return key, raw, nil
}

// cutValue returns a cutField for a JSON value.
func cutValue(value []byte, limit int) ([]byte, error) {
	text := string(value)
	if value[0] == '"' {
		if err := json.Unmarshal(value, &text); err != nil {
			return nil, fmt.Errorf("read a text: %w", err)
		}
	}
	doc, err := json.Marshal(cutField{Cut: boundedText(text, limit), Bytes: len(value)})
	if err != nil {
		return nil, fmt.Errorf("cut a field: %w", err)
	}
	return doc, nil
}

// boundedText returns an escaped text whose JSON has at most limit bytes. A longer text is cut, with a marker.
func boundedText(s string, limit int) string {
	var b strings.Builder
	size, fits, read := 0, 0, 0
	for i, r := range s {
		shown := term.EscapeRune(r)
		if size += jsonSize(shown); size > limit {
			return b.String()[:fits] + fmt.Sprintf("… [cut: %d of %d bytes]", read, len(s))
		}
		b.WriteString(shown)
		if size <= limit-markerBytes {
			fits, read = b.Len(), i+utf8.RuneLen(r)
		}
	}
	return b.String()
}

// jsonSize returns the size of a text within a JSON string, as package json encodes it.
func jsonSize(s string) (size int) {
	for _, r := range s {
		switch r {
		case '"', '\\', '\n', '\t':
			size += 2
		case '<', '>', '&', utf8.RuneError:
			size += 6
		default:
			size += utf8.RuneLen(r)
		}
	}
	return size
}

// fitting returns the number of items that fit into limit bytes.
func fitting(items []json.RawMessage, limit int) int {
	size := 0
	for i, item := range items {
		if size += len(item) + 1; size > limit {
			return i
		}
	}
	return len(items)
}

// escapeJSON escapes the texts of a JSON document with term.EscapeRune, so that a reader who decodes the document gets
// no control and format characters either.
func escapeJSON(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		if r == '\\' {
			r, n = escapedRune(doc)
		}
		if shown := term.EscapeRune(r); len(shown) > 1 && shown[0] == '\\' {
			out = append(append(out, '\\'), shown...)
		} else {
			out = append(out, doc[:n]...)
		}
		doc = doc[n:]
	}
	return out
}

// escapedRune returns the character of an escape sequence of JSON, and the length of the sequence.
func escapedRune(doc []byte) (r rune, n int) {
	switch doc[1] {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
		r = codeUnit(doc)
		if pair := utf16.DecodeRune(r, codeUnit(doc[6:])); pair != unicode.ReplacementChar {
			return pair, 12
		}
		if utf16.IsSurrogate(r) {
			return unicode.ReplacementChar, 6
		}
		return r, 6
	default:
		return rune(doc[1]), 2
	}
}

// codeUnit returns the value of a sequence \uXXXX at the beginning of doc, or 0 if there is none.
func codeUnit(doc []byte) rune {
	if len(doc) < 6 || doc[0] != '\\' || doc[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(doc[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

var errResultTooLarge = errors.New("the result is too large; request fewer items")
