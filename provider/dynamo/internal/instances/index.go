package instances

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// AttentionQuery returns a query of a partition of the attention index, sorted by the time of the last change.
func AttentionQuery(partition string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		IndexName:                 aws.String(table.IndexByAttention),
		KeyConditionExpression:    aws.String("attention = :kind"),
		ExpressionAttributeValues: table.Item{":kind": table.Str(partition)},
	}
}

// AttentionQueryUntil is AttentionQuery for instances whose last change is not after a time.
func AttentionQueryUntil(partition, updated string) *dynamodb.QueryInput {
	in := AttentionQuery(partition)
	in.KeyConditionExpression = aws.String("attention = :kind AND updated <= :before")
	in.ExpressionAttributeValues[":before"] = table.Str(updated)
	return in
}

// IndexPosition is the position of a search in the attention index.
type IndexPosition struct {
	Updated string `json:"updated,omitempty"`
	Key     string `json:"key,omitempty"` // pk of the instance
}

// StartKey returns the index key to start after, or nil for the beginning.
func (a IndexPosition) StartKey(partition string) table.Item {
	if a.Key == "" {
		return nil
	}
	return table.Item{
		table.AttrAttention: table.Str(partition),
		table.AttrUpdated:   table.Str(a.Updated),
		table.AttrPK:        table.Str(a.Key),
		table.AttrSK:        table.Str(table.SKInstance),
	}
}

// PositionOf returns the position of an entry of the attention index.
func PositionOf(it table.Item) IndexPosition {
	return IndexPosition{Updated: table.GetString(it, table.AttrUpdated), Key: table.GetString(it, table.AttrPK)}
}

// MaxParallelReads is the number of instances that the sweeper or a list reads or writes concurrently. Each one is in
// its own partition, and there may be a million after an hour without a renewer.
const MaxParallelReads = 64

// GetAll reads the instances that an index returned, with strong consistency, because the index contains only their
// keys and may be stale. It omits instances that no longer exist.
func (is *Store) GetAll(ctx context.Context, named []table.Item) (items []table.Item, errs []error) {
	var mu sync.Mutex
	found := make([]table.Item, len(named))
	_ = awscall.ForEachN(MaxParallelReads, len(named), func(i int) error {
		got, err := is.Get(ctx, table.InstanceIDOf(named[i]), provider.Strong)
		if err != nil && !errors.Is(err, provider.ErrNotFound) {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		}
		found[i] = got
		return nil
	})
	for _, it := range found {
		if len(it) > 0 {
			items = append(items, it)
		}
	}
	return items, errs
}

// ReadAll reads the instances that an index returned, and returns those that still have the status.
func (is *Store) ReadAll(
	ctx context.Context, named []table.Item, status provider.RuntimeStatus,
) (found []provider.Instance, errs []error) {
	items, errs := is.GetAll(ctx, named)
	for _, it := range items {
		if table.GetString(it, table.AttrStatus) != string(status) {
			continue
		}
		in, err := Decode(it)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, in)
	}
	return found, errs
}

// A faulty deployment can block thousands of instances at once, a job can delete a million, and a partition of an index
// supports 1,000 writes per second. Blocked instances and deletions are therefore distributed over as many partitions
// as the creation index has. Earlier releases stored all of them in the first partition of their kind.

// BlockedPartition returns the partition of a blocked instance in the attention index.
func BlockedPartition(instanceID string) string {
	return partitionOf(table.AttentionBlocked, instanceID)
}

// DeletingPartition returns the partition of an instance that is being deleted in the attention index.
func DeletingPartition(instanceID string) string {
	return partitionOf(table.AttentionDeleting, instanceID)
}

func partitionOf(kind, instanceID string) string {
	if shard := table.ShardOf(instanceID); shard != "0" {
		return kind + "#" + shard
	}
	return kind
}

// Partitions returns the partitions of a kind in the attention index.
func Partitions(kind string) []string {
	partitions := []string{kind}
	if kind == table.AttentionBlocked || kind == table.AttentionDeleting {
		for shard := 1; shard < table.Shards; shard++ {
			partitions = append(partitions, kind+"#"+strconv.Itoa(shard))
		}
	}
	return partitions
}

// ShardQuery returns a query of a shard of the creation index between two keys.
func ShardQuery(shard int, from, to string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		IndexName:              aws.String(table.IndexByCreation),
		KeyConditionExpression: aws.String("gs = :shard AND #created BETWEEN :from AND :to"),
		// names that may be reserved words need an alias
		ExpressionAttributeNames: table.Names(table.AttrCreated),
		ExpressionAttributeValues: table.Item{
			":shard": table.Str(strconv.Itoa(shard)),
			":from":  table.Str(from),
			":to":    table.Str(to),
		},
	}
}

// Due dates are stored as days in UTC. Retention needs no finer resolution, and a search can read all days of several
// months.
const (
	Day       = 24 * time.Hour
	DayFormat = "2006-01-02"
)

// DueKey returns the key in the due index: the first day that does not start before the given time.
func DueKey(instanceID string, at time.Time) string {
	at = at.UTC()
	whole := at.Truncate(Day)
	if whole.Before(at) {
		whole = whole.Add(Day)
	}
	return whole.Format(DayFormat) + "#" + table.ShardOf(instanceID)
}

// IsDue reports whether the day of a key of the index is today or earlier.
func IsDue(key string, now time.Time) bool {
	return len(key) > len(DayFormat) && key[:len(DayFormat)] <= now.UTC().Format(DayFormat)
}

// PastRetention returns the retention of past executions, for an instance with the given retention. A message that
// their turns consumed can be redelivered, or recovered from a dead-letter queue. The history then determines the
// outputs to resend (R4, R13). A past execution is therefore not erased while a queue may hold such a message. An ended
// instance has sent all outputs (R9), so it needs no minimum.
func PastRetention(retention time.Duration) time.Duration {
	return max(retention, table.TombstoneLifetime)
}
