// Package lists reads pages of instances for clients and jobs from the indexes of the table.
package lists

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Lists reads lists of instances. It is safe for concurrent use.
type Lists struct {
	table     *table.Table
	instances *instances.Store
	log       *slog.Logger
}

// New returns the lists of a hub.
func New(t *table.Table, i *instances.Store, log *slog.Logger) *Lists {
	return &Lists{table: t, instances: i, log: log}
}

const (
	defaultPage = 100
	largestPage = 1000
	// filteredPage is the number of instances in about 100 KB, a tenth of the maximum size of a query's page.
	filteredPage = 500
)

// cursor is the end of a page, with the query of the list. A cursor of another query is rejected.
type cursor struct {
	Before string `json:"b"`
	Query  string `json:"q"`
	// Key is the instance's key in lists from the attention index, where the sort key alone is not unique.
	Key string `json:"k,omitempty"`
	// Partition is the number of the partition in the attention index. Earlier releases used only the first partition.
	Partition int `json:"p,omitempty"`
}

func queryDigest(q provider.ListQuery) string {
	parts := []string{string(q.Status), q.Name, table.FormatTime(q.StartedAfter)}
	// without these filters, the digest is the same as in earlier releases
	if q.Version != "" || q.Parent != "" || len(q.Tags) > 0 || !q.StartedBefore.IsZero() {
		parts = append(parts, q.Version, q.Parent, table.FormatTime(q.StartedBefore))
		for _, k := range slices.Sorted(maps.Keys(q.Tags)) {
			parts = append(parts, k, q.Tags[k])
		}
	}
	return table.Digest(parts...)[:12]
}

// String returns the cursor as text for a caller.
func (c cursor) String() string {
	b, _ := json.Marshal(c) //nolint:errchkjson // two strings cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(q provider.ListQuery) (cursor, error) {
	var c cursor
	if q.Cursor == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(q.Cursor)
	if err != nil || strings.ContainsAny(q.Cursor, "\r\n") || json.Unmarshal(b, &c) != nil || c.Before == "" {
		return c, errInvalidCursor()
	}
	if c.Query != queryDigest(q) {
		return c, &provider.FieldError{Field: fieldCursor, Problem: "belongs to a list with another filter"}
	}
	if !c.isPosition(q) {
		return c, errInvalidCursor()
	}
	return c, nil
}

const fieldCursor = "cursor"

func errInvalidCursor() error {
	return &provider.FieldError{Field: fieldCursor, Problem: "does not belong to a list of instances"}
}

// sortKeyLimit is the maximum size of a sort key in bytes (a DynamoDB quota).
const sortKeyLimit = 1024

// isPosition reports whether a cursor is a possible position of a list of this query, because DynamoDB rejects a query
// that starts anywhere else. The position need not be a time, because lists include instances with a damaged item.
func (c cursor) isPosition(q provider.ListQuery) bool {
	if inputcheck.Text(fieldCursor, c.Before, 1, sortKeyLimit) != nil {
		return false
	}
	if c.Key == "" {
		return c.Before >= table.FormatTime(q.StartedAfter) && c.Before <= latestKey(q)
	}
	kind, byAttention := attentionOf(q.Status)
	id, isInstance := strings.CutPrefix(c.Key, table.IDPrefix)
	hasPartition := c.Partition >= 0 && c.Partition < len(instances.Partitions(kind))
	return byAttention && hasPartition && isInstance &&
		inputcheck.Text(fieldCursor, id, 1, provider.MaxInstanceIDBytes) == nil
}

// ListInstances reads the index by creation time. For Blocked, Paused and Deleting it reads the attention index
// instead, because a single instance among millions may have that status.
func (ls *Lists) ListInstances(ctx context.Context, q provider.ListQuery) (provider.Page, error) {
	switch {
	case q.Limit < 0 || q.Limit > largestPage:
		return provider.Page{}, &provider.FieldError{
			Field:   "limit",
			Problem: fmt.Sprintf("must be from 1 to %d", largestPage),
		}
	case q.Limit == 0:
		q.Limit = defaultPage
	}

	c, err := parseCursor(q)
	if err != nil {
		return provider.Page{}, err
	}

	if table.FormatTime(q.StartedAfter) > latestKey(q) {
		return provider.Page{}, nil // the range is empty, and DynamoDB rejects such a query
	}

	ctx = awscall.WithRetryBudget(ctx)
	// an earlier release returned cursors of the creation index
	if kind, ok := attentionOf(q.Status); ok && (q.Cursor == "" || c.Key != "") {
		return ls.listByAttention(ctx, q, kind, c)
	}
	return ls.listByCreation(ctx, q, c)
}

// listByCreation merges the shards of the creation index, newest first.
func (ls *Lists) listByCreation(ctx context.Context, q provider.ListQuery, c cursor) (page provider.Page, err error) {
	items, before, err := ls.mergeShards(ctx, q, c)
	if err != nil {
		return page, err
	}
	for _, it := range items {
		page.Instances = append(page.Instances, ls.decodeReadable(ctx, it))
	}
	if before != "" {
		page.NextCursor = cursor{Before: before, Query: queryDigest(q)}.String()
	}
	return page, nil
}

// decodeReadable returns the readable part of an instance, so that a damaged instance does not make a list fail.
func (ls *Lists) decodeReadable(ctx context.Context, it table.Item) provider.Instance {
	in, err := instances.Decode(it)
	if err != nil {
		ls.log.WarnContext(ctx, "instance item unreadable, listing the readable part",
			"event", logevent.InstanceUnreadable, "instance", in.InstanceID, "error", err)
	}
	in.Notes = nil // a page of instances with notes would be large
	return in
}

// readsPerShard is the maximum number of reads of each shard per page: 500 instances each with a filter, about 5 MB in
// total. Otherwise, a list with a filter that selects few of many instances would read all instances.
const readsPerShard = 2

// mergeShards merges the shards until a page is full or the read limit of a page is reached. It reads each shard in
// small steps, because each contains about the same share of a page's instances. before is the cursor of the rest of
// the list, or empty at its end.
func (ls *Lists) mergeShards(
	ctx context.Context, q provider.ListQuery, c cursor,
) (all []table.Item, before string, err error) {
	lists := make([]*shardList, table.Shards)
	for shard := range lists {
		lists[shard] = ls.newShardList(shard, q, c)
	}
	for left := readsPerShard * table.Shards; ; {
		next := slices.MaxFunc(lists, func(a, b *shardList) int { return cmp.Compare(a.head(), b.head()) })
		switch {
		case next.head() == "":
			return all, "", nil
		case len(next.items) > 0 && len(all) == q.Limit:
			return all, table.GetString(all[q.Limit-1], table.AttrCreated), nil
		case len(next.items) > 0:
			all = append(all, next.items[0])
			next.items = next.items[1:]
		case left <= 0:
			return all, next.head(), nil
		default:
			read, err := ls.readShards(ctx, lists)
			if err != nil {
				return nil, "", err
			}
			left -= read
		}
	}
}

// shardList holds the instances of a shard that a list has read but not used yet, newest first.
type shardList struct {
	in     *dynamodb.QueryInput
	before string // the key of the last listed instance
	tags   map[string]string
	items  []table.Item
	upTo   string // the last key that was read
	ended  bool
}

// afterAllKeys sorts after every key.
const afterAllKeys = "~"

// latestKey returns a key that sorts after all creation keys that a query selects. The key of an instance that was
// started at StartedBefore sorts after that time.
func latestKey(q provider.ListQuery) string {
	if q.StartedBefore.IsZero() {
		return afterAllKeys
	}
	return table.FormatTime(q.StartedBefore)
}

func (ls *Lists) newShardList(shard int, q provider.ListQuery, c cursor) *shardList {
	upTo := cmp.Or(c.Before, latestKey(q))
	in := instances.ShardQuery(shard, table.FormatTime(q.StartedAfter), upTo)
	in.ScanIndexForward = aws.Bool(false)
	in.Limit = aws.Int32(pageSize(q))
	filter(in, q)
	return &shardList{in: in, before: c.Before, upTo: upTo, tags: q.Tags}
}

// filter adds the filters of q except tags to a query of the index, so that DynamoDB reads the other instances but does
// not return them. The JSON of a parent starts with its ID.
func filter(in *dynamodb.QueryInput, q provider.ListQuery) {
	var conditions []string
	add := func(attribute, value string) {
		if value != "" {
			conditions = append(conditions, "#"+attribute+" = :"+attribute)
			in.ExpressionAttributeNames["#"+attribute] = attribute
			in.ExpressionAttributeValues[":"+attribute] = table.Str(value)
		}
	}
	add(table.AttrStatus, string(q.Status))
	add("name", q.Name)
	add("version", q.Version)
	if q.Parent != "" {
		conditions = append(conditions, "begins_with(#parent, :parent)")
		in.ExpressionAttributeNames["#parent"] = table.AttrParent
		in.ExpressionAttributeValues[":parent"] = table.Str(instances.ParentPrefix(q.Parent))
	}
	if len(conditions) > 0 {
		in.FilterExpression = aws.String(strings.Join(conditions, " AND "))
	}
}

// head returns the greatest key that a shard may still contain: the key of its next instance, or the last key that was
// read. If the shard has no more instances, it returns an empty key, which sorts before all others.
func (l *shardList) head() string {
	switch {
	case len(l.items) > 0:
		return table.GetString(l.items[0], table.AttrCreated)
	case l.ended:
		return ""
	default:
		return l.upTo
	}
}

// readShards reads more instances for the empty lists.
func (ls *Lists) readShards(ctx context.Context, lists []*shardList) (read int, err error) {
	var reads []func() error
	for _, l := range lists {
		if len(l.items) == 0 && !l.ended {
			reads = append(reads, func() error { return ls.readShard(ctx, l) })
		}
	}
	return len(reads), awscall.Parallel(reads...)
}

// readShard reads the next instances of a shard.
func (ls *Lists) readShard(ctx context.Context, l *shardList) error {
	page, err := ls.table.QueryPage(ctx, "", l.in)
	if err != nil {
		return err
	}
	for _, it := range page {
		if table.GetString(it, table.AttrCreated) != l.before && instances.HasTags(it, l.tags) {
			l.items = append(l.items, it)
		}
	}
	if l.ended = l.in.ExclusiveStartKey == nil; !l.ended {
		l.upTo = table.GetString(l.in.ExclusiveStartKey, table.AttrCreated)
	}
	return nil
}

// pageSize returns the number of instances that one query reads of a shard. With a filter, it reads more, because fewer
// instances match.
func pageSize(q provider.ListQuery) int32 {
	if q.Status != "" || q.Name != "" || q.Version != "" || q.Parent != "" || len(q.Tags) > 0 {
		return filteredPage
	}
	const some = 8 // a reserve, so that shards of different sizes need no second query
	return int32(q.Limit)/table.Shards + some
}

// attentionOf returns the attention kind of instances with a status. ok is false if the status does not determine it.
func attentionOf(s provider.RuntimeStatus) (kind string, ok bool) {
	switch s {
	case provider.StatusBlocked:
		return table.AttentionBlocked, true
	case provider.StatusPaused:
		return table.AttentionPaused, true
	case provider.StatusDeleting:
		return table.AttentionDeleting, true
	default:
		return "", false
	}
}

// listByAttention lists blocked, paused or deleting instances, the latest change first. The index contains only keys,
// and its projection can only be changed by rebuilding it. Each instance is therefore read with strong consistency, and
// an instance with a different status is omitted. A page reads at most as many instances as it can contain, so it can
// be empty if there is a filter.
func (ls *Lists) listByAttention(
	ctx context.Context, q provider.ListQuery, kind string, c cursor,
) (page provider.Page, err error) {
	named, next, err := ls.mergePartitions(ctx, kind, q.Limit, c)
	if err != nil {
		return page, err
	}

	items, errs := ls.instances.GetAll(ctx, named)
	if len(errs) > 0 {
		return page, errors.Join(errs...)
	}
	for _, it := range items {
		if table.GetString(it, table.AttrStatus) != string(q.Status) {
			continue
		}
		if one := ls.decodeReadable(ctx, it); q.Selects(&one) {
			page.Instances = append(page.Instances, one)
		}
	}
	if next != nil {
		page.NextCursor = cursor{
			Before:    table.GetString(next.Item, table.AttrUpdated),
			Key:       table.GetString(next.Item, table.AttrPK),
			Partition: next.partition,
			Query:     queryDigest(q),
		}.String()
	}
	return page, nil
}
