package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// answerLimit is how much of a Lambda's answer a body may take: the answer is JSON of at most 6 MB in which the body is
// a string. What is kept back is for the status and the headers. Where no Lambda answers the limit is the same, so that
// a caller sees the same pages everywhere.
const answerLimit = 6<<20 - 64<<10

// wireSize is how many bytes a body takes in a Lambda's answer: as a string of JSON, as encode writes it, and the
// runtime does.
func wireSize(body []byte) int {
	doc, _ := encode(string(body)) // any string can be encoded
	return len(doc) - len("\n")
}

// errAnswerTooLarge is the error for what no answer can hold, with the way to get it.
func errAnswerTooLarge(field, what string, size int, instead string) error {
	return &problem{
		Status: http.StatusUnprocessableEntity, Code: codeAnswerTooLarge, Field: field,
		Detail: fmt.Sprintf("%s has %d bytes, more than the response limit of %d; %s",
			what, size, answerLimit, instead),
	}
}

// encode is the JSON of an answer. Payloads stay as they are: nothing is escaped for HTML.
func encode(v any) ([]byte, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("httpapi: encode response: %w", err)
	}
	return body.Bytes(), nil
}

// room is how much an answer has left for the items of a list, of which each takes what its JSON takes and a comma.
type room struct{ left int }

// roomBeside is the room that an answer has which without its items is v.
func roomBeside(v any) (room, error) {
	body, err := encode(v)
	return room{answerLimit - wireSize(body)}, err
}

// take takes the room of an item, and reports whether there was so much.
func (r *room) take(item []byte) bool {
	r.left -= wireSize(item) // its two quotes make up for the comma
	return r.left >= 0
}

// fitting is how many of the first items an answer holds which without them is v.
func fitting[T any](v any, items []T) (int, error) {
	r, err := roomBeside(v)
	if err != nil {
		return 0, err
	}
	for i := range items {
		doc, err := encode(&items[i])
		if err != nil {
			return 0, err
		}
		if !r.take(doc) {
			return i, nil
		}
	}
	return len(items), nil
}

// page reads a page that fits an answer: one that does not is asked for again, of as many items as fit. So the cursor
// of a page is the provider's own, whatever it may be, and a page that is as large as that costs a second read.
func page[P, T any](
	ctx context.Context, limit int64, read func(ctx context.Context, limit int) (P, error),
	split func(P) (rest any, items []T),
) (P, error) {
	for {
		p, err := read(ctx, int(limit))
		if err != nil {
			return p, err
		}
		rest, items := split(p)
		fit, err := fitting(rest, items)
		if err != nil || fit == len(items) {
			return p, err
		}
		if fit == 0 {
			doc, err := encode(&items[0])
			if err == nil {
				err = errAnswerTooLarge("limit", "the next item", wireSize(doc),
					"use the command line or the Go client")
			}
			return p, err
		}
		limit = int64(fit)
	}
}
