package failures

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/perdure/perdure/history"
)

// maxMessageBytes limits the message of a failure to the size of a payload.
const maxMessageBytes = 16 << 10

// Truncate truncates a text that is too long for the message of a failure.
func Truncate(s string) string {
	if len(s) <= maxMessageBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessageBytes], "") + "…"
}

// Text returns the type, if it is not history.TypeError, and the message of a failure.
func Text(failureType, message string) string {
	if failureType == history.TypeError {
		return message
	}
	return failureType + ": " + message
}

// Recover recovers a panic. It sets doc to nil and f to the failure of the panic, with its stack. Defer it directly.
func Recover(doc *json.RawMessage, f **history.Failure) {
	if r := recover(); r != nil {
		*doc, *f = nil, &history.Failure{
			Type: history.TypePanic, Message: Truncate(fmt.Sprint(r)) + "\n\n" + Truncate(string(debug.Stack())),
		}
	}
}

// Error is a failure as an error, with its type and message.
type Error struct{ Failure *history.Failure }

// Error implements error.
func (e *Error) Error() string { return e.Failure.Message }

// ErrorType returns the type of the failure.
func (e *Error) ErrorType() string { return e.Failure.Type }

const tooLarge = "payload too large: %d bytes, limit %d: "

// TooLargeMessage returns the message of a payload that is too large.
func TooLargeMessage(name string, bytes, limit int) string {
	return fmt.Sprintf(tooLarge, bytes, limit) + name
}

// ParseTooLarge parses the result of TooLargeMessage, even within a longer message. If it cannot parse the message, it
// returns the message as the name.
func ParseTooLarge(message string) (name string, bytes, limit int) {
	head, _, _ := strings.Cut(tooLarge, "%")
	text := message
	if i := strings.Index(message, head); i >= 0 {
		text = message[i:]
	}
	parts := strings.SplitN(text, ": ", 3)
	if n, err := fmt.Sscanf(text, tooLarge, &bytes, &limit); err != nil || n != 2 || len(parts) < 3 {
		return message, bytes, limit
	}
	return parts[2], bytes, limit
}
