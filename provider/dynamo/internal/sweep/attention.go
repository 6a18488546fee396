package sweep

import (
	"context"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// yieldAll yields errors, and then the found instances if there are any.
func yieldAll(found []provider.Instance, errs []error, yield func([]provider.Instance, error) bool) (more bool) {
	for _, err := range errs {
		if !yield(nil, err) {
			return false
		}
	}
	return len(found) == 0 || yield(found, nil)
}

const (
	// blockedPosition and deletingPosition are the names of the stored positions.
	blockedPosition  = "blocked"
	deletingPosition = "deleting"

	blockedAtOnce  = 250
	deletingAtOnce = 16 // each can take a long time
)

// BlockedInstances reads the attention index from its last position. It stores its position before each step, so that
// an instance that cannot be processed does not delay the others. The next round finds that instance again.
//
// It also requests a report from an orchestrator. A new build reports only when it first runs a turn, which may never
// happen if all instances are blocked. If a build is deployed again, all its environments may have reported before.
func (ss *Searches) BlockedInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return func(yield func([]provider.Instance, error) bool) {
		some, err := ss.anyBlocked(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		if !some {
			return
		}

		last, err := ss.builds.LatestID(ctx)
		var mark blockedRound
		if err == nil {
			err = ss.positions.Read(ctx, blockedPosition, &mark)
			mark.stored = true
		}
		if err != nil {
			yield(nil, err)
			return
		}
		ss.searchBlocked(ctx, mark.round(last, ss.now()), yield)
	}
}

// anyBlocked reports whether any instance is blocked, and requests a report of the build if so.
func (ss *Searches) anyBlocked(ctx context.Context) (bool, error) {
	n, err := ss.countBlocked(ctx, 1)
	if n > 0 {
		ss.builds.RequestReport(ctx)
	}
	return n > 0, err
}

// searchBlocked searches the partitions of the blocked instances, one page of each in turn. A partition with constant
// new entries therefore does not delay the others.
func (ss *Searches) searchBlocked(ctx context.Context, mark blockedRound, yield func([]provider.Instance, error) bool) {
	type query struct {
		partition int
		in        *dynamodb.QueryInput
	}
	var turns []query
	for i, partition := range instances.Partitions(table.AttentionBlocked) {
		in := instances.AttentionQuery(partition)
		in.Limit = aws.Int32(blockedAtOnce)
		in.ExclusiveStartKey = mark.position(i).StartKey(partition)
		turns = append(turns, query{i, in})
	}

	for len(turns) > 0 {
		q := turns[0]
		turns = turns[1:]
		page, err := ss.table.QueryPage(ctx, "", q.in)
		if err == nil {
			if q.in.ExclusiveStartKey != nil {
				turns = append(turns, q)
			}
			err = ss.storePassed(ctx, &mark, q.partition, page, len(turns) == 0)
		}
		if err != nil {
			yield(nil, err)
			return
		}

		found, errs := ss.instances.ReadAll(ctx, blockedByOthers(page, mark.Build), provider.StatusBlocked)
		if !yieldAll(found, errs, yield) || ctx.Err() != nil {
			return
		}
	}
}

// blockedByOthers returns the instances that another build has blocked.
func blockedByOthers(page []table.Item, build string) (elsewhere []table.Item) {
	for _, it := range page {
		if table.GetString(it, table.AttrBlockedBy) != build {
			elsewhere = append(elsewhere, it)
		}
	}
	return elsewhere
}

// storePassed stores that the round has passed a page of a partition, and other changes of the mark. It writes nothing
// if nothing changed.
func (ss *Searches) storePassed(
	ctx context.Context, mark *blockedRound, partition int, page []table.Item, through bool,
) error {
	if len(page) == 0 && mark.stored && (mark.Through || !through) {
		return nil
	}
	if len(page) > 0 {
		*mark = mark.passed(partition, instances.PositionOf(page[len(page)-1]))
	}
	mark.Through, mark.stored = mark.Through || through, true
	return ss.positions.Put(ctx, blockedPosition, *mark)
}

// stalledAfter is the time without progress after which the sweeper continues a deletion.
const stalledAfter = 2 * time.Minute

// DeletingInstances reads the whole attention index from its last position. It also reads each instance, because the
// index can be stale after a deletion, and the ID can have a new incarnation. It stores its position before each step,
// so that a deletion that fails or crashes its process does not delay the others.
func (ss *Searches) DeletingInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return func(yield func([]provider.Instance, error) bool) {
		before := table.FormatTime(ss.now().Add(-stalledAfter))
		var begun instances.IndexPosition
		if err := ss.positions.Read(ctx, deletingPosition, &begun); err != nil {
			yield(nil, err)
			return
		}
		if begun.Updated >= before {
			begun = instances.IndexPosition{}
		}
		if ss.searchDeleting(ctx, begun, instances.IndexPosition{Updated: before}, yield) && begun.Key != "" {
			ss.searchDeleting(ctx, instances.IndexPosition{}, begun, yield)
		}
	}
}

// searchDeleting searches the entries between two positions.
func (ss *Searches) searchDeleting(
	ctx context.Context, behind, upTo instances.IndexPosition, yield func([]provider.Instance, error) bool,
) (more bool) {
	in := instances.AttentionQueryUntil(table.AttentionDeleting, upTo.Updated)
	in.Limit = aws.Int32(deletingAtOnce)
	in.ExclusiveStartKey = behind.StartKey(table.AttentionDeleting)

	for {
		page, err := ss.table.QueryPage(ctx, "", in)
		if err == nil && len(page) > 0 {
			err = ss.positions.Put(ctx, deletingPosition, instances.PositionOf(page[len(page)-1]))
		}
		if err != nil {
			yield(nil, err)
			return false
		}

		found, errs := ss.instances.ReadAll(ctx, page, provider.StatusDeleting)
		if !yieldAll(found, errs, yield) || ctx.Err() != nil {
			return false
		}
		if in.ExclusiveStartKey == nil {
			return true
		}
	}
}
