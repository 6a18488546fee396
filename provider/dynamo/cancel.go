package dynamo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// attrCancels is the record itself, of an item c that holds it whole.
const attrCancels = "cancels"

// cancelLimit: up to here the record lies in c, readable and within the smallest read unit; above it in parts c#<n>.
const cancelLimit = 2 << 10

// Limits of a cancel record. A turn writes it whole, and it is read before each activity: so its messages share what they may take. Later ones
// lose all but the mark that says so; history has them.
const (
	recordLimit         = 768 << 10 // compressed, beside turnLimit in a transaction of 4 MB
	recordMessagesLimit = 256 << 10
	recordMessageKept   = 32 // no longer than the mark
)

// cancelEntry is a decision as it is stored: of scattered ids, the bitmap is smaller than the ranges.
type cancelEntry struct {
	IDs     []history.Range `json:"ids,omitempty"`
	First   int64           `json:"first,omitempty"`
	Bitmap  []byte          `json:"bitmap,omitempty"` // from First on, the lowest bit first
	Open    bool            `json:"open,omitempty"`
	Reason  string          `json:"reason"`
	Message string          `json:"message,omitempty"`
	At      time.Time       `json:"at"`
}

// encodeCancels makes the items of a cancel record: none for an empty one.
func encodeCancels(executionID string, cancels provider.Cancels) ([]item, error) {
	if len(cancels) == 0 {
		return nil, nil
	}
	entries := make([]cancelEntry, len(cancels))
	room := recordMessagesLimit
	for i := range cancels {
		entries[i] = cancelEntryOf(&cancels[i])
		if room -= len(entries[i].Message); room < 0 && len(entries[i].Message) > recordMessageKept {
			entries[i].Message = history.CutMessage(entries[i].Message, 0)
		}
	}
	doc, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	c := item{attrPK: str(executionPK(executionID)), attrSK: str(skCancels)}
	if len(doc) <= cancelLimit {
		c[attrCancels] = str(string(doc))
		return []item{c}, nil
	}
	items := []item{c}
	packed := compressor.EncodeAll(doc, nil)
	if len(packed) > recordLimit {
		if i := slices.IndexFunc(cancels, func(c provider.ActivityCancel) bool { return c.Open }); i > 0 {
			return encodeCancels(executionID, cancels[i:]) // it is about all there are
		}
		return nil, fmt.Errorf("%w: the %d decisions to cancel activities take %d bytes compressed, of %d that fit: cancel more at once, or continue as new",
			provider.ErrTooLarge, len(cancels), len(packed), recordLimit)
	}
	for at := 0; at < len(packed); at += partLimit {
		items = append(items, item{
			attrPK: str(executionPK(executionID)), attrSK: str(cancelPartSK(len(items) - 1)),
			attrZstd: &types.AttributeValueMemberB{Value: packed[at:min(at+partLimit, len(packed))]},
		})
	}
	c[attrParts] = num(int64(len(items) - 1))
	return items, nil
}

func cancelPartSK(n int) string { return fmt.Sprintf("%s#%03d", skCancels, n) }

// Bytes that a range and a bit take, about, where they are stored.
const (
	rangeBytes = 12
	bitsAByte  = 6 // in base64
)

func cancelEntryOf(c *provider.ActivityCancel) cancelEntry {
	e := cancelEntry{IDs: c.IDs, Open: c.Open, Reason: c.Reason, Message: c.Message, At: c.At}
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
	e.IDs, e.First, e.Bitmap = nil, first, make([]byte, (last-first)/8+1)
	for _, r := range c.IDs {
		for id := r.First; id <= r.Last; id++ {
			e.Bitmap[(id-first)/8] |= 1 << ((id - first) % 8)
		}
	}
	return e
}

func (e *cancelEntry) cancel() provider.ActivityCancel {
	c := provider.ActivityCancel{IDs: e.IDs, Open: e.Open, Reason: e.Reason, Message: e.Message, At: e.At}
	for i := range int64(len(e.Bitmap)) * 8 {
		if e.Bitmap[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		c.IDs = history.AppendID(c.IDs, e.First+i)
	}
	return c
}

// ReadCancels reads c: one item, of at most one read unit unless ids are many and scattered.
func (p *Provider) ReadCancels(ctx context.Context, executionID string) (provider.Cancels, error) {
	c, err := p.getExecutionItem(ctx, executionID, skCancels)
	if err != nil || len(c) == 0 {
		return nil, err
	}
	doc := []byte(getString(c, attrCancels))
	if parts := int(getNumber(c, attrParts)); parts > 0 {
		if doc, err = p.readCancelParts(ctx, executionID, parts); err != nil {
			return nil, err
		}
	}
	return decodeCancels(executionID, doc)
}

func decodeCancels(executionID string, doc []byte) (provider.Cancels, error) {
	var entries []cancelEntry
	if err := json.Unmarshal(doc, &entries); err != nil {
		return nil, fmt.Errorf("dynamo: %w: item %s %s: %w", provider.ErrCorrupt, executionPK(executionID), skCancels, err)
	}
	cancels := make(provider.Cancels, len(entries))
	for i := range entries {
		cancels[i] = entries[i].cancel()
	}
	return cancels, nil
}

// readCancelParts joins the parts of a large record. A turn may write it anew meanwhile; what is torn does not unpack.
func (p *Provider) readCancelParts(ctx context.Context, executionID string, parts int) ([]byte, error) {
	var packed bytes.Buffer
	for n := range parts {
		part, err := p.getExecutionItem(ctx, executionID, cancelPartSK(n))
		if err != nil {
			return nil, err
		}
		if b, ok := part[attrZstd].(*types.AttributeValueMemberB); ok {
			packed.Write(b.Value)
		}
	}
	doc, err := decompressor.DecodeAll(packed.Bytes(), nil)
	if err != nil {
		return nil, &provider.Error{Op: "DynamoDB.GetItem", Retryable: true, Err: fmt.Errorf("item %s %s: %w", executionPK(executionID), skCancels, err)}
	}
	return doc, nil
}

func (p *Provider) getExecutionItem(ctx context.Context, executionID, sk string) (item, error) {
	var out *dynamodb.GetItemOutput
	err := call(ctx, "DynamoDB.GetItem", "", func() (err error) {
		out, err = p.table.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &p.hub.Table, Key: item{attrPK: str(executionPK(executionID)), attrSK: str(sk)}, ConsistentRead: aws.Bool(true),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}
