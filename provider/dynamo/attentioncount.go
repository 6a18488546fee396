package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/provider"
)

// pendingSampled is how many pending instances are read from either end of the index by attention to find the oldest.
const pendingSampled = 32

// CountAttention makes four queries of one page each, and reads up to 64 instances where any are pending.
func (p *Provider) CountAttention(ctx context.Context) (a provider.Attention, err error) {
	err = together(
		func() (err error) {
			a.Blocked, err = p.countAttention(ctx, attentionBlocked, "")
			return err
		},
		func() (err error) {
			a.Deleting, err = p.countAttention(ctx, attentionDeleting, formatTime(p.now().Add(-deletingFor)))
			return err
		},
		func() (err error) {
			a.OldestPending, err = p.oldestPending(ctx)
			return err
		})
	return a, err
}

// countAttention counts the entries of one kind, up to a time if one is given, on one page of the index.
func (p *Provider) countAttention(ctx context.Context, kind, upTo string) (int, error) {
	in := p.attentionQuery(kind)
	in.Limit = aws.Int32(provider.MaxAttention)
	if upTo != "" {
		in.KeyConditionExpression = aws.String("attention = :kind AND updated <= :before")
		in.ExpressionAttributeValues[":before"] = str(upTo)
	}
	page, err := p.queryPage(ctx, "", in)
	return len(page), err
}

// oldestPending returns when the oldest pending instance was to begin. The index sorts by when the watch looks next: an
// instance that has waited for long stands at its end, since the time between two looks doubles, or at its beginning
// shortly before its look.
func (p *Provider) oldestPending(ctx context.Context) (oldest time.Time, err error) {
	named := map[string]item{}
	for _, forward := range []bool{true, false} {
		in := p.attentionQuery(attentionPending)
		in.KeyConditionExpression = aws.String("attention = :kind AND updated <= :before")
		in.ExpressionAttributeValues[":before"] = str(formatTime(p.now().Add(wakeLatest)))
		in.ScanIndexForward = aws.Bool(forward)
		in.Limit = aws.Int32(pendingSampled)
		page, err := p.queryPage(ctx, "", in)
		if err != nil {
			return time.Time{}, err
		}
		for _, it := range page {
			named[getString(it, attrPK)] = it
		}
	}

	sample := make([]item, 0, len(named))
	for _, it := range named {
		sample = append(sample, it)
	}
	found, errs := p.readAll(ctx, sample, provider.StatusPending)
	now := p.now()
	for i := range found {
		begins := found[i].CreatedAt
		if found[i].StartAt.After(begins) {
			begins = found[i].StartAt
		}
		if begins.Before(now) && (oldest.IsZero() || begins.Before(oldest)) {
			oldest = begins
		}
	}
	return oldest, errors.Join(errs...)
}
