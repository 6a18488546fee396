// Package holders has its context in structs. Their methods are correct.
package holders

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/analysis/testdata/holding"
)

func send(context.Context, string) (string, error) { return "", nil }

type flow struct {
	ctx  *perdure.OrchestrationContext
	seen map[string]bool
}

func (f *flow) charge(name string) error {
	_, err := perdure.CallActivity(f.ctx, send, name).Await(f.ctx)
	return err
}

func (f *flow) note(name string) { f.seen[name] = true }

func (f *flow) noteAgain(name string, times int) {
	if f.note(name); times > 0 {
		f.noteAgain(name, times-1)
	}
}

// undo waits with a context that is never cancelled.
func (f *flow) undo() {
	safe := perdure.WithoutCancel(f.ctx)
	_ = perdure.Sleep(safe, time.Second)
	_ = perdure.Sleep(perdure.WithoutCancel(f.ctx), time.Second)
}

// cleaner contains a context that is never cancelled.
type cleaner struct{ ctx *perdure.OrchestrationContext }

func (c *cleaner) clean() { _ = perdure.Sleep(c.ctx, time.Second) }

func order(ctx *perdure.OrchestrationContext, in map[string]int) (string, error) {
	f := &flow{ctx: ctx, seen: map[string]bool{}}
	defer f.undo()
	defer f.note("done")
	c := &cleaner{ctx: perdure.WithoutCancel(ctx)}
	defer c.clean()
	defer func() {
		c.clean()
		_ = perdure.Sleep(c.ctx, time.Second)
	}()
	defer func(ctx *perdure.OrchestrationContext) { _ = perdure.Sleep(ctx, time.Second) }(perdure.WithoutCancel(ctx))
	saga, total := holding.New(ctx), 0
	for name := range in {
		f.note(name)
		f.noteAgain(name, 3)
		total += saga.Count()
	}
	for {
		total += saga.Count()
		if total > 9 {
			return "", f.charge("all")
		}
	}
}
