package sqsqueue

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// DeadLetter copies a record to the dead-letter queue of its queue. The message attribute "error" contains the error.
func (qs *Queues) DeadLetter(ctx context.Context, queue string, u provider.Unreadable) error {
	return qs.PutDeadLetter(ctx, queue, u, u.Record.Group, table.Digest("dead", u.Record.ID))
}

// PutDeadLetter sends a copy to the dead-letter queue of a queue. It uses the group and the deduplication ID only if
// that is a FIFO queue.
func (qs *Queues) PutDeadLetter(ctx context.Context, queue string, u provider.Unreadable, group, dedup string) error {
	url, ok := qs.DeadLetters[queue]
	if !ok {
		return fmt.Errorf("dynamo: hub %q: %w", qs.Hub,
			&provider.FieldError{Field: "DeadLetters", Problem: fmt.Sprintf("has no dead-letter queue for %q", queue)})
	}
	e := Entry{Body: u.Record.Body, reason: reason(u.Err, MessageLimit-len(u.Record.Body))}
	if IsFIFO(queue) {
		e.Group = group
		e.Dedup = dedup
	}
	return qs.SendBatch(ctx, url, []Entry{e})
}

// reasonLimit is the maximum size of an error, so that it can be read with the record.
const reasonLimit = 1 << 10

// reason returns an error in the form of a message attribute: without the characters that SQS rejects, and within the
// bytes that the body leaves.
func reason(err error, left int) string {
	allowed := strings.Map(func(r rune) rune {
		if r < ' ' || r == '\uFFFE' || r == '\uFFFF' {
			return ' '
		}
		return r
	}, err.Error())
	most := max(0, min(reasonLimit, left-len(AttrReason)-len(attrReasonType)))
	return strings.ToValidUTF8(allowed[:min(most, len(allowed))], "")
}

// DeadLettersURL returns the URL of the dead-letter queue of a queue.
func (qs *Queues) DeadLettersURL(queue string) (string, error) {
	url, ok := qs.DeadLetters[queue]
	if !ok {
		return "", fmt.Errorf("dynamo: hub %q: %w", qs.Hub,
			&provider.FieldError{Field: "queue", Problem: fmt.Sprintf("%q has no dead-letter queue", queue)})
	}
	return url, nil
}
