// Package inside runs the calls of a client in the bubble of an Env.
package inside

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Bubble runs functions in virtual time.
type Bubble interface {
	// Do runs f in the bubble and waits for it.
	Do(f func())
	// IsInside reports whether the calling goroutine belongs to the bubble.
	IsInside() bool
	// StartMayBeLost records that an instance may have been started without a wake.
	StartMayBeLost()
}

// hub runs calls for builds, schedules, documents and prepared starts in the bubble.
type hub struct {
	provider.Provider

	bubble Bubble
}

// within returns a context for a call in the bubble.
func (b *hub) within(ctx context.Context) context.Context {
	if b.bubble.IsInside() {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// run runs a call in the bubble and waits for it.
func (b *hub) run(ctx context.Context, call func(ctx context.Context)) {
	ctx = b.within(ctx)
	b.bubble.Do(func() { call(ctx) })
}

func (b *hub) ReadDocument(
	ctx context.Context, instanceID string, ref history.Reference,
) (doc json.RawMessage, err error) {
	b.run(ctx, func(ctx context.Context) { doc, err = b.Provider.ReadDocument(ctx, instanceID, ref) })
	return doc, err
}

func (b *hub) PutBuild(ctx context.Context, build provider.Build) (err error) {
	b.run(ctx, func(ctx context.Context) { err = b.Provider.PutBuild(ctx, build) })
	return err
}

func (b *hub) ReadBuild(ctx context.Context, id string) (build provider.Build, err error) {
	b.run(ctx, func(ctx context.Context) { build, err = b.Provider.ReadBuild(ctx, id) })
	return build, err
}

func (b *hub) PutScheduleEntry(ctx context.Context, s provider.ScheduleEntry) (err error) {
	b.run(ctx, func(ctx context.Context) { err = b.Provider.PutScheduleEntry(ctx, s) })
	return err
}

func (b *hub) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) (err error) {
	b.run(ctx, func(ctx context.Context) { err = b.Provider.DeleteScheduleEntry(ctx, s) })
	return err
}

func (b *hub) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.ScheduleEntry, error] {
	return sequence(ctx, b, func(ctx context.Context) iter.Seq2[provider.ScheduleEntry, error] {
		return b.Provider.ListSchedules(ctx, after)
	})
}

func (b *hub) Annotate(ctx context.Context, instanceID string, n provider.Note) (err error) {
	ctx = b.within(ctx)
	b.bubble.Do(func() { err = b.Provider.Annotate(ctx, instanceID, n) })
	return err
}

// PrepareStart implements provider.StartPreparer.
func (b *hub) PrepareStart(ctx context.Context, s provider.Start) (provider.PreparedStart, error) {
	preparer, ok := b.Provider.(provider.StartPreparer)
	if !ok {
		return nil, client.ErrPrepareStartUnsupported
	}
	var prepared provider.PreparedStart
	var err error
	b.run(ctx, func(ctx context.Context) { prepared, err = preparer.PrepareStart(ctx, s) })
	if err != nil {
		return nil, err
	}
	return &preparedStart{prepared, b}, nil
}

// preparedStart is a prepared start whose Wake runs in the bubble.
type preparedStart struct {
	provider.PreparedStart

	hub *hub
}

// Wake implements provider.PreparedStart.
func (s *preparedStart) Wake(ctx context.Context) (err error) {
	s.hub.run(ctx, func(ctx context.Context) { err = s.PreparedStart.Wake(ctx) })
	return err
}

// Unwrap returns the start that dynamo.TransactItems accepts.
func (s *preparedStart) Unwrap() provider.PreparedStart { return s.PreparedStart }
