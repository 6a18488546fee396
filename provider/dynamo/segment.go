package dynamo

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// encodeSegment returns the items of a segment, the first part first.
func encodeSegment(executionID, nonce string, s provider.Segment) ([]table.Item, error) {
	doc, err := history.Encode(s.Events)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", s.Sequence, err)
	}
	first := table.Item{
		table.AttrPK: table.Str(table.ExecutionPK(executionID)), table.AttrSK: table.Str(table.SegmentSK(s.Sequence, 0)),
		table.AttrNonce: table.Str(nonce), table.AttrParts: table.Num(1), table.AttrInbox: table.Str(s.Watermark.Inbox), table.AttrWM: table.Str(s.Watermark.Sequence),
	}
	if len(doc) <= table.JSONLimit {
		first[table.AttrEvents] = table.Str(string(doc))
		return []table.Item{first}, nil
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
	if len(doc) > table.DecodeLimit {
		return nil, fmt.Errorf("%w: events have %d bytes, more than the limit of %d; %s", provider.ErrTooLarge,
			len(doc),
			table.DecodeLimit, advice)
	}
	packed := table.Compress(doc)
	if len(packed) > table.TurnLimit {
		return nil, fmt.Errorf("%w: events have %d bytes compressed, more than the limit of %d; %s",
			provider.ErrTooLarge,
			len(packed), table.TurnLimit, advice)
	}
	return packed, nil
}

func split(first table.Item, executionID string, sequence int64, packed []byte) []table.Item {
	items := []table.Item{first}
	first[table.AttrZstd] = &types.AttributeValueMemberB{Value: packed[:min(table.PartLimit, len(packed))]}
	for at := table.PartLimit; at < len(packed); at += table.PartLimit {
		items = append(items, table.Item{
			table.AttrPK: table.Str(table.ExecutionPK(executionID)), table.AttrSK: table.Str(table.SegmentSK(sequence, len(items))),
			table.AttrZstd: &types.AttributeValueMemberB{Value: packed[at:min(at+table.PartLimit, len(packed))]},
		})
	}
	first[table.AttrParts] = table.Num(int64(len(items)))
	return items
}

// decodeSegments decodes the items of an execution, sorted by key, and checks that segments and parts have no gap (R8).
func decodeSegments(items []table.Item) (segments []provider.Segment, err error) {
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
	items []table.Item // the remaining items, from the due segment on
	due   int64
	last  bool // there is no further page
}

// add appends a page.
func (c *cutter) add(page []table.Item, last bool) {
	c.items = append(c.items, page...)
	c.last = last
}

// cut removes and returns the items of the due segment. It returns none if no items remain, or if the next page
// contains more of them. It returns ErrDeleted if the segment was deleted.
func (c *cutter) cut() (parts []table.Item, err error) {
	if len(c.items) == 0 {
		return nil, nil
	}
	first := c.items[0]
	sk := table.GetString(first, table.AttrSK)
	sequence, part, err := table.ParseSegmentSK(sk)
	n := int(table.GetNumber(first, table.AttrParts))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
	case table.IsStub(first):
		return nil, table.ErrDeleted
	case sequence != c.due || part != 0:
		return nil, table.NewTornError("item %s instead of segment %d", sk, c.due)
	case n > len(c.items) && !c.last:
		return nil, nil
	case n < 1 || n > len(c.items):
		return nil, table.NewTornError("item %s has %d parts, but %d items follow", sk, n, len(c.items))
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

func decodeSegment(sequence int64, parts []table.Item) (provider.Segment, error) {
	s := provider.Segment{
		Sequence:  sequence,
		Watermark: provider.Position{Inbox: table.GetString(parts[0], table.AttrInbox), Sequence: table.GetString(parts[0], table.AttrWM)},
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

func segmentDocument(sequence int64, parts []table.Item) ([]byte, error) {
	if v, ok := parts[0][table.AttrEvents].(*types.AttributeValueMemberS); ok {
		return []byte(v.Value), nil
	}
	var packed bytes.Buffer
	for n, part := range parts {
		v, ok := part[table.AttrZstd].(*types.AttributeValueMemberB)
		if sk := table.GetString(part, table.AttrSK); !ok || sk != table.SegmentSK(sequence, n) {
			return nil, table.NewTornError("item %s instead of part %d of segment %d", sk, n, sequence)
		}
		packed.Write(v.Value)
	}
	doc, err := table.Decompress(packed.Bytes())
	if err != nil {
		return nil, corruptSegment(sequence, parts, err)
	}
	return doc, nil
}

// errNoEvents means that a segment has no events: every segment has at least one.
var errNoEvents = errors.New("contains no events")

func corruptSegment(sequence int64, parts []table.Item, err error) error {
	return fmt.Errorf("%w: item %s %s: %w", provider.ErrCorrupt, table.GetString(parts[0], table.AttrPK), table.SegmentSK(sequence, 0), err)
}
