package cancels

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// AttrCancels holds the decisions of an item in readable form.
const AttrCancels = "cancels"

// attrAfter is the segment of the previous decisions. In a block, it is the segment that completed the previous block.
// In a turn's decisions, it is the segment of the last earlier turn with decisions. There are no decisions between that
// segment and the segments of the item. Items of the first builds that wrote decisions lack it.
const attrAfter = "after"

// markJSONLimit is the maximum size of the item c in readable form. A larger record is stored in parts c#<n>, like the
// records of the previous release.
const markJSONLimit = 2 << 10

// turnJSONLimit is the maximum size of a turn's decisions in readable form, in an item of one write unit.
const turnJSONLimit = 900

// The limits of a turn's decisions. Workers read the cancel record before each activity, so its messages share a limit.
// Longer messages are replaced by the ending of a truncated message. The history contains the whole message. A block
// that exceeds its limit is not written, and readers read its turns instead.
const (
	recordLimit         = 768 << 10 // compressed; SegmentLimit and a block also fit in a transaction of 4 MB
	recordMessagesLimit = 256 << 10
	recordMessageKept   = 32 // the size of the ending of a truncated message
	blockLimit          = 64 << 10
)

// Decision is a stored decision. For scattered IDs, a bitmap is smaller than ranges.
type Decision struct {
	IDs     []history.Range `json:"ids,omitempty"`
	First   int64           `json:"first,omitempty"`
	Bitmap  []byte          `json:"bitmap,omitempty"` // starts at First, the lowest bit first
	Open    bool            `json:"open,omitempty"`
	Reason  string          `json:"reason"`
	Message string          `json:"message,omitempty"`
	At      time.Time       `json:"at"`
}

// EncodeTurn returns the items of a turn's decisions, and of the block that the turn completes. It returns none for a
// turn without decisions. The items do not depend on earlier decisions. Their cost therefore depends only on their own
// content, and no earlier decision can be lost.
func EncodeTurn(t *provider.Turn) ([]table.Item, error) {
	sequence := t.Head.Segment + 1
	items, err := encodeDecisions(t.Head.ExecutionID, table.CancelDecisionsSK(sequence), t.Cancels)
	if err == nil && len(items) > 0 && t.CancelsAfter != nil {
		items[0][attrAfter] = table.Num(*t.CancelsAfter)
	}
	if err != nil || t.CancelBlock == nil {
		return items, err
	}

	block, err := encodeDecisions(t.Head.ExecutionID, table.CancelBlockSK(sequence), t.CancelBlock.Cancels)
	if err != nil || len(block) != 1 || encodedSize(block[0]) > blockLimit {
		return items, nil //nolint:nilerr // nothing depends on the block
	}
	block[0][attrAfter] = table.Num(t.CancelBlock.After)
	return append(items, block[0]), nil
}

// encodedSize returns the size of the decisions in an item.
func encodedSize(it table.Item) int {
	return len(table.GetBytes(it, table.AttrZstd)) + len(table.GetString(it, AttrCancels)) // only one is set
}

// encodeDecisions returns one item with decisions, or several if they are large. The keys of further items sort after
// the first key and before any other key.
func encodeDecisions(executionID, sk string, cancels provider.Cancels) ([]table.Item, error) {
	if len(cancels) == 0 {
		return nil, nil
	}
	doc, err := encodeJSON(cancels)
	if err != nil {
		return nil, err
	}
	first := table.ExecutionKey(executionID, sk)
	if len(doc) <= turnJSONLimit {
		first[AttrCancels] = table.Str(string(doc))
		return []table.Item{first}, nil
	}
	packed := table.Compress(doc)
	if len(packed) > recordLimit {
		if open := fromFirstAll(cancels); open != nil {
			return encodeDecisions(executionID, sk, open)
		}
		return nil, errTooMany(len(cancels), len(packed))
	}
	return table.SplitDocument(first, packed), nil
}

// fromFirstAll drops the decisions before the first decision that covers all activities.
func fromFirstAll(cancels provider.Cancels) provider.Cancels {
	if i := slices.IndexFunc(cancels, func(c provider.ActivityCancel) bool { return c.All }); i > 0 {
		return cancels[i:]
	}
	return nil
}

func errTooMany(decisions, bytes int) error {
	return fmt.Errorf("%w: %d cancellations of activities have %d bytes compressed, more than the limit of %d; "+
		"cancel more activities with one call, or in several turns",
		provider.ErrTooLarge, decisions, bytes, recordLimit)
}

func encodeJSON(cancels provider.Cancels) ([]byte, error) {
	entries := make([]Decision, len(cancels))
	room := recordMessagesLimit
	for i := range cancels {
		entries[i] = NewDecision(&cancels[i])
		if room -= len(entries[i].Message); room < 0 && len(entries[i].Message) > recordMessageKept {
			entries[i].Message = history.TruncateMessage(entries[i].Message, 0)
		}
	}
	doc, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return doc, nil
}

// EncodeMark returns the items of c.
func EncodeMark(executionID string, cancels provider.Cancels) ([]table.Item, error) {
	doc, err := encodeJSON(cancels)
	if err != nil {
		return nil, err
	}
	c := table.ExecutionKey(executionID, table.SKCancelMark)
	if len(doc) <= markJSONLimit {
		c[AttrCancels] = table.Str(string(doc))
		return []table.Item{c}, nil
	}
	items := []table.Item{c}
	packed := table.Compress(doc)
	if len(packed) > recordLimit {
		if open := fromFirstAll(cancels); open != nil {
			return EncodeMark(executionID, open)
		}
		return nil, errTooMany(len(cancels), len(packed))
	}
	for bytes := range slices.Chunk(packed, table.PartLimit) {
		part := table.ExecutionKey(executionID, table.CancelMarkPartSK(len(items)-1))
		part[table.AttrZstd] = table.Bin(bytes)
		items = append(items, part)
	}
	c[table.AttrParts] = table.Num(int64(len(items) - 1))
	return items, nil
}

// The approximate size of a stored range in bytes, and the number of bits of a byte.
const (
	rangeBytes = 12
	bitsAByte  = 6 // in base64
)

// NewDecision returns the stored form of a decision, with ranges or a bitmap.
func NewDecision(c *provider.ActivityCancel) Decision {
	e := Decision{IDs: c.IDs, Open: c.All, Reason: c.Reason, Message: c.Message, At: c.At}
	if len(c.IDs) < 2 {
		return e
	}
	first, last := c.IDs[0].First, c.IDs[0].Last
	for _, r := range c.IDs {
		first, last = min(first, r.First), max(last, r.Last)
	}
	if int64(len(c.IDs))*rangeBytes <= (last-first)/bitsAByte {
		return e
	}

	e.IDs = nil
	e.First = first
	e.Bitmap = make([]byte, (last-first)/8+1)
	for _, r := range c.IDs {
		for id := r.First; id <= r.Last; id++ {
			e.Bitmap[(id-first)/8] |= 1 << ((id - first) % 8)
		}
	}
	return e
}

// Cancel returns the decision.
func (e *Decision) Cancel() provider.ActivityCancel {
	c := provider.ActivityCancel{IDs: e.IDs, All: e.Open, Reason: e.Reason, Message: e.Message, At: e.At}
	for i := range int64(len(e.Bitmap)) * 8 {
		if e.Bitmap[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		c.IDs = history.AppendID(c.IDs, e.First+i)
	}
	return c
}

func decode(executionID, sk string, doc []byte) (provider.Cancels, error) {
	var entries []Decision
	if err := json.Unmarshal(doc, &entries); err != nil {
		return nil, fmt.Errorf(
			"dynamo: %w: item %s %s: %w", provider.ErrCorrupt, table.ExecutionPK(executionID), sk, err,
		)
	}
	cancels := make(provider.Cancels, len(entries))
	for i := range entries {
		cancels[i] = entries[i].Cancel()
	}
	return cancels, nil
}
