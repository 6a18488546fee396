package sweep

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

const (
	// stalledAfter is the time without progress after which the sweeper continues a deletion.
	stalledAfter = 2 * time.Minute

	deletingAtOnce = 16 // each can take a long time
)

// deletingMark is the stored position of the sweeper in the deletions.
type deletingMark struct {
	// IndexPosition is the position in the first partition, which is the only partition of earlier releases. More holds
	// the positions in the other partitions.
	instances.IndexPosition

	More []instances.IndexPosition `json:"more,omitempty"`
	// Last is the partition of the last deletion. The next search begins behind this partition, so that deletions that
	// crash their process in one partition do not delay the other partitions.
	Last int `json:"last,omitempty"`
}

func (m *deletingMark) position(partition int) instances.IndexPosition {
	return positionIn(m.IndexPosition, m.More, partition)
}

// pass sets the position to a deletion.
func (m *deletingMark) pass(d deletion) {
	m.IndexPosition, m.More = withPosition(m.IndexPosition, m.More, d.partition, instances.PositionOf(d.Item))
	m.Last = d.partition
}

// deletion is an entry of the attention index, and the number of its partition.
type deletion struct {
	table.Item

	partition int
}

// deletionQuery is a query of a partition.
type deletionQuery struct {
	partition int
	in        *dynamodb.QueryInput
}

// queryDeletions returns a query of a partition behind a position, up to a time.
func queryDeletions(partition int, behind instances.IndexPosition, upTo string) deletionQuery {
	name := instances.Partitions(table.AttentionDeleting)[partition]
	in := instances.AttentionQueryUntil(name, upTo)
	in.Limit = aws.Int32(deletingAtOnce)
	in.ExclusiveStartKey = behind.StartKey(name)
	return deletionQuery{partition, in}
}

// DeletingInstances reads all deletions in the attention index, each partition from its last position. It also reads
// each instance, because the index can be stale after a deletion, and the ID can have a new incarnation. It stores its
// positions before each step, so that a deletion that fails or crashes its process does not delay the others.
func (ss *Searches) DeletingInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return func(yield func([]provider.Instance, error) bool) {
		before := table.FormatTime(ss.now().Add(-stalledAfter))
		var mark deletingMark
		if err := ss.positions.Read(ctx, deletingPosition, &mark); err != nil {
			yield(nil, err)
			return
		}

		var rest, passed []deletionQuery
		for n := range table.Shards {
			partition := (max(mark.Last, 0) + 1 + n) % table.Shards
			begun := mark.position(partition)
			if begun.Updated >= before {
				begun = instances.IndexPosition{}
			}
			rest = append(rest, queryDeletions(partition, begun, before))
			if begun.Key != "" {
				passed = append(passed, queryDeletions(partition, instances.IndexPosition{}, begun.Updated))
			}
		}
		if ss.searchDeletions(ctx, &mark, rest, yield) {
			ss.searchDeletions(ctx, &mark, passed, yield)
		}
	}
}

// searchDeletions makes queries, one page of each at a time. If a query fails, it still yields the deletions of the
// other queries.
func (ss *Searches) searchDeletions(
	ctx context.Context, mark *deletingMark, queries []deletionQuery,
	yield func([]provider.Instance, error) bool,
) (more bool) {
	for len(queries) > 0 {
		pages := make([][]table.Item, len(queries))
		failed := awscall.ForEach(len(queries), func(i int) (err error) {
			pages[i], err = ss.table.QueryPage(ctx, "", queries[i].in)
			return err
		})
		var all []deletion
		for i, page := range pages {
			for _, it := range page {
				all = append(all, deletion{it, queries[i].partition})
			}
		}
		for some := range slices.Chunk(all, deletingAtOnce) {
			if !ss.yieldDeletions(ctx, mark, some, yield) {
				return false
			}
		}
		if failed != nil {
			yield(nil, failed)
			return false
		}
		queries = slices.DeleteFunc(queries, func(q deletionQuery) bool { return q.in.ExclusiveStartKey == nil })
	}
	return true
}

// yieldDeletions stores the positions of deletions, and yields those that are not complete.
func (ss *Searches) yieldDeletions(
	ctx context.Context, mark *deletingMark, some []deletion, yield func([]provider.Instance, error) bool,
) (more bool) {
	named := make([]table.Item, 0, len(some))
	for _, d := range some {
		mark.pass(d)
		named = append(named, d.Item)
	}
	if err := ss.positions.Put(ctx, deletingPosition, mark); err != nil {
		yield(nil, err)
		return false
	}
	found, errs := ss.instances.ReadAll(ctx, named, provider.StatusDeleting)
	return yieldAll(found, errs, yield) && ctx.Err() == nil
}
