package perduretest

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// hubAdapter runs calls about builds, schedules, documents and prepared starts in the bubble.
type hubAdapter struct {
	provider.Provider

	env *Env
}

// within returns a context for a call in the bubble.
func (b *hubAdapter) within(ctx context.Context) context.Context {
	if b.env.watchdog.isInside() {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

func (b *hubAdapter) ReadDocument(
	ctx context.Context, instanceID string, ref history.Reference,
) (doc json.RawMessage, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { doc, err = b.Provider.ReadDocument(ctx, instanceID, ref) })
	return doc, err
}

func (b *hubAdapter) PutBuild(ctx context.Context, build provider.Build) (err error) {
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.PutBuild(ctx, build) })
	return err
}

func (b *hubAdapter) ReadBuild(ctx context.Context, id string) (build provider.Build, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { build, err = b.Provider.ReadBuild(ctx, id) })
	return build, err
}

func (b *hubAdapter) PutScheduleEntry(ctx context.Context, s provider.ScheduleEntry) (err error) {
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.PutScheduleEntry(ctx, s) })
	return err
}

func (b *hubAdapter) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) (err error) {
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.DeleteScheduleEntry(ctx, s) })
	return err
}

func (b *hubAdapter) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.ScheduleEntry, error] {
	ctx = b.within(ctx)
	return inside(b.env, func() iter.Seq2[provider.ScheduleEntry, error] {
		return b.Provider.ListSchedules(ctx, after)
	})
}

// PrepareStart implements provider.StartPreparer.
func (b *hubAdapter) PrepareStart(ctx context.Context, s provider.Start) (provider.PreparedStart, error) {
	preparer, ok := b.Provider.(provider.StartPreparer)
	if !ok {
		return nil, client.ErrPrepareStartUnsupported
	}
	ctx = b.within(ctx)
	var prepared provider.PreparedStart
	var err error
	b.env.do(func() { prepared, err = preparer.PrepareStart(ctx, s) })
	if err != nil {
		return nil, err
	}
	return &preparedStart{prepared, b}, nil
}

// preparedStart is a prepared start whose Wake runs in the bubble.
type preparedStart struct {
	provider.PreparedStart

	hub *hubAdapter
}

// Wake implements provider.PreparedStart.
func (s *preparedStart) Wake(ctx context.Context) (err error) {
	ctx = s.hub.within(ctx)
	s.hub.env.do(func() { err = s.PreparedStart.Wake(ctx) })
	return err
}

// Unwrap returns the start that dynamo.TransactItems accepts.
func (s *preparedStart) Unwrap() provider.PreparedStart { return s.PreparedStart }
