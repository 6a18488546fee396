package sweep

import (
	"context"
	"iter"

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

	blockedAtOnce = 250
)

// BlockedInstances reads the attention index from its last position. It stores its position before each step, so that
// an instance that cannot be processed does not delay the others. The next round finds that instance again.
//
// It also requests a report from an orchestrator. A process reports its build only when it starts, for which it needs a
// message, and none may arrive if all instances are blocked. If a build is deployed again, all its environments may
// have reported before.
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
