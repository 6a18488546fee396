package sweep

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// pendingSample is the number of pending instances that oldestPending reads from each end of the attention index.
const pendingSample = 32

// CountAttention makes one query of a page per partition of the blocked instances and of the deletions, and two more
// queries. It reads up to 64 pending instances.
func (ss *Searches) CountAttention(ctx context.Context) (a provider.AttentionCounts, err error) {
	err = awscall.Parallel(
		func() (err error) {
			a.Blocked, err = ss.countBlocked(ctx, provider.MaxAttention)
			return err
		},
		func() (err error) {
			a.Deleting, err = ss.countDeleting(ctx)
			return err
		},
		func() (err error) {
			a.OldestPending, err = ss.oldestPending(ctx)
			return err
		})
	return a, err
}

// countBlocked counts the blocked instances, up to most.
func (ss *Searches) countBlocked(ctx context.Context, most int) (int, error) {
	return ss.count(ctx, table.AttentionBlocked, most, instances.AttentionQuery)
}

// countDeleting counts the deletions without recent progress.
func (ss *Searches) countDeleting(ctx context.Context) (int, error) {
	before := table.FormatTime(ss.now().Add(-stalledAfter))
	return ss.count(ctx, table.AttentionDeleting, provider.MaxAttention, func(partition string) *dynamodb.QueryInput {
		return instances.AttentionQueryUntil(partition, before)
	})
}

// count counts the entries on one page of each partition of a kind, up to most. The first partition can contain all of
// them, because earlier releases used only that partition. count reads at most twice the share of any other partition.
func (ss *Searches) count(
	ctx context.Context, kind string, most int, query func(partition string) *dynamodb.QueryInput,
) (int, error) {
	partitions := instances.Partitions(kind)
	counts := make([]int, len(partitions))
	err := awscall.ForEach(len(partitions), func(i int) error {
		in := query(partitions[i])
		in.Limit = aws.Int32(int32(most))
		if i > 0 {
			in.Limit = aws.Int32(int32(most*2/table.Shards + 1))
		}
		page, err := ss.table.QueryPage(ctx, "", in)
		counts[i] = len(page)
		return err
	})
	all := 0
	for _, n := range counts {
		all += n
	}
	return min(all, most), err
}

// oldestPending returns the due time of the oldest pending instance. The index sorts by the time of the next check. The
// time between two checks doubles. An instance that has waited for long is therefore at the end of the index, or at its
// beginning shortly before its check.
func (ss *Searches) oldestPending(ctx context.Context) (oldest time.Time, err error) {
	named := map[string]table.Item{}
	for _, forward := range []bool{true, false} {
		before := table.FormatTime(ss.now().Add(instances.MaxWakeInterval))
		in := instances.AttentionQueryUntil(table.AttentionPending, before)
		in.ScanIndexForward = aws.Bool(forward)
		in.Limit = aws.Int32(pendingSample)
		page, err := ss.table.QueryPage(ctx, "", in)
		if err != nil {
			return time.Time{}, err
		}
		for _, it := range page {
			named[table.GetString(it, table.AttrPK)] = it
		}
	}

	sample := make([]table.Item, 0, len(named))
	for _, it := range named {
		sample = append(sample, it)
	}
	found, errs := ss.instances.ReadAll(ctx, sample, provider.StatusPending)
	now := ss.now()
	for i := range found {
		begins := instances.FirstTurnAt(&found[i])
		if begins.Before(now) && (oldest.IsZero() || begins.Before(oldest)) {
			oldest = begins
		}
	}
	return oldest, errors.Join(errs...)
}
