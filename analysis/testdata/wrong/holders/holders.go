// Package holders has its context in a struct. The methods of the struct are wrong.
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

func (f *flow) chargeLater(name string) error { return f.charge(name) }

func (f *flow) undo() { _ = perdure.Sleep(f.ctx, time.Second) }

// longer embeds a struct that contains the context.
type longer struct{ *flow }

func (l *longer) now() time.Time { return time.Now() } // want `longer\.now calls time\.Now.*\[clock\]`

// there and back call each other, and only there waits.
func (f *flow) there(n int) {
	f.back(n)
	_ = perdure.Sleep(f.ctx, time.Second)
}

func (f *flow) back(n int) {
	if n > 0 {
		f.there(n - 1)
	}
}

func (f *flow) tell() { perdure.CallEntity[struct{}](f.ctx, "log", "all", "add", "undone") }

func order(ctx *perdure.OrchestrationContext, in map[string]int) (string, error) {
	f := &flow{ctx: ctx}
	defer f.undo() // want `order defers flow\.undo, which waits with a context that may be cancelled.*\[compensation\]`
	defer f.tell() // want `order defers flow\.tell, which sends an update with a context that may be cancelled.*\[compensation\]`
	defer func() {
		if f.seen["charged"] {
			f.undo() // want `order defers flow\.undo, which waits.*\[compensation\]`
		}
	}()
	defer func() {
		_ = perdure.Sleep(f.ctx, time.Second) // want `order waits in a deferred function.*\[compensation\]`
	}()
	defer func(ctx *perdure.OrchestrationContext) {
		_ = perdure.Sleep(ctx, time.Second) // want `order waits in a deferred function.*\[compensation\]`
	}(ctx)
	saga := holding.New(ctx)
	for name := range in {
		if err := f.charge(name); err != nil { // want `order ranges over a map and calls flow\.charge.*\[maporder\]`
			return "", nil
		}
		_ = f.chargeLater(name)       // want `calls flow\.chargeLater.*\[maporder\]`
		f.there(1)                    // want `calls flow\.there.*\[maporder\]`
		f.back(1)                     // want `calls flow\.back.*\[maporder\]`
		_ = saga.Pause()              // want `calls holding\.Saga\.Pause.*\[maporder\]`
		_ = (&longer{f}).charge(name) // want `calls flow\.charge.*\[maporder\]`
	}
	for { // want `order loops forever, .*\[endless\]`
		_ = saga.Pause()
	}
}
