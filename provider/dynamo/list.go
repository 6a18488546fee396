package dynamo

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

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

// pendingWindow is how far the watch looks back from where its last whole look ended: an instance that it woke gets this long
// to have its turn. So the watch forgives any absence of its own, and a look costs what was started meanwhile.
const pendingWindow = time.Hour

// skWatch is the item that says where the last look ended.
const skWatch = "watch"

// PendingInstances looks through what was started since an hour before the last look ended for what had no turn.
func (p *Provider) PendingInstances(ctx context.Context, startedBefore time.Time) iter.Seq2[provider.Instance, error] {
	return func(yield func(provider.Instance, error) bool) {
		from, err := p.watchedUpTo(ctx, startedBefore)
		if err != nil {
			yield(provider.Instance{}, err)
			return
		}
		for shard := range shards {
			for page, err := range p.query(ctx, "", p.shardQuery(shard, formatTime(from.Add(-pendingWindow)), formatTime(startedBefore))) {
				if err != nil {
					yield(provider.Instance{}, err)
					return
				}
				if !yieldPending(page, startedBefore, yield) {
					return
				}
			}
		}
		if err := p.setWatched(ctx, startedBefore); err != nil {
			yield(provider.Instance{}, err)
		}
	}
}

// BlockedInstances reads the index by attention. A build that was just deployed reports when it first runs a turn, which may
// never come where everything is blocked: so the orchestrator is asked to.
func (p *Provider) BlockedInstances(ctx context.Context) iter.Seq2[provider.Instance, error] {
	return func(yield func(provider.Instance, error) bool) {
		last, err := p.builds.last(ctx, p)
		if err != nil {
			yield(provider.Instance{}, err)
			return
		}
		for page, err := range p.query(ctx, "", p.attentionQuery(attentionBlocked)) {
			if err != nil {
				yield(provider.Instance{}, err)
				return
			}
			for _, it := range page {
				if getString(it, attrBlockedBy) == last {
					p.poke(ctx)
				} else if id := getString(it, attrPK); !yield(provider.Instance{InstanceID: id[min(len(idPrefix), len(id)):], Status: provider.StatusBlocked}, nil) {
					return
				}
			}
		}
	}
}

func (p *Provider) attentionQuery(kind string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &p.hub.Table, IndexName: aws.String(indexByAttention),
		KeyConditionExpression: aws.String("attention = :kind"), ExpressionAttributeValues: item{":kind": str(kind)},
	}
}

func (p *Provider) watchedUpTo(ctx context.Context, otherwise time.Time) (time.Time, error) {
	var out *dynamodb.GetItemOutput
	err := call(ctx, "DynamoDB.GetItem", "", func() (err error) {
		out, err = p.table.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.hub.Table, Key: item{attrPK: str(pkHub), attrSK: str(skWatch)}})
		return err
	})
	if err != nil {
		return otherwise, err
	}
	at, err := time.Parse(timeFormat, getString(out.Item, "upTo"))
	if err != nil || at.After(otherwise) {
		return otherwise, nil //nolint:nilerr // the first look, or somebody is ahead
	}
	return at, nil
}

func (p *Provider) setWatched(ctx context.Context, upTo time.Time) error {
	in := &dynamodb.PutItemInput{TableName: &p.hub.Table, Item: item{attrPK: str(pkHub), attrSK: str(skWatch), "upTo": str(formatTime(upTo))}}
	return call(ctx, "DynamoDB.PutItem", "", func() error {
		_, err := p.table.PutItem(ctx, in)
		return err
	})
}

// yieldPending leaves out what is to wait still: it has a timer that nothing can lose.
func yieldPending(page []item, startedBefore time.Time, yield func(provider.Instance, error) bool) bool {
	for _, it := range page {
		if !matches(it, provider.Query{Status: provider.StatusPending}) || getString(it, attrStartAt) > formatTime(startedBefore) {
			continue
		}
		if in, err := decodeInstance(it); !yield(in, err) {
			return false
		}
	}
	return true
}
