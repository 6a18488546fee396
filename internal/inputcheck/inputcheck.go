// Package inputcheck checks the input of calls. Its errors are *provider.FieldError values.
package inputcheck

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// Limits of the input. Lengths are in bytes.
const (
	MaxPageSize           = 1000 // number of items
	MaxOrchestrationBytes = 256
	MaxVersionBytes       = 64
	MaxMessageBytes       = 1024
	// maxCursorBytes is longer than any cursor. The longest cursor contains an instance ID whose bytes are escaped.
	maxCursorBytes = 16 << 10
)

// Fields that several calls share.
const (
	FieldCursor  = "cursor"
	FieldMessage = "message"
	FieldNote    = "note"
)

// InstanceID checks an instance ID.
func InstanceID(id string) error {
	return Text("instanceId", id, 1, provider.MaxInstanceIDBytes)
}

// Message checks the reason of a cancel, terminate, pause or resume.
func Message(message string) error {
	return Text(FieldMessage, message, 0, MaxMessageBytes)
}

// Limit checks the maximum number of items of a page. 0 means the default.
func Limit(limit int) error {
	if limit < 0 || limit > MaxPageSize {
		return &provider.FieldError{Field: "limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", MaxPageSize, limit)}
	}
	return nil
}

// Cursor rejects a text that cannot be a cursor.
func Cursor(cursor string) error { return Text(FieldCursor, cursor, 0, maxCursorBytes) }

// Status checks a status that selects instances. An empty status selects all.
func Status(field string, s provider.RuntimeStatus) error {
	switch s {
	case "", provider.StatusPending, provider.StatusRunning, provider.StatusCancelling, provider.StatusBlocked,
		provider.StatusPaused, provider.StatusCompleted, provider.StatusFailed, provider.StatusCancelled,
		provider.StatusTerminated, provider.StatusDeleting:
		return nil
	default:
		return &provider.FieldError{Field: field, Problem: fmt.Sprintf(
			"must be one of %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, is %q",
			provider.StatusPending, provider.StatusRunning, provider.StatusCancelling, provider.StatusBlocked,
			provider.StatusPaused, provider.StatusCompleted, provider.StatusFailed, provider.StatusCancelled,
			provider.StatusTerminated, provider.StatusDeleting, provider.Excerpt(s))}
	}
}

// Selection checks the criteria that lists and bulk jobs have in common.
func Selection(orchestration, version, parentID string, tags map[string]string) error {
	return errors.Join(Text("name", orchestration, 0, MaxOrchestrationBytes),
		Text("version", version, 0, MaxVersionBytes),
		Text("parent", parentID, 0, provider.MaxInstanceIDBytes), Tags(tags))
}
