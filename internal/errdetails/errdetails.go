// Package errdetails finds the details of an error (perdure.WithErrorDetails) in a chain of errors. An error with
// details implements As for a **Details.
package errdetails

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloadjson"
)

// Details holds the details of one error. It implements error only because errors.As requires that. No function returns
// it as an error.
type Details struct { //nolint:errname // it is never an error
	// Doc is the value as JSON. If it is nil, Omitted is the reason.
	Doc     json.RawMessage
	Omitted string
}

// Encode encodes a value as details. If the value cannot be encoded or is too large, the result has the reason instead.
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

// Decode decodes details into a T. If that is not possible, problem is the reason, and err is the decoding error, if
// any.
func Decode[T any](d *Details) (details T, problem string, err error) {
	if d.Omitted != "" {
		return details, d.Omitted, nil
	}
	if err := json.Unmarshal(d.Doc, &details); err != nil {
		problem = fmt.Sprintf("decode into %T: %v", details, err)
		return *new(T), problem, err //nolint:wrapcheck // the problem has its context
	}
	return details, "", nil
}

// cut truncates a text.
func cut(s string) string {
	const most = 1 << 10
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Error implements error.
func (*Details) Error() string { return "the details of an error" }

// As implements the method As of an error. If target is a **Details, As sets it to own, or to the details of cause if
// own is nil. It reports whether it found details.
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

// Own returns the details of a failure itself, without its causes. It returns nil if there are none.
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
		return &Details{Omitted: "in a store that this program cannot read"}
	}
	return &Details{Doc: doc}
}

// AddTo adds the details to a failure. A nil Details adds nothing.
func (d *Details) AddTo(f *history.Failure) {
	if d != nil {
		f.Details, f.DetailsOmitted = history.NewInlinePayload(d.Doc), d.Omitted
	}
}

// In returns the details of a failure, or of the first of its causes that has details. It returns nil if there are
// none.
func In(f *history.Failure) *Details {
	for ; f != nil; f = f.Cause {
		if d := Own(f); d != nil {
			return d
		}
	}
	return nil
}
