package sqsqueue

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// GroupID returns the message group of an instance. It is a digest because SQS allows 128 ASCII characters, and an
// instance ID can have 1,024 bytes of UTF-8 (R1).
func GroupID(instanceID string) string { return table.Digest("group", instanceID) }

// FairGroup returns the message group of a fairness key, by which SQS's fair queues distinguish tenants.
func FairGroup(key string) string { return table.Digest("fair", key) }

// ExclusiveGroup returns the message group of an exclusive key.
func ExclusiveGroup(key string) string { return table.Digest("exclusive", key) }

// NewEntry returns an entry with a JSON document as its body. It returns an error if the body exceeds most bytes.
func NewEntry(doc string, id int64, most int) (Entry, error) {
	body := SqsText(doc)
	if len(body) > most {
		return Entry{}, fmt.Errorf("message of %d bytes exceeds the limit of %d bytes", len(body), most)
	}
	return Entry{ID: id, Body: body}, nil
}

// Quotas of SQS.
const (
	MessageLimit = 1 << 20 // bytes, of a message and of a batch
	BatchLimit   = 10      // messages
)

// BodyLimit is the maximum size of a message's body when it is first sent. It leaves space for Redrive, in case the
// message is recovered from a dead-letter queue.
const BodyLimit = MessageLimit - 512

// BodyLimitFor returns the maximum size of a message's body.
func BodyLimitFor(p *provider.Redrive) int {
	if p != nil {
		return MessageLimit
	}
	return BodyLimit
}

// Entry is a message to send.
type Entry struct {
	ID    int64
	Body  string
	Group string // FIFO only
	Dedup string // FIFO only
	Fair  string // the message group of a fairness key, standard only
	// FIFO only: a batch may contain several entries of its group, whose order can change if SQS accepts only some
	InOneBatch bool
	Delay      int32 // seconds, standard only
	IsEvent    bool  // id is an event ID of the sending execution, and unique in its queue

	reason string // for dead letters: the error
}

// The message attribute with the error of a dead letter.
const (
	AttrReason     = "error"
	attrReasonType = "String"
)

// SqsText returns JSON that SQS accepts. SQS rejects U+FFFE and U+FFFF, which JSON does not escape.
func SqsText(doc string) string {
	return strings.ReplaceAll(strings.ReplaceAll(doc, "\uFFFE", `\ufffe`), "\uFFFF", `\uffff`)
}
