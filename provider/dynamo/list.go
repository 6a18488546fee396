package dynamo

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
)

const (
	defaultPage = 100
	largestPage = 1000
	// filteredPage is some 100 KB: a tenth of what a query may return.
	filteredPage = 500
)

// cursor is where a page ended, and the query it belongs to: a cursor of another query is refused.
type cursor struct {
	Before string `json:"b"`
	Query  string `json:"q"`
}

func queryDigest(q provider.Query) string {
	return digest(string(q.Status), q.Name, formatTime(q.StartedAfter))[:12]
}

func (c cursor) String() string {
	b, _ := json.Marshal(c) //nolint:errchkjson // two strings: cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(q provider.Query) (cursor, error) {
	var c cursor
	if q.Cursor == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || json.Unmarshal(b, &c) != nil || c.Before == "" {
		return c, &provider.FieldError{Field: "cursor", Problem: "was not given out by a list"}
	}
	if c.Query != queryDigest(q) {
		return c, &provider.FieldError{Field: "cursor", Problem: "belongs to a list with another filter"}
	}
	return c, nil
}

// ListInstances merges the shards of the index by creation, newest first.
func (p *Provider) ListInstances(ctx context.Context, q provider.Query) (provider.Page, error) {
	switch {
	case q.Limit < 0 || q.Limit > largestPage:
		return provider.Page{}, &provider.FieldError{Field: "limit", Problem: fmt.Sprintf("must be from 1 to %d", largestPage)}
	case q.Limit == 0:
		q.Limit = defaultPage
	}
	c, err := parseCursor(q)
	if err != nil {
		return provider.Page{}, err
	}
	items, err := p.newest(ctx, q, c)
	if err != nil {
		return provider.Page{}, err
	}
	page := provider.Page{}
	if len(items) > q.Limit {
		items = items[:q.Limit]
		page.NextCursor = cursor{Before: getString(items[q.Limit-1], attrCreated), Query: queryDigest(q)}.String()
	}
	for _, it := range items {
		in, err := decodeInstance(it)
		if err != nil {
			return provider.Page{}, err
		}
		page.Instances = append(page.Instances, in)
	}
	return page, nil
}

// newest merges the shards until it has one more than a page holds. Each is read a little at a time: of a page's instances each
// has about its share.
func (p *Provider) newest(ctx context.Context, q provider.Query, c cursor) (all []item, err error) {
	lists := make([]*shardList, shards)
	for shard := range lists {
		lists[shard] = p.shardList(shard, q, c)
	}
	for len(all) <= q.Limit {
		if err := p.refill(ctx, lists); err != nil {
			return nil, err
		}
		next := slices.MaxFunc(lists, func(a, b *shardList) int { return cmp.Compare(a.head(), b.head()) })
		if len(next.items) == 0 {
			break
		}
		all, next.items = append(all, next.items[0]), next.items[1:]
	}
	return all, nil
}

// shardList is what a list has read of a shard and not yet used, newest first.
type shardList struct {
	in    *dynamodb.QueryInput
	wants func(item) bool
	items []item
	over  bool
}

func (p *Provider) shardList(shard int, q provider.Query, c cursor) *shardList {
	upTo := cmp.Or(c.Before, "~") // after every time
	in := p.shardQuery(shard, formatTime(q.StartedAfter), upTo)
	in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(readAtOnce(q))
	return &shardList{in: in, wants: func(it item) bool { return getString(it, attrCreated) != c.Before && matches(it, q) }}
}

// head is where the list goes on; it sorts before everything when there is nothing.
func (l *shardList) head() string {
	if len(l.items) == 0 {
		return ""
	}
	return getString(l.items[0], attrCreated)
}

// refill reads on in the lists that have nothing left.
func (p *Provider) refill(ctx context.Context, lists []*shardList) error {
	var reads []func() error
	for _, l := range lists {
		if len(l.items) == 0 && !l.over {
			reads = append(reads, func() error { return p.readOn(ctx, l) })
		}
	}
	return together(reads...)
}

// readOn reads a shard until it has something.
func (p *Provider) readOn(ctx context.Context, l *shardList) error {
	for len(l.items) == 0 && !l.over {
		page, err := p.queryPage(ctx, "", l.in)
		if err != nil {
			return err
		}
		l.over = l.in.ExclusiveStartKey == nil
		for _, it := range page {
			if l.wants(it) {
				l.items = append(l.items, it)
			}
		}
	}
	return nil
}

// readAtOnce is how many instances one query reads of a shard. Under a filter few of them count, so it reads more.
func readAtOnce(q provider.Query) int32 {
	if q.Status != "" || q.Name != "" {
		return max(int32(q.Limit), filteredPage)
	}
	const some = 8 // so that shards of unlike size need no second look
	return int32(q.Limit)/shards + some
}

func matches(it item, q provider.Query) bool {
	return (q.Status == "" || getString(it, "status") == string(q.Status)) && (q.Name == "" || getString(it, "name") == q.Name)
}

func (p *Provider) shardQuery(shard int, from, to string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &p.hub.Table, IndexName: aws.String(indexByCreation),
		KeyConditionExpression:    aws.String("gs = :shard AND #created BETWEEN :from AND :to"),
		ExpressionAttributeNames:  map[string]string{"#created": attrCreated}, // every name that might be a reserved word is aliased
		ExpressionAttributeValues: item{":shard": str(strconv.Itoa(shard)), ":from": str(from), ":to": str(to)},
	}
}
