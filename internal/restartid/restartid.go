// Package restartid builds the part of an instance ID that a restart appends.
package restartid

import "strings"

// An ID that a restart derives is the ID of the original instance, Mark and hexadecimal digits of the idempotency key.
const (
	Mark   = ".restart-"
	Digits = 8
)

// Original returns an instance ID without the part that a restart appended.
func Original(instanceID string) string {
	at := len(instanceID) - len(Mark) - Digits
	if at < 0 || !strings.HasPrefix(instanceID[at:], Mark) ||
		strings.Trim(instanceID[at+len(Mark):], "0123456789abcdef") != "" {
		return instanceID
	}
	return instanceID[:at]
}
