// Package response writes the responses of the HTTP API, which must fit the response of a Lambda function.
package response

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/httpapi/internal/problem"
)

// Limit is the maximum Size of a body. The response of a Lambda function is JSON of at most 6 MB that contains the body
// as a string, the status and the headers. The limit also applies outside Lambda, so that all deployments return the
// same pages.
const Limit = 6<<20 - 64<<10

// Size returns the number of bytes of a body in the response of a Lambda function: as a JSON string.
func Size(body []byte) int {
	doc, _ := Encode(string(body)) // any string can be encoded
	return len(doc) - len("\n")
}

// Encode returns the JSON of a response. It leaves payloads unchanged: HTML characters are not escaped.
func Encode(v any) ([]byte, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("httpapi: encode response: %w", err)
	}
	return body.Bytes(), nil
}

// Buffer counts the remaining bytes of a response for the items of a list.
type Buffer struct{ left int }

// BufferFor returns the Buffer of a response, given the response without its items.
func BufferFor(v any) (Buffer, error) {
	body, err := Encode(v)
	return Buffer{Limit - Size(body)}, err
}

// Add adds an item with its comma, and reports whether the item fits.
func (b *Buffer) Add(item []byte) bool {
	b.left -= Size(item) // one of the two quotes is for the comma
	return b.left >= 0
}

// Fitting returns the number of leading items that fit a response, given the response without its items.
func Fitting[T any](v any, items []T) (int, error) {
	b, err := BufferFor(v)
	if err != nil {
		return 0, err
	}
	for i := range items {
		doc, err := Encode(&items[i])
		if err != nil {
			return 0, err
		}
		if !b.Add(doc) {
			return i, nil
		}
	}
	return len(items), nil
}

// Page reads a page that fits a response. If a page is too large, it reads the page again with a lower limit, because
// only the provider can create the cursor after fewer items.
func Page[P, T any](
	ctx context.Context, limit int64, read func(ctx context.Context, limit int) (P, error),
	split func(P) (rest any, items []T),
) (P, error) {
	for {
		p, err := read(ctx, int(limit))
		if err != nil {
			return p, err
		}
		rest, items := split(p)
		fit, err := Fitting(rest, items)
		if err != nil || fit == len(items) {
			return p, err
		}
		if fit == 0 {
			doc, err := Encode(&items[0])
			if err == nil {
				err = problem.ResponseTooLarge("limit", "the next item", Size(doc), Limit,
					"use the command line or the Go client")
			}
			return p, err
		}
		limit = int64(fit)
	}
}
