package dynamo

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// DeadLetter implements provider.Records.
func (p *Provider) DeadLetter(ctx context.Context, queue string, u provider.Unreadable) error {
	return p.queue.DeadLetter(ctx, queue, u)
}

// FetchRecords implements provider.Poller.
func (p *Provider) FetchRecords(ctx context.Context, queue string) ([]provider.Record, error) {
	return p.queue.FetchRecords(ctx, queue)
}

// RenewRecords implements provider.Poller.
func (p *Provider) RenewRecords(ctx context.Context, queue string, lock time.Duration, records ...provider.Record) (lost []provider.Record, err error) {
	return p.queue.RenewRecords(ctx, queue, lock, records...)
}

// DeleteRecords implements provider.Records.
func (p *Provider) DeleteRecords(ctx context.Context, queue string, records ...provider.Record) error {
	return p.queue.DeleteRecords(ctx, queue, records...)
}

// AbandonRecords implements provider.Records.
func (p *Provider) AbandonRecords(ctx context.Context, queue string, delay time.Duration, records ...provider.Record) error {
	return p.queue.AbandonRecords(ctx, queue, delay, records...)
}

// CountWorkItems implements provider.Workers.
func (p *Provider) CountWorkItems(ctx context.Context) (map[string]int, error) {
	return p.queue.CountWorkItems(ctx)
}

// DeadLetterQueues implements provider.DeadLetters.
func (p *Provider) DeadLetterQueues() []string {
	return p.queue.DeadLetterQueues()
}

// CountDeadLetters implements provider.DeadLetters.
func (p *Provider) CountDeadLetters(ctx context.Context, queue string) (visible, hidden int, err error) {
	return p.queue.CountDeadLetters(ctx, queue)
}
