package segments

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/documents"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// EncodeStart returns the items of an execution's first segment, with its instance and the previous execution.
func EncodeStart(instanceID, executionID, previous string, s provider.Segment) ([]table.Item, error) {
	parts, err := Encode(executionID, rand.Text(), s)
	if err != nil {
		return nil, err
	}
	parts[0][table.AttrInstance] = table.Str(instanceID)
	if previous != "" {
		parts[0][table.AttrPrevious] = table.Str(previous)
	}
	if oldest := documents.OldestExecution(&s.Events[0]); oldest != "" {
		parts[0][table.AttrRefs] = table.Str(oldest)
	}
	return parts, nil
}

// KeysOnly excludes large attributes from a query.
func KeysOnly(in *dynamodb.QueryInput) *dynamodb.QueryInput {
	in.ProjectionExpression = aws.String("#sk, #stub, #wm, #inbox, #previous, #ttl")
	in.ExpressionAttributeNames = table.Names(
		table.AttrSK, table.AttrStub, table.AttrWM, table.AttrInbox, table.AttrPrevious, table.AttrTTL,
	)
	return in
}

// DecodeComplete decodes a segment if all its parts exist. Otherwise it returns an empty segment.
func DecodeComplete(sequence int64, parts []table.Item) provider.Segment {
	if len(parts) == 0 || table.GetNumber(parts[0], table.AttrParts) != int64(len(parts)) {
		return provider.Segment{}
	}
	s, err := decode(sequence, parts)
	if err != nil {
		return provider.Segment{}
	}
	return s
}

// AllItemsQuery returns a query of all items with an execution's key.
func AllItemsQuery(executionID string) *dynamodb.QueryInput {
	all := table.SegmentsQuery(executionID, provider.Strong)
	all.KeyConditionExpression = aws.String("pk = :pk AND sk >= :sk")
	all.ExpressionAttributeValues[":sk"] = table.Str(" ") // sorts before every key
	return all
}

// Stub returns the item that replaces a segment.
func Stub(executionID string, sequence int64, now time.Time) table.Item {
	it := table.ExecutionKey(executionID, table.SegmentSK(sequence, 0))
	it[table.AttrStub] = table.Str(table.FormatTime(now))
	it[table.AttrTTL] = table.Unix(now.Add(table.TombstoneLifetime))
	return it
}

// Encode returns the items of a segment, the first part first.
func Encode(executionID, nonce string, s provider.Segment) ([]table.Item, error) {
	doc, err := history.Encode(s.Events)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", s.Sequence, err)
	}
	first := table.Item{
		table.AttrPK:    table.Str(table.ExecutionPK(executionID)),
		table.AttrSK:    table.Str(table.SegmentSK(s.Sequence, 0)),
		table.AttrNonce: table.Str(nonce),
		table.AttrParts: table.Num(1),
		table.AttrInbox: table.Str(s.Watermark.Inbox),
		table.AttrWM:    table.Str(s.Watermark.Sequence),
	}
	if len(doc) <= table.JSONLimit {
		first[table.AttrEvents] = table.Str(string(doc))
		return []table.Item{first}, nil
	}
	packed, err := pack(doc)
	if err != nil {
		return nil, err
	}
	return table.SplitDocument(first, packed), nil
}

// pack compresses a document. It returns an error if the document is too large to write or to read.
func pack(doc []byte) ([]byte, error) {
	const advice = "pass references instead of large payloads, or schedule fewer tasks in one turn"
	if len(doc) > table.DecodeLimit {
		return nil, fmt.Errorf("%w: events have %d bytes, more than the limit of %d; %s", provider.ErrTooLarge,
			len(doc),
			table.DecodeLimit, advice)
	}
	packed := table.Compress(doc)
	if len(packed) > table.SegmentLimit {
		return nil, fmt.Errorf("%w: events have %d bytes compressed, more than the limit of %d; %s",
			provider.ErrTooLarge,
			len(packed), table.SegmentLimit, advice)
	}
	return packed, nil
}

// decodeAll decodes the items of an execution, sorted by key, and checks that segments and parts have no gap (R8).
func decodeAll(items []table.Item) (segments []provider.Segment, err error) {
	c := decoder{Items: items, Last: true}
	err = c.decode(nil, func(s provider.Segment) bool {
		segments = append(segments, s)
		return true
	})
	return segments, err
}

// decoder splits the items of an execution, sorted by key, into segments. The items arrive page by page, and a page can
// end within a segment. It checks for every reader of a history that segments and parts have no gap (R8).
type decoder struct {
	Items []table.Item // the remaining items, from the due segment on
	Next  int64
	Last  bool // there is no further page
}

// Add appends a page.
func (c *decoder) Add(page []table.Item, last bool) {
	c.Items = append(c.Items, page...)
	c.Last = last
}

// NextParts removes and returns the items of the due segment. It returns none if no items remain, or if the next page
// contains more of them. It returns ErrDeleted if the segment was deleted.
func (c *decoder) NextParts() (parts []table.Item, err error) {
	if len(c.Items) == 0 {
		return nil, nil
	}
	first := c.Items[0]
	sk := table.GetString(first, table.AttrSK)
	sequence, part, err := table.ParseSegmentSK(sk)
	n := int(table.GetNumber(first, table.AttrParts))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
	case table.IsStub(first):
		return nil, table.ErrDeleted
	case sequence != c.Next || part != 0:
		return nil, table.NewTornError("item %s instead of segment %d", sk, c.Next)
	case n > len(c.Items) && !c.Last:
		return nil, nil
	case n < 1 || n > len(c.Items):
		return nil, table.NewTornError("item %s has %d parts, but %d items follow", sk, n, len(c.Items))
	}

	parts = c.Items[:n]
	c.Items = c.Items[n:]
	c.Next++
	return parts, nil
}

// decode yields the complete segments for whose documents wanted returns true, until yield returns false. A nil wanted
// selects all segments.
func (c *decoder) decode(wanted func(doc []byte) bool, yield func(s provider.Segment) bool) error {
	for {
		sequence := c.Next
		parts, err := c.NextParts()
		if err != nil || len(parts) == 0 {
			return err
		}
		if wanted != nil {
			doc, err := Document(sequence, parts)
			if err != nil {
				return err
			}
			if !wanted(doc) {
				continue
			}
		}
		s, err := decode(sequence, parts)
		if err != nil || !yield(s) {
			return err
		}
	}
}

func decode(sequence int64, parts []table.Item) (provider.Segment, error) {
	s := provider.Segment{
		Sequence: sequence,
		Watermark: provider.Position{
			Inbox:    table.GetString(parts[0], table.AttrInbox),
			Sequence: table.GetString(parts[0], table.AttrWM),
		},
	}
	doc, err := Document(sequence, parts)
	if err != nil {
		return s, err
	}
	if s.Events, err = history.Decode(doc); err != nil {
		return s, errCorrupt(sequence, parts, err)
	}
	if len(s.Events) == 0 {
		return s, errCorrupt(sequence, parts, errNoEvents)
	}
	return s, nil
}

// Document returns the encoded events of a segment.
func Document(sequence int64, parts []table.Item) ([]byte, error) {
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
		return nil, errCorrupt(sequence, parts, err)
	}
	return doc, nil
}

// errNoEvents means that a segment has no events. Every segment must have at least one event.
var errNoEvents = errors.New("contains no events")

func errCorrupt(sequence int64, parts []table.Item, err error) error {
	return fmt.Errorf(
		"%w: item %s %s: %w", provider.ErrCorrupt, table.GetString(parts[0], table.AttrPK),
		table.SegmentSK(sequence, 0), err,
	)
}

func wrapError(instanceID, executionID string, err error) error {
	return fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, err)
}

// queryFrom returns a strongly consistent query of the segments of an execution, starting with the given one.
func queryFrom(executionID string, sequence int64) *dynamodb.QueryInput {
	return table.RangeQuery(
		table.ExecutionPK(executionID), table.SegmentSK(sequence, 0), table.SKSegments+"~", provider.Strong,
	)
}

// segmentQuery returns a query of the parts of one segment.
func segmentQuery(executionID string, sequence int64, c provider.Consistency) *dynamodb.QueryInput {
	return table.RangeQuery(
		table.ExecutionPK(executionID), table.SegmentSK(sequence, 0), table.SegmentSK(sequence, 999), c,
	)
}
