package describe

import (
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
)

// lastErrorText is like Failure, but omits the default type of errors.
func lastErrorText(f *history.Failure) string {
	if f.Type == history.TypeError && f.Message != "" {
		return f.Message
	}
	return Failure(f)
}

// Failure returns the type, the cancel reason and the message of a failure. It omits the type if the message begins
// with it.
func Failure(f *history.Failure) string {
	text := f.Type
	if f.Reason == "" && strings.HasPrefix(f.Message, f.Type+" ") {
		return f.Message
	}
	if f.Reason != "" {
		text += " (" + f.Reason + ")"
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	return text
}

// detailsText returns the details of a failure, the reason why they are not shown, or "" if there are none.
func detailsText(f *history.Failure) string {
	if s, sealed := client.EncodedPayloadOf(f.Details); sealed {
		return EncodedPayload(&s)
	}
	switch d := errdetails.Own(f); {
	case d == nil:
		return ""
	case d.Omitted != "":
		return "omitted: " + d.Omitted
	default:
		return string(d.Doc)
	}
}
