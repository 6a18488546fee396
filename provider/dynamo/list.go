package dynamo

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	// Key is the instance's key in lists by attention, whose order alone is not unique.
	Key string `json:"k,omitempty"`
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
	b, err := base64.RawURLEncoding.Strict().DecodeString(q.Cursor)
	if err != nil || strings.ContainsAny(q.Cursor, "\r\n") || json.Unmarshal(b, &c) != nil || c.Before == "" {
		return c, errNoCursor()
	}
	if c.Query != queryDigest(q) {
		return c, &provider.FieldError{Field: fieldCursor, Problem: "belongs to a list with another filter"}
	}
	if !c.isPlace(q) {
		return c, errNoCursor()
	}
	return c, nil
}

const fieldCursor = "cursor"

func errNoCursor() error {
	return &provider.FieldError{Field: fieldCursor, Problem: "was not given out by a list"}
}

// sortKeyLimit is a quota of DynamoDB, in bytes.
const sortKeyLimit = 1024

// isPlace reports whether a cursor names a place that a list of this query may have come to: DynamoDB fails a query that begins anywhere else.
// It need be no time: an instance whose item is damaged is listed as well.
func (c cursor) isPlace(q provider.Query) bool {
	if provider.CheckText(fieldCursor, c.Before, 1, sortKeyLimit) != nil {
		return false
	}
	if c.Key == "" {
		return c.Before >= formatTime(q.StartedAfter)
	}
	_, byAttention := attentionOf(q.Status)
	id, isInstance := strings.CutPrefix(c.Key, idPrefix)
	return byAttention && isInstance && provider.CheckText(fieldCursor, id, 1, provider.MaxInstanceIDBytes) == nil
}

// ListInstances lists by creation; but what needs attention has an index of its own, and may be one instance among millions.
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
	ctx = withBudget(ctx)
	if kind, ok := attentionOf(q.Status); ok && (q.Cursor == "" || c.Key != "") { // a release before gave out cursors by creation
		return p.listByAttention(ctx, q, kind, c)
	}
	return p.listByCreation(ctx, q, c)
}

// listByCreation merges the shards of the index by creation, newest first.
func (p *Provider) listByCreation(ctx context.Context, q provider.Query, c cursor) (page provider.Page, err error) {
	items, before, err := p.newest(ctx, q, c)
	if err != nil {
		return page, err
	}
	for _, it := range items {
		page.Instances = append(page.Instances, p.shown(ctx, it))
	}
	if before != "" {
		page.NextCursor = cursor{Before: before, Query: queryDigest(q)}.String()
	}
	return page, nil
}

// shown is an instance as far as it can be read: one that is damaged must not keep a list from the others.
func (p *Provider) shown(ctx context.Context, it item) provider.Instance {
	in, err := decodeInstance(it)
	if err != nil {
		p.log.WarnContext(ctx, "an instance is listed as far as it can be read", "instance", in.InstanceID, "error", err)
	}
	return in
}

// looksAtShards bounds what one page reads: each shard so often, 500 instances at a time under a filter, some 5 MB together. A list
// whose filter selects few of many would otherwise read for as long as there are instances.
const looksAtShards = 2

// newest merges the shards until it has what a page holds, or has read enough for a page. Each is read a little at a time: of a page's
// instances each has about its share. before is where the list goes on; empty at its end.
func (p *Provider) newest(ctx context.Context, q provider.Query, c cursor) (all []item, before string, err error) {
	lists := make([]*shardList, shards)
	for shard := range lists {
		lists[shard] = p.shardList(shard, q, c)
	}
	for left := looksAtShards * shards; ; {
		next := slices.MaxFunc(lists, func(a, b *shardList) int { return cmp.Compare(a.head(), b.head()) })
		switch {
		case next.head() == "":
			return all, "", nil
		case len(next.items) > 0 && len(all) == q.Limit:
			return all, getString(all[q.Limit-1], attrCreated), nil
		case len(next.items) > 0:
			all, next.items = append(all, next.items[0]), next.items[1:]
		case left <= 0:
			return all, next.head(), nil
		default:
			read, err := p.refill(ctx, lists)
			if err != nil {
				return nil, "", err
			}
			left -= read
		}
	}
}

// shardList is what a list has read of a shard and not yet used, newest first.
type shardList struct {
	in     *dynamodb.QueryInput
	before string // that has been listed already
	items  []item
	upTo   string // where it was read up to
	over   bool
}

// endOfTime sorts after every key.
const endOfTime = "~"

func (p *Provider) shardList(shard int, q provider.Query, c cursor) *shardList {
	upTo := cmp.Or(c.Before, endOfTime)
	in := p.shardQuery(shard, formatTime(q.StartedAfter), upTo)
	in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(readAtOnce(q))
	filter(in, q)
	return &shardList{in: in, before: c.Before, upTo: upTo}
}

// filter leaves to the index what a query selects: the rest is read, but not sent.
func filter(in *dynamodb.QueryInput, q provider.Query) {
	var conditions []string
	add := func(attribute, value string) {
		if value != "" {
			conditions = append(conditions, "#"+attribute+" = :"+attribute)
			in.ExpressionAttributeNames["#"+attribute], in.ExpressionAttributeValues[":"+attribute] = attribute, str(value)
		}
	}
	add(attrStatus, string(q.Status))
	add("name", q.Name)
	if len(conditions) > 0 {
		in.FilterExpression = aws.String(strings.Join(conditions, " AND "))
	}
}

// head is what may come next of a shard: its next instance, or what was not read yet. It sorts before everything when there is nothing.
func (l *shardList) head() string {
	switch {
	case len(l.items) > 0:
		return getString(l.items[0], attrCreated)
	case l.over:
		return ""
	default:
		return l.upTo
	}
}

// refill reads on in the lists that have nothing left.
func (p *Provider) refill(ctx context.Context, lists []*shardList) (read int, err error) {
	var reads []func() error
	for _, l := range lists {
		if len(l.items) == 0 && !l.over {
			reads = append(reads, func() error { return p.readOn(ctx, l) })
		}
	}
	return len(reads), together(reads...)
}

// readOn reads a shard a little further.
func (p *Provider) readOn(ctx context.Context, l *shardList) error {
	page, err := p.queryPage(ctx, "", l.in)
	if err != nil {
		return err
	}
	for _, it := range page {
		if getString(it, attrCreated) != l.before {
			l.items = append(l.items, it)
		}
	}
	if l.over = l.in.ExclusiveStartKey == nil; !l.over {
		l.upTo = getString(l.in.ExclusiveStartKey, attrCreated)
	}
	return nil
}

// readAtOnce is how many instances one query reads of a shard. Under a filter few of them count, so it reads more.
func readAtOnce(q provider.Query) int32 {
	if q.Status != "" || q.Name != "" {
		return filteredPage
	}
	const some = 8 // so that shards of unlike size need no second look
	return int32(q.Limit)/shards + some
}

// attentionOf is the attention of an instance that has a status, where the status alone decides.
func attentionOf(s provider.RuntimeStatus) (kind string, ok bool) {
	switch s {
	case provider.StatusBlocked:
		return attentionBlocked, true
	case provider.StatusDeleting:
		return attentionDeleting, true
	default:
		return "", false
	}
}

// listByAttention lists what was blocked last, or was deleted last, first. That index holds keys alone (what it holds cannot be changed in
// a hub that is deployed, but by making the index anew), so each instance is read, strongly consistent: it is as complete as one can be, and one that
// has gone on meanwhile is left out. So many are read for a page as it may hold, and under a filter it may hold none.
func (p *Provider) listByAttention(ctx context.Context, q provider.Query, kind string, c cursor) (page provider.Page, err error) {
	in := p.attentionQuery(kind)
	in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(int32(q.Limit))
	in.ExclusiveStartKey = place{Updated: c.Before, Key: c.Key}.after(kind)
	named, err := p.queryPage(ctx, "", in)
	if err != nil {
		return page, err
	}
	items, errs := p.getAll(ctx, named)
	if len(errs) > 0 {
		return page, errors.Join(errs...)
	}
	for _, it := range items {
		if getString(it, attrStatus) != string(q.Status) {
			continue
		}
		if one := p.shown(ctx, it); (q.Name == "" || one.Name == q.Name) && formatTime(one.CreatedAt) >= formatTime(q.StartedAfter) {
			page.Instances = append(page.Instances, one)
		}
	}
	if last := in.ExclusiveStartKey; last != nil {
		page.NextCursor = cursor{Before: getString(last, attrUpdated), Key: getString(last, attrPK), Query: queryDigest(q)}.String()
	}
	return page, nil
}

func (p *Provider) shardQuery(shard int, from, to string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &p.hub.Table, IndexName: aws.String(indexByCreation),
		KeyConditionExpression:    aws.String("gs = :shard AND #created BETWEEN :from AND :to"),
		ExpressionAttributeNames:  map[string]string{"#created": attrCreated}, // every name that might be a reserved word is aliased
		ExpressionAttributeValues: item{":shard": str(strconv.Itoa(shard)), ":from": str(from), ":to": str(to)},
	}
}
