package updating

import (
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Codes of updates without a result. The HTTP API uses them too. The other codes are those of rejections
// (history.RejectedNoHandler and others).
const (
	CodeRejected = "rejected"
	CodeFailed   = "failed"
	CodeAborted  = string(provider.UpdateAborted)
	CodeExpired  = string(provider.UpdateResultExpired)
)

const (
	prefixRejected = "rejected: "
	prefixFailed   = "handler failed: "
	prefixAborted  = "execution ended before the handler returned: "
)

// Problem returns the code and the description of an update that was rejected, failed or was aborted.
func Problem(r *provider.UpdateResult) (code, message string) {
	switch r.Outcome {
	case provider.UpdateCompleted:
		return CodeFailed, prefixFailed + r.Error.Message
	case provider.UpdateRejected:
		why := "unknown reason"
		if r.Error != nil {
			why = r.Error.Message
		}
		if r.Reason == history.RejectedByValidator {
			return CodeRejected, prefixRejected + why
		}
		return r.Reason, prefixRejected + why
	case provider.UpdateAborted:
		return CodeAborted, prefixAborted + r.Reason
	default:
		return CodeExpired, "accepted earlier, and its result is no longer stored"
	}
}

// ParseProblem returns the result for which Problem returned the code and the message. f is the failure of the update,
// or nil if it is not known.
func ParseProblem(code, message string, f *history.Failure, details history.Payload) *provider.UpdateResult {
	r := &provider.UpdateResult{Outcome: provider.UpdateRejected, Reason: code, Error: f}
	text := strings.TrimPrefix(message, prefixRejected)
	switch code {
	case CodeFailed:
		r.Outcome, text = provider.UpdateCompleted, strings.TrimPrefix(message, prefixFailed)
	case CodeAborted:
		r.Outcome, r.Reason = provider.UpdateAborted, strings.TrimPrefix(message, prefixAborted)
		return r
	case CodeExpired:
		r.Outcome = provider.UpdateResultExpired
		return r
	case CodeRejected:
		r.Reason = history.RejectedByValidator
	}
	if r.Error == nil { // of an API of an earlier release
		r.Error = &history.Failure{Type: history.TypeError, Message: text, Details: details}
	}
	return r
}
