// Package compensation undoes completed work through contexts that are not cancelled, from several sources.
package compensation

import (
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/analysis/testdata/holding"
)

// cleaner gets a context that is never cancelled from the callers of its constructor.
type cleaner struct{ ctx *perdure.OrchestrationContext }

func newCleaner(ctx *perdure.OrchestrationContext) *cleaner { return &cleaner{ctx: ctx} }

func (c *cleaner) clean() { _ = perdure.Sleep(c.ctx, time.Second) }

// keeper is created by two functions in sequence.
type keeper struct {
	name string
	ctx  *perdure.OrchestrationContext
}

func newKeeper(ctx *perdure.OrchestrationContext) *keeper { return namedKeeper(ctx, "all") }

func namedKeeper(ctx *perdure.OrchestrationContext, name string) *keeper { return &keeper{name, ctx} }

func (k *keeper) clean() { _ = perdure.Sleep(k.ctx, time.Second) }

// borrower has the context of another struct.
type borrower struct{ ctx *perdure.OrchestrationContext }

func (b *borrower) clean() {
	safe := b.ctx
	_ = perdure.Sleep(safe, time.Second)
}

// made has a context that a function returns.
type made struct{ ctx *perdure.OrchestrationContext }

func (m *made) clean() { _ = perdure.Sleep(m.ctx, time.Second) }

func safely(ctx *perdure.OrchestrationContext) *perdure.OrchestrationContext {
	if ctx.IsReplaying() {
		ctx.Logger().Info("undone")
	}
	return perdure.WithoutCancel(ctx)
}

// listed is an element of a list.
type listed struct{ ctx *perdure.OrchestrationContext }

func (l *listed) clean() { _ = perdure.Sleep(l.ctx, time.Second) }

func named(ctx *perdure.OrchestrationContext) (safe *perdure.OrchestrationContext, err error) {
	safe = perdure.WithoutCancel(ctx)
	return
}

func structs(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	c := newCleaner(perdure.WithoutCancel(ctx))
	defer c.clean()
	defer newKeeper(perdure.WithoutCancel(ctx)).clean()
	b := &borrower{ctx: c.ctx}
	defer b.clean()
	m := &made{ctx: safely(ctx)}
	defer m.clean()
	defer func() { _ = perdure.Sleep(m.ctx, time.Second) }()
	safe, err := named(ctx)
	defer pause(safe)
	for _, l := range []*listed{{ctx: safe}} {
		defer l.clean()
	}
	return "", err
}

// bounded limits the undo to a minute.
func bounded(ctx *perdure.OrchestrationContext, _ string) (_ string, err error) {
	defer func() {
		limited, stop := perdure.WithTimeout(perdure.WithoutCancel(ctx), time.Minute)
		defer stop()
		err = errors.Join(err, perdure.Sleep(limited, time.Second))
	}()
	safe := perdure.WithoutCancel(ctx)
	scope, cancel := perdure.WithCancel(safe)
	defer cancel()
	defer pause(scope)
	defer perdure.RaiseEvent(safely(ctx), "audit", "undone", "a")
	defer func() {
		same := safe
		_ = perdure.Sleep(same, time.Second)
		pause(same)
	}()
	defer func() {
		ctx := perdure.WithoutCancel(ctx)
		_ = perdure.Sleep(ctx, time.Second)
	}()
	return "", nil
}

func pause(ctx *perdure.OrchestrationContext) { _ = perdure.Sleep(ctx, time.Second) }

// ends gets a context that is never cancelled, and defers a wait.
func ends(ctx *perdure.OrchestrationContext) error {
	defer func() { _ = perdure.Sleep(ctx, time.Second) }()
	defer pause(ctx)
	return nil
}

func ending(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	return "", ends(perdure.WithoutCancel(ctx))
}

// The function of Compensate has a context that is not cancelled.
func undoing(ctx *perdure.OrchestrationContext, _ string) (_ string, err error) {
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		defer pause(ctx)
		defer func() { _ = perdure.Sleep(ctx, time.Second) }()
		return nil
	})
	defer perdure.Compensate(ctx, &err, undo)
	again := func(ctx *perdure.OrchestrationContext) error {
		defer pause(ctx)
		return nil
	}
	defer perdure.Compensate(ctx, &err, again)
	c := &compensator{}
	defer perdure.Compensate(ctx, &err, c.undo)
	return "", nil
}

func undo(ctx *perdure.OrchestrationContext) error {
	defer pause(ctx)
	return nil
}

type compensator struct{}

func (*compensator) undo(ctx *perdure.OrchestrationContext) error {
	defer pause(ctx)
	return nil
}

// The linter does not know contexts that another package creates.
func elsewhere(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	defer func() { _ = perdure.Sleep(holding.Safe(ctx), time.Second) }()
	return "", nil
}
