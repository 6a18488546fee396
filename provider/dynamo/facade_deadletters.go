package dynamo

import (
	"context"
	"iter"
	"time"

	"github.com/perdure/perdure/provider"
)

// DeadLetteredRecords implements provider.PoisonHandler.
func (p *Provider) DeadLetteredRecords(ctx context.Context) iter.Seq2[provider.DeadLetteredRecord, error] {
	return p.deadLetters.Moved(ctx)
}

// AnnotateDeadLetter implements provider.PoisonHandler.
func (p *Provider) AnnotateDeadLetter(ctx context.Context, m provider.DeadLetteredRecord, why error) error {
	return p.deadLetters.Annotate(ctx, m, why)
}

// ReceiveDeadLetters implements provider.DeadLetters.
func (p *Provider) ReceiveDeadLetters(ctx context.Context, queue string, hide time.Duration) ([]provider.DeadLetter, error) {
	return p.deadLetters.Receive(ctx, queue, hide)
}

// ReleaseDeadLetters implements provider.DeadLetters.
func (p *Provider) ReleaseDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	return p.deadLetters.Release(ctx, queue, letters...)
}

// DropDeadLetters implements provider.DeadLetters.
func (p *Provider) DropDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	return p.deadLetters.Drop(ctx, queue, letters...)
}

// RedriveDeadLetters implements provider.DeadLetters.
func (p *Provider) RedriveDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	return p.deadLetters.Redrive(ctx, queue, letters...)
}
