package sweep

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// pendingSample is the number of pending instances that oldestPending reads from each end of the attention index.
const pendingSample = 32

// CountAttention makes one query of a page per partition of the blocked instances, and three more queries. It reads up
// to 64 pending instances.
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

// countBlocked counts the blocked instances on one page of each partition, up to most. The first partition can contain
// all of them, because earlier releases used only that partition. countBlocked reads at most twice the share of any
// other partition.
func (ss *Searches) countBlocked(ctx context.Context, most int) (int, error) {
	partitions := instances.Partitions(table.AttentionBlocked)
	counts := make([]int, len(partitions))
	err := awscall.ForEach(len(partitions), func(i int) error {
		in := instances.AttentionQuery(partitions[i])
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

// countDeleting counts the deletions without recent progress, on one page of the index.
func (ss *Searches) countDeleting(ctx context.Context) (int, error) {
	before := table.FormatTime(ss.now().Add(-stalledAfter))
	in := instances.AttentionQueryUntil(table.AttentionDeleting, before)
	in.Limit = aws.Int32(provider.MaxAttention)
	page, err := ss.table.QueryPage(ctx, "", in)
	return len(page), err
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
