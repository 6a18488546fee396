package dynamo

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The attributes of a segment's items: a header in every first part, and the events as JSON (attrEvents) or compressed
// (attrZstd).
const (
	attrNonce  = "nonce"
	attrParts  = "parts"
	attrInbox  = "inbox"
	attrWM     = "wm"
	attrEvents = "events"
	attrZstd   = "zstd"

	// These are in an execution's first segment: its instance, the previous execution, and the oldest execution whose
	// documents it refers to. The latter and later executions must not be erased before this execution.
	attrInstance = "instance"
	attrPrevious = "previous"
	attrRefs     = "refs"
	// attrNext is the next execution, in the stub of a past execution's start.
	attrNext = "next"

	// attrStub is the time when the segment was deleted. An item with it only occupies the key (R17).
	attrStub = "stub"
)

const (
	// jsonLimit is the size up to which a segment stays readable in the console. Above it, zstd saves write units.
	jsonLimit = 4 << 10
	// partLimit leaves space for key and header in an item of 400 KB (a DynamoDB quota).
	partLimit = 350 << 10
	// turnLimit leaves space for the other items in a transaction of 4 MB (a DynamoDB quota).
	turnLimit = 3 << 20
	// decodeLimit is the maximum decompressed size of a segment.
	decodeLimit = 256 << 20
)

// Both are safe for concurrent use with their All methods, and expensive to create.
var (
	compressor   = ready(must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))))
	decompressor = must(zstd.NewReader(nil, zstd.WithDecoderMaxMemory(decodeLimit), zstd.WithDecoderConcurrency(0)))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // cannot happen, because the options are constants
	}
	return v
}

// ready makes the encoder create its channel now. A channel that is created on first use in a testing/synctest bubble
// panics in the next bubble.
func ready(e *zstd.Encoder) *zstd.Encoder {
	e.EncodeAll(nil, nil)
	return e
}

// encodeSegment returns the items of a segment, the first part first.
func encodeSegment(executionID, nonce string, s provider.Segment) ([]item, error) {
	doc, err := history.Encode(s.Events)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", s.Sequence, err)
	}
	first := item{
		attrPK: str(executionPK(executionID)), attrSK: str(segmentSK(s.Sequence, 0)),
		attrNonce: str(nonce), attrParts: num(1), attrInbox: str(s.Watermark.Inbox), attrWM: str(s.Watermark.Sequence),
	}
	if len(doc) <= jsonLimit {
		first[attrEvents] = str(string(doc))
		return []item{first}, nil
	}
	packed, err := pack(doc)
	if err != nil {
		return nil, err
	}
	return split(first, executionID, s.Sequence, packed), nil
}

// pack compresses a document. It returns an error if the document could not be written or read again.
func pack(doc []byte) ([]byte, error) {
	const advice = "pass references instead of large payloads, or schedule fewer tasks in one turn"
	if len(doc) > decodeLimit {
		return nil, fmt.Errorf("%w: events have %d bytes, more than the limit of %d; %s", provider.ErrTooLarge,
			len(doc),
			decodeLimit, advice)
	}
	packed := compressor.EncodeAll(doc, nil)
	if len(packed) > turnLimit {
		return nil, fmt.Errorf("%w: events have %d bytes compressed, more than the limit of %d; %s",
			provider.ErrTooLarge,
			len(packed), turnLimit, advice)
	}
	return packed, nil
}

func split(first item, executionID string, sequence int64, packed []byte) []item {
	items := []item{first}
	first[attrZstd] = &types.AttributeValueMemberB{Value: packed[:min(partLimit, len(packed))]}
	for at := partLimit; at < len(packed); at += partLimit {
		items = append(items, item{
			attrPK: str(executionPK(executionID)), attrSK: str(segmentSK(sequence, len(items))),
			attrZstd: &types.AttributeValueMemberB{Value: packed[at:min(at+partLimit, len(packed))]},
		})
	}
	first[attrParts] = num(int64(len(items)))
	return items
}

// tornError means that the items that were read are not a complete history. Another read may find it complete (R8).
type tornError struct{ what string }

func (e *tornError) Error() string { return e.what }

// decodeSegments decodes the items of an execution, sorted by key, and checks that segments and parts have no gap (R8).
func decodeSegments(items []item) (segments []provider.Segment, err error) {
	c := cutter{items: items, last: true}
	err = c.decode(nil, func(s provider.Segment) bool {
		segments = append(segments, s)
		return true
	})
	return segments, err
}

// cutter splits the items of an execution, sorted by key, into segments. The items arrive page by page, and a page can
// end within a segment. It checks for every reader of a history that segments and parts have no gap (R8).
type cutter struct {
	items []item // the remaining items, from the due segment on
	due   int64
	last  bool // there is no further page
}

// add appends a page.
func (c *cutter) add(page []item, last bool) {
	c.items = append(c.items, page...)
	c.last = last
}

// cut removes and returns the items of the due segment. It returns none if no items remain, or if the next page
// contains more of them. It returns errStub if the segment was deleted.
func (c *cutter) cut() (parts []item, err error) {
	if len(c.items) == 0 {
		return nil, nil
	}
	first := c.items[0]
	sk := getString(first, attrSK)
	sequence, part, err := parseSegmentSK(sk)
	n := int(getNumber(first, attrParts))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
	case isStub(first):
		return nil, errStub
	case sequence != c.due || part != 0:
		return nil, &tornError{fmt.Sprintf("item %s instead of segment %d", sk, c.due)}
	case n > len(c.items) && !c.last:
		return nil, nil
	case n < 1 || n > len(c.items):
		return nil, &tornError{fmt.Sprintf("item %s has %d parts, but %d items follow", sk, n, len(c.items))}
	}

	parts = c.items[:n]
	c.items = c.items[n:]
	c.due++
	return parts, nil
}

// decode yields the complete segments whose documents are wanted (nil means all) until yield returns false.
func (c *cutter) decode(wanted func(doc []byte) bool, yield func(s provider.Segment) bool) error {
	for {
		sequence := c.due
		parts, err := c.cut()
		if err != nil || len(parts) == 0 {
			return err
		}
		if wanted != nil {
			doc, err := segmentDocument(sequence, parts)
			if err != nil {
				return err
			}
			if !wanted(doc) {
				continue
			}
		}
		s, err := decodeSegment(sequence, parts)
		if err != nil || !yield(s) {
			return err
		}
	}
}

func decodeSegment(sequence int64, parts []item) (provider.Segment, error) {
	s := provider.Segment{
		Sequence:  sequence,
		Watermark: provider.Position{Inbox: getString(parts[0], attrInbox), Sequence: getString(parts[0], attrWM)},
	}
	doc, err := segmentDocument(sequence, parts)
	if err != nil {
		return s, err
	}
	if s.Events, err = history.Decode(doc); err != nil {
		return s, corruptSegment(sequence, parts, err)
	}
	if len(s.Events) == 0 {
		return s, corruptSegment(sequence, parts, errNoEvents)
	}
	return s, nil
}

func segmentDocument(sequence int64, parts []item) ([]byte, error) {
	if v, ok := parts[0][attrEvents].(*types.AttributeValueMemberS); ok {
		return []byte(v.Value), nil
	}
	var packed bytes.Buffer
	for n, part := range parts {
		v, ok := part[attrZstd].(*types.AttributeValueMemberB)
		if sk := getString(part, attrSK); !ok || sk != segmentSK(sequence, n) {
			return nil, &tornError{fmt.Sprintf("item %s instead of part %d of segment %d", sk, n, sequence)}
		}
		packed.Write(v.Value)
	}
	doc, err := decompressor.DecodeAll(packed.Bytes(), nil)
	if err != nil {
		return nil, corruptSegment(sequence, parts, err)
	}
	return doc, nil
}

// errNoEvents means that a segment has no events: every segment has at least one.
var errNoEvents = errors.New("contains no events")

func corruptSegment(sequence int64, parts []item, err error) error {
	return fmt.Errorf("%w: item %s %s: %w", provider.ErrCorrupt, getString(parts[0], attrPK), segmentSK(sequence, 0), err)
}
