package dynamo

import (
	"context"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
)

func isStub(it item) bool {
	_, stub := it[attrStub]
	return stub
}

// unlessDeleted returns the items of a history, or none if its start is a stub.
func unlessDeleted(items []item) []item {
	if len(items) > 0 && isStub(items[0]) {
		return nil
	}
	return items
}

// erase replaces an execution's segments by stubs and returns the previous execution. A segment's key is never free, so
// a process that still holds a turn for it gets a conflict, as always (I8). The cancel record stays for workers that
// run or have not yet received activities of the execution. Erasing is idempotent and skips completed steps. If the
// instance is not deleted, the stub of the start names the next execution.
func (p *Provider) erase(ctx context.Context, instanceID, executionID, next string, progress *progress) (previous string, err error) {
	// before the items are listed, because a late worker reads the mark after its write
	if err := p.keepCancels(ctx, instanceID, executionID); err != nil {
		return "", err
	}
	start, err := p.getExecutionItem(ctx, executionID, segmentSK(0, 0))
	if err != nil {
		return "", err
	}
	previous = getString(start, attrPrevious)
	if !isStub(start) {
		stub := p.stub(executionID, 0)
		switch {
		case next != "":
			stub[attrNext] = str(next)
		case previous != "":
			stub[attrPrevious] = str(previous)
		}
		if err := p.overwrite(ctx, instanceID, stub); err != nil {
			return "", err
		}
	}
	if err := p.eraseRest(ctx, instanceID, executionID, progress); err != nil {
		return previous, err
	}
	return previous, p.erasePayloads(ctx, executionID, progress)
}

// eraseRest erases everything after the start page by page, and reads only keys.
func (p *Provider) eraseRest(ctx context.Context, instanceID, executionID string, progress *progress) error {
	due := int64(1) // the next segment that needs a stub
	for page, err := range p.query(ctx, instanceID, keysOf(everything(p.hub.Table, executionID))) {
		if err != nil {
			return err
		}
		var writes []func() error
		for _, it := range page {
			writes = append(writes, p.erasures(ctx, instanceID, executionID, it, &due)...)
		}
		err := together(writes...)
		if err == nil {
			err = progress.goesOn(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// erasures returns the writes that erase an item: stubs for a segment and for missing segments before it in a damaged
// history, and a deletion for all other items, such as activity records, crash markers and further parts. The cancel
// record gets a TTL instead.
func (p *Provider) erasures(ctx context.Context, instanceID, executionID string, it item, due *int64) (writes []func() error) {
	sk := getString(it, attrSK)
	switch {
	case isSeal(sk), isDecided(sk) && it[attrTTL] != nil:
		return nil
	case isDecided(sk):
		return []func() error{func() error { return p.expireDecided(ctx, instanceID, executionID, sk) }}
	}
	sequence, part, err := parseSegmentSK(sk)
	if !strings.HasPrefix(sk, skSegments) || err != nil || part > 0 {
		return []func() error{func() error { return p.remove(ctx, instanceID, executionID, sk) }}
	}
	for ; *due <= sequence; *due++ {
		if *due < sequence || !isStub(it) {
			stub := p.stub(executionID, *due)
			writes = append(writes, func() error { return p.overwrite(ctx, instanceID, stub) })
		}
	}
	return writes
}

// everything returns a query of all items with an execution's key.
func everything(table, executionID string) *dynamodb.QueryInput {
	all := segmentsQuery(table, executionID, provider.Strong)
	all.KeyConditionExpression = aws.String("pk = :pk AND sk >= :sk")
	all.ExpressionAttributeValues[":sk"] = str(" ") // sorts before every key
	return all
}

// remains is a summary of the items with an execution's key.
type remains struct {
	last     int64          // the number of the last segment
	stubs    map[int64]bool // the segments that are stubs already
	others   []string       // sort keys of items to delete: parts after the first one, activity records
	decided  []string       // sort keys of turns' cancel decisions
	previous string
	// watermark is the position of the last consumed message.
	watermark provider.Position
}

func remainsOf(items []item) remains {
	r := remains{stubs: map[int64]bool{}}
	for _, it := range items {
		sk := getString(it, attrSK)
		if isDecided(sk) {
			r.decided = append(r.decided, sk)
		}
		if isSeal(sk) || isDecided(sk) {
			continue
		}
		sequence, part, err := parseSegmentSK(sk)
		if !strings.HasPrefix(sk, skSegments) || err != nil {
			r.others = append(r.others, sk)
			continue
		}
		r.last = max(r.last, sequence)
		if part > 0 {
			r.others = append(r.others, sk)
			continue
		}
		r.stubs[sequence] = isStub(it)
		if sequence == 0 {
			r.previous = getString(it, attrPrevious)
		}
		if wm := getString(it, attrWM); wm != "" {
			r.watermark = provider.Position{Inbox: getString(it, attrInbox), Sequence: wm}
		}
	}
	return r
}

// stub returns the item that replaces a segment.
func (p *Provider) stub(executionID string, sequence int64) item {
	now := p.now()
	return item{
		attrPK: str(executionPK(executionID)), attrSK: str(segmentSK(sequence, 0)),
		attrStub: str(formatTime(now)), attrTTL: unix(now.Add(tombstoneLife)),
	}
}

// isSeal reports whether a sort key belongs to c or to a part of it.
func isSeal(sk string) bool { return sk == skCancels || strings.HasPrefix(sk, skCancels+"#") }

// isDecided reports whether a sort key belongs to the decisions of a turn or a block.
func isDecided(sk string) bool {
	return strings.HasPrefix(sk, skDecided) || strings.HasPrefix(sk, skBlocks)
}

// lasting returns the update that sets the TTL of a turn's decisions, which is the maximum lifetime of a message.
func (p *Provider) lasting(executionID, sk string, ttl types.AttributeValue) *types.Update {
	return &types.Update{
		TableName: &p.hub.Table, Key: item{attrPK: str(executionPK(executionID)), attrSK: str(sk)},
		UpdateExpression:         aws.String("SET #ttl = :ttl"),
		ExpressionAttributeNames: map[string]string{"#ttl": attrTTL}, ExpressionAttributeValues: item{":ttl": ttl},
	}
}

// expireDecided makes that update separately.
func (p *Provider) expireDecided(ctx context.Context, instanceID, executionID, sk string) error {
	u := p.lasting(executionID, sk, unix(p.now().Add(tombstoneLife)))
	return call(ctx, "DynamoDB.UpdateItem", instanceID, func() error {
		_, err := p.table.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression,
			ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
		})
		return err
	})
}

// keepCancels marks the cancel record of a deleted execution, with a TTL of the maximum lifetime of a message.
func (p *Provider) keepCancels(ctx context.Context, instanceID, executionID string) error {
	now := p.now().UTC()
	record, err := p.deletedCancels(ctx, executionID, now)
	if err != nil {
		return err
	}
	ttl := unix(now.Add(tombstoneLife))
	for _, it := range record {
		it[attrTTL] = ttl
	}
	if len(record) == 1 {
		return p.overwrite(ctx, instanceID, record[0])
	}
	return p.transact(ctx, instanceID, p.puts(record))
}

func (p *Provider) overwrite(ctx context.Context, instanceID string, it item) error {
	return call(ctx, "DynamoDB.PutItem", instanceID, func() error {
		_, err := p.table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.hub.Table, Item: it})
		return err
	})
}

func (p *Provider) remove(ctx context.Context, instanceID, executionID, sk string) error {
	return p.removeItem(ctx, instanceID, item{attrPK: str(executionPK(executionID)), attrSK: str(sk)})
}

// removeItem deletes an item of the instance if it exists.
func (p *Provider) removeItem(ctx context.Context, instanceID string, key item) error {
	return call(ctx, "DynamoDB.DeleteItem", instanceID, func() error {
		_, err := p.table.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &p.hub.Table, Key: key})
		return err
	})
}

// tombstoneOf returns the tombstone of an instance. It contains the starts that may never succeed, including the
// instance's own (R10), and the watermark (R3).
func (p *Provider) tombstoneOf(it item) item {
	now := p.now()
	lives := append(livesOf(it), str(getString(it, attrStartID)))
	t := item{
		attrDeleted: str(formatTime(now)), attrTTL: unix(now.Add(tombstoneLife)), attrRefused: num(getNumber(it, attrRefused)),
		attrPast: it[attrPast], attrLives: &types.AttributeValueMemberL{Value: lives[max(0, len(lives)-pastStarts):]},
		attrWM: it[attrWM], attrInbox: it[attrInbox], attrPK: it[attrPK], attrSK: it[attrSK], attrPurgedBy: it[attrPurgedBy],
	}
	maps.DeleteFunc(t, func(_ string, v types.AttributeValue) bool { return v == nil })
	return t
}

// watermarkOf returns the watermark of an ended instance or a tombstone.
func watermarkOf(it item) provider.Position {
	return provider.Position{Inbox: getString(it, attrInbox), Sequence: getString(it, attrWM)}
}
