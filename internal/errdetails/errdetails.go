// Package errdetails is how the details of an error (perdure.WithErrorDetails) are found in a chain of errors: whoever has some implements As for a **Details.
package errdetails

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloadjson"
)

// Details are those of one error. They are an error so that errors.As looks for them; none is ever returned as one.
type Details struct { //nolint:errname // it is never an error
	// Doc is the value as JSON; nil where Omitted says why there is none.
	Doc     json.RawMessage
	Omitted string
}

// Encode makes details of a value: as JSON, or why there are none.
func Encode(v any) *Details {
	doc, err := payloadjson.Marshal(v)
	switch {
	case err != nil:
		return &Details{Omitted: "encode: " + cut(err.Error())}
	case len(doc) > history.MaxFailureDetailsBytes:
		return &Details{Omitted: history.DetailsTooLargeMessage(len(doc))}
	default:
		return &Details{Doc: doc}
	}
}

// cut bounds a text.
func cut(s string) string {
	const most = 1 << 10
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Error implements error.
func (*Details) Error() string { return "the details of an error" }

// As sets what errors.As looks for to details, or where those are nil to those of a failure or its causes, if that is what it looks for and there are some.
func As(target any, own *Details, cause *history.Failure) bool {
	to, ok := target.(**Details)
	if !ok {
		return false
	}
	if own == nil {
		own = In(cause)
	}
	if own != nil {
		*to = own
	}
	return own != nil
}

// Own are the details of a failure itself; nil where it has none.
func Own(f *history.Failure) *Details {
	switch {
	case f.DetailsOmitted != "":
		return &Details{Omitted: f.DetailsOmitted}
	case len(f.Details) == 0:
		return nil
	}
	if s, sealed := f.Details.Encoded(); sealed {
		return &Details{Omitted: fmt.Sprintf("encoded by codec %q, cannot decode %d bytes of JSON", s.Codec, s.Bytes)}
	}
	doc, plain := f.Details.Document()
	if !plain {
		return &Details{Omitted: "stored where this program cannot read them"}
	}
	return &Details{Doc: doc}
}

// In are the details of a failure, or of the first of its causes that has some.
func In(f *history.Failure) *Details {
	for ; f != nil; f = f.Cause {
		if d := Own(f); d != nil {
			return d
		}
	}
	return nil
}
