package dynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
)

const (
	// mostDecided is how much of what turns have decided is read one by one, the latest first, before blocks are looked for: more than a
	// block has, so that what is behind the last block is always among it.
	mostDecided = provider.CancelBlockTurns + 16
	// Of what is as late as this a read begins anew the next time. A strongly consistent query may see half of a transaction, for moments:
	// what a turn has decided may come to be seen after what a later one has.
	readAnew      = 8
	readAnewSince = 2 * time.Minute
)

// decided is what a turn has decided, or the turns of a block.
type decided struct {
	after, sequence int64 // it is of the segments behind after, up to sequence
	cancels         provider.Cancels
}

// ReadCancels reads what turns have decided from a segment on, and c, in one query, which takes one read unit unless more than some 25
// turns have cancelled activities since. Of many the latest are read so, and of those before their blocks.
func (p *Provider) ReadCancels(ctx context.Context, executionID string, from int64) (cancels provider.Cancels, next int64, err error) {
	for try := 1; ; try++ {
		cancels, next, err = p.readCancels(ctx, executionID, max(from, 0))
		if _, torn := errors.AsType[*tornError](err); !torn {
			return cancels, next, err
		} else if try == strongTries {
			return nil, from, &provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: fmt.Errorf("cancel record of execution %s: %w", executionID, err)}
		}
	}
}

func (p *Provider) readCancels(ctx context.Context, executionID string, from int64) (provider.Cancels, int64, error) {
	latest, seal, all, err := p.latestDecided(ctx, executionID, from)
	if err != nil {
		return nil, from, err
	}
	next := p.nextOf(latest, from)
	if !all {
		if latest, err = p.decidedBefore(ctx, executionID, from, latest); err != nil {
			return nil, from, err
		}
	}
	if len(latest) == 0 {
		return seal, next, nil
	}
	open := slices.IndexFunc(seal, func(c provider.ActivityCancel) bool { return c.Open })
	if open < 0 {
		open = len(seal)
	}
	cancels := slices.Clone(seal[:open]) // what a release before has written whole
	for i := range latest {
		cancels = append(cancels, latest[i].cancels...)
	}
	return append(cancels, seal[open:]...), next, nil
}

// nextOf is from where there may be more than was read: right behind the last that is not as late, since what is not seen yet may be before
// the first that is.
func (p *Provider) nextOf(latest []decided, from int64) int64 {
	since := p.now().Add(-readAnewSince)
	for i := max(0, len(latest)-readAnew); i < len(latest); i++ {
		switch d := &latest[i]; {
		case len(d.cancels) == 0 || !d.cancels[0].At.After(since):
		case i == 0:
			return from
		default:
			return latest[i-1].sequence + 1
		}
	}
	if len(latest) == 0 {
		return from
	}
	return latest[len(latest)-1].sequence + 1
}

// latestDecided reads what the last turns have decided that cancelled anything, and c. all: there is no more from that segment on.
func (p *Provider) latestDecided(ctx context.Context, executionID string, from int64) (latest []decided, seal provider.Cancels, all bool, err error) {
	in := p.between(executionID, decidedSK(from), skCancels)
	in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(mostDecided)
	items, err := p.queryPage(ctx, "", in)
	if err != nil || len(items) == 0 {
		return nil, nil, true, err
	}
	if getString(items[0], attrSK) == skCancels {
		if seal, err = p.decodeSeal(ctx, executionID, items[0]); err != nil {
			return nil, nil, false, err
		}
		items = items[1:]
	}
	slices.Reverse(items)
	all = in.ExclusiveStartKey == nil
	if !all && len(items) > 0 { // the page may have cut it: it is read with what is before
		cut := sequenceOf(items[0], skDecided)
		items = slices.DeleteFunc(items, func(it item) bool { return sequenceOf(it, skDecided) == cut })
	}
	latest, err = decodeDecided(executionID, skDecided, items)
	return latest, seal, all, err
}

// decidedBefore puts before what the last turns have decided what those before them did, from a segment on: blocks, and what no block has.
func (p *Provider) decidedBefore(ctx context.Context, executionID string, from int64, latest []decided) (whole []decided, err error) {
	blocks, err := p.decidedIn(ctx, executionID, skBlocks, from, lastSequence)
	if err != nil {
		return nil, err
	}
	next := max(from, 1) // the first segment of which nothing was read; a start decides nothing
	fill := func(until int64) error {
		if next > until {
			return nil
		}
		some, err := p.decidedIn(ctx, executionID, skDecided, next, until)
		whole = append(whole, some...)
		return err
	}
	for _, b := range blocks {
		if err := fill(b.after); err != nil {
			return nil, err
		}
		whole, next = append(whole, b), b.sequence+1
	}
	until := int64(lastSequence)
	if len(latest) > 0 {
		until = latest[0].sequence - 1
	}
	if err := fill(until); err != nil {
		return nil, err
	}
	return append(whole, slices.DeleteFunc(latest, func(d decided) bool { return d.sequence < next })...), nil
}

// lastSequence is the greatest that keys take.
const lastSequence = 9_999_999_999

// decidedIn reads all that lies under a prefix from one segment to another.
func (p *Provider) decidedIn(ctx context.Context, executionID, prefix string, first, last int64) ([]decided, error) {
	in := p.between(executionID, fmt.Sprintf(prefix+"%010d", first), fmt.Sprintf(prefix+"%010d#~", last))
	items, err := p.queryAll(ctx, "", in)
	if err != nil {
		return nil, err
	}
	return decodeDecided(executionID, prefix, items)
}

func (p *Provider) between(executionID, first, last string) *dynamodb.QueryInput {
	in := segmentsQuery(p.hub.Table, executionID, provider.Strong)
	in.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :sk AND :last")
	in.ExpressionAttributeValues[":sk"], in.ExpressionAttributeValues[":last"] = str(first), str(last)
	return in
}

// sequenceOf is the segment that an item's key names; -1 where it names none.
func sequenceOf(it item, prefix string) int64 {
	digits, _, _ := strings.Cut(strings.TrimPrefix(getString(it, attrSK), prefix), "#")
	sequence, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return sequence
}

// decodeDecided reads items, in the order of their keys.
func decodeDecided(executionID, prefix string, items []item) ([]decided, error) {
	all := make([]decided, 0, len(items))
	for len(items) > 0 {
		n := max(int(getNumber(items[0], attrParts)), 1)
		d := decided{after: getNumber(items[0], attrAfter), sequence: sequenceOf(items[0], prefix)}
		sk := getString(items[0], attrSK)
		doc, err := documentOf(items[:min(n, len(items))], sk, n)
		if err != nil {
			return nil, err
		}
		if len(doc) > 0 { // else all that is left is when it was to be gone
			if d.cancels, err = decodeCancels(executionID, sk, doc); err != nil {
				return nil, err
			}
		}
		all, items = append(all, d), items[n:]
	}
	return all, nil
}

// documentOf joins the items of one key.
func documentOf(parts []item, sk string, n int) ([]byte, error) {
	if doc := getString(parts[0], attrCancels); doc != "" {
		return []byte(doc), nil
	}
	var packed bytes.Buffer
	for i, part := range parts {
		if i > 0 && getString(part, attrSK) != fmt.Sprintf("%s#%03d", sk, i) {
			return nil, &tornError{fmt.Sprintf("item %s where part %d of %s is due", getString(part, attrSK), i, sk)}
		}
		if b, ok := part[attrZstd].(*types.AttributeValueMemberB); ok {
			packed.Write(b.Value)
		}
	}
	if len(parts) < n {
		return nil, &tornError{fmt.Sprintf("%d of the %d parts of %s", len(parts), n, sk)}
	}
	if packed.Len() == 0 {
		return nil, nil
	}
	doc, err := decompressor.DecodeAll(packed.Bytes(), nil)
	if err != nil {
		return nil, fmt.Errorf("dynamo: %w: item %s: %w", provider.ErrCorrupt, sk, err)
	}
	return doc, nil
}

// readSeal reads c: that the instance is deleted, and in releases before this one the whole record.
func (p *Provider) readSeal(ctx context.Context, executionID string) (provider.Cancels, error) {
	c, err := p.getExecutionItem(ctx, executionID, skCancels)
	if err != nil || len(c) == 0 {
		return nil, err
	}
	return p.decodeSeal(ctx, executionID, c)
}

func (p *Provider) decodeSeal(ctx context.Context, executionID string, c item) (_ provider.Cancels, err error) {
	doc := []byte(getString(c, attrCancels))
	if parts := int(getNumber(c, attrParts)); parts > 0 {
		if doc, err = p.readSealParts(ctx, executionID, parts); err != nil {
			return nil, err
		}
	}
	return decodeCancels(executionID, skCancels, doc)
}

// readSealParts joins the parts of a large record. A turn of the release before may write it anew meanwhile; what is torn does not unpack.
func (p *Provider) readSealParts(ctx context.Context, executionID string, parts int) ([]byte, error) {
	var packed bytes.Buffer
	for n := range parts {
		part, err := p.getExecutionItem(ctx, executionID, sealPartSK(n))
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
