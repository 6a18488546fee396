package dynamo

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// attentionQuery returns a query of a partition of the attention index, sorted by the time of the last change.
func (p *Provider) attentionQuery(partition string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		IndexName:              aws.String(table.IndexByAttention),
		KeyConditionExpression: aws.String("attention = :kind"), ExpressionAttributeValues: table.Item{":kind": table.Str(partition)},
	}
}

// place is the position of a search in the attention index.
type place struct {
	Updated string `json:"updated,omitempty"`
	Key     string `json:"key,omitempty"` // pk of the instance
}

// after returns the index key to start after, or nil for the beginning.
func (a place) after(partition string) table.Item {
	if a.Key == "" {
		return nil
	}
	return table.Item{table.AttrAttention: table.Str(partition), table.AttrUpdated: table.Str(a.Updated), table.AttrPK: table.Str(a.Key), table.AttrSK: table.Str(table.SKInstance)}
}

func placeOf(it table.Item) place {
	return place{Updated: table.GetString(it, table.AttrUpdated), Key: table.GetString(it, table.AttrPK)}
}

// instancesAtOnce is the number of instances that the sweeper or a list reads or writes concurrently. Each one is in
// its own partition, and there may be a million after an hour without a renewer.
const instancesAtOnce = 64

// getAll reads the instances that an index returned, with strong consistency, because the index contains only their
// keys and may be stale. It omits instances that no longer exist.
func (p *Provider) getAll(ctx context.Context, named []table.Item) (items []table.Item, errs []error) {
	var mu sync.Mutex
	found := make([]table.Item, len(named))
	reads := make([]func() error, len(named))
	for i, it := range named {
		reads[i] = func() error {
			got, err := p.getInstance(ctx, instanceIDOf(it), provider.Strong)
			if err != nil && !errors.Is(err, provider.ErrNotFound) {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			found[i] = got
			return nil
		}
	}

	_ = awscall.ParallelN(instancesAtOnce, reads)
	for _, it := range found {
		if len(it) > 0 {
			items = append(items, it)
		}
	}
	return items, errs
}

// readAll reads the instances that an index returned, and returns those that still have the status.
func (p *Provider) readAll(ctx context.Context, named []table.Item, status provider.RuntimeStatus) (found []provider.Instance, errs []error) {
	items, errs := p.getAll(ctx, named)
	for _, it := range items {
		if table.GetString(it, table.AttrStatus) != string(status) {
			continue
		}
		in, err := decodeInstance(it)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, in)
	}
	return found, errs
}

func instanceIDOf(it table.Item) string {
	pk := table.GetString(it, table.AttrPK)
	return pk[min(len(table.IDPrefix), len(pk)):]
}

// handOut yields errors, and then the found instances if there are any.
func handOut(found []provider.Instance, errs []error, yield func([]provider.Instance, error) bool) (goOn bool) {
	for _, err := range errs {
		if !yield(nil, err) {
			return false
		}
	}
	return len(found) == 0 || yield(found, nil)
}

const (
	// dutyBlocked and dutyDeleting are the names of the stored positions.
	dutyBlocked  = "blocked"
	dutyDeleting = "deleting"

	blockedAtOnce  = 250
	deletingAtOnce = 16 // each can take long
)

// BlockedInstances reads the attention index from its last position. It stores its position before each step, so that
// an instance that cannot be processed does not delay the others. The next round finds that instance again.
//
// It also requests a report from an orchestrator. A new build reports only when it first runs a turn, which may never
// happen if all instances are blocked. A build that is deployed again may only have environments that have reported
// already.
func (p *Provider) BlockedInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return func(yield func([]provider.Instance, error) bool) {
		some, err := p.anyBlocked(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		if !some {
			return
		}

		last, err := p.builds.LatestID(ctx)
		var mark blockedMark
		if err == nil {
			err = p.hubItems.ReadPosition(ctx, dutyBlocked, &mark)
			mark.stored = true
		}
		if err != nil {
			yield(nil, err)
			return
		}
		p.walkBlocked(ctx, mark.round(last, p.now()), yield)
	}
}

// anyBlocked reports whether any instance is blocked, and requests a report of the build if so.
func (p *Provider) anyBlocked(ctx context.Context) (bool, error) {
	n, err := p.countBlocked(ctx, 1)
	if n > 0 {
		p.builds.RequestReport(ctx)
	}
	return n > 0, err
}

// walkBlocked searches the partitions of the blocked instances, one page of each in turn, so that a partition with
// constant new entries does not delay the others.
func (p *Provider) walkBlocked(ctx context.Context, mark blockedMark, yield func([]provider.Instance, error) bool) {
	type query struct {
		partition int
		in        *dynamodb.QueryInput
	}
	var turns []query
	for i, partition := range partitionsOf(table.AttentionBlocked) {
		in := p.attentionQuery(partition)
		in.Limit = aws.Int32(blockedAtOnce)
		in.ExclusiveStartKey = mark.place(i).after(partition)
		turns = append(turns, query{i, in})
	}

	for len(turns) > 0 {
		q := turns[0]
		turns = turns[1:]
		page, err := p.table.QueryPage(ctx, "", q.in)
		if err == nil {
			if q.in.ExclusiveStartKey != nil {
				turns = append(turns, q)
			}
			err = p.passed(ctx, &mark, q.partition, page, len(turns) == 0)
		}
		if err != nil {
			yield(nil, err)
			return
		}

		found, errs := p.readAll(ctx, blockedElsewhere(page, mark.Build), provider.StatusBlocked)
		if !handOut(found, errs, yield) || ctx.Err() != nil {
			return
		}
	}
}

// blockedElsewhere returns the instances that another build has blocked.
func blockedElsewhere(page []table.Item, build string) (elsewhere []table.Item) {
	for _, it := range page {
		if table.GetString(it, table.AttrBlockedBy) != build {
			elsewhere = append(elsewhere, it)
		}
	}
	return elsewhere
}

// passed stores that the round has passed a page of a partition, and other changes of the mark. It writes nothing if
// nothing changed.
func (p *Provider) passed(ctx context.Context, mark *blockedMark, partition int, page []table.Item, through bool) error {
	if len(page) == 0 && mark.stored && (mark.Through || !through) {
		return nil
	}
	if len(page) > 0 {
		*mark = mark.pass(partition, placeOf(page[len(page)-1]))
	}
	mark.Through, mark.stored = mark.Through || through, true
	return p.hubItems.PutPosition(ctx, dutyBlocked, *mark)
}

// deletingFor is the time without progress after which the sweeper continues a deletion.
const deletingFor = 2 * time.Minute

// DeletingInstances reads the whole attention index from its last position, and reads each instance: the index can be
// behind after a deletion, and the ID can have a new incarnation. It stores its position before each step, so that a
// deletion that fails or crashes its process does not delay the others.
func (p *Provider) DeletingInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return func(yield func([]provider.Instance, error) bool) {
		before := table.FormatTime(p.now().Add(-deletingFor))
		var begun place
		if err := p.hubItems.ReadPosition(ctx, dutyDeleting, &begun); err != nil {
			yield(nil, err)
			return
		}
		if begun.Updated >= before {
			begun = place{}
		}
		if p.walkDeleting(ctx, begun, place{Updated: before}, yield) && begun.Key != "" {
			p.walkDeleting(ctx, place{}, begun, yield)
		}
	}
}

// walkDeleting searches the entries between two positions.
func (p *Provider) walkDeleting(ctx context.Context, behind, upTo place, yield func([]provider.Instance, error) bool) (goOn bool) {
	in := p.attentionQuery(table.AttentionDeleting)
	in.KeyConditionExpression = aws.String("attention = :kind AND updated <= :before")
	in.ExpressionAttributeValues[":before"] = table.Str(upTo.Updated)
	in.Limit = aws.Int32(deletingAtOnce)
	in.ExclusiveStartKey = behind.after(table.AttentionDeleting)

	for {
		page, err := p.table.QueryPage(ctx, "", in)
		if err == nil && len(page) > 0 {
			err = p.hubItems.PutPosition(ctx, dutyDeleting, placeOf(page[len(page)-1]))
		}
		if err != nil {
			yield(nil, err)
			return false
		}

		found, errs := p.readAll(ctx, page, provider.StatusDeleting)
		if !handOut(found, errs, yield) || ctx.Err() != nil {
			return false
		}
		if in.ExclusiveStartKey == nil {
			return true
		}
	}
}
