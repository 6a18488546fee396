// Package replays makes other decisions at a replay. The linter does not find these mistakes, as its rules document.
package replays

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
)

var (
	fast    = flag.Bool("fast", false, "")
	counter = new(int)
)

type shop struct {
	now   func() time.Time
	write func(string)
}

func open() shop { return shop{now: time.Now, write: func(s string) { fmt.Println(s) }} }

// globals: a variable of the function around the orchestration, which all instances share.
func register(r *perdure.Registry) {
	runs := 0
	perdure.AddOrchestration(r, "counted", func(ctx *perdure.OrchestrationContext, _ string) (int, error) {
		runs++
		return runs, perdure.Sleep(ctx, time.Second)
	})
}

// clock, io, random, environment, globals, log: a field, an address, a flag, a pointer, an own variable.
func reads(ctx *perdure.OrchestrationContext, s *shop) (string, error) {
	s.write(s.now().String())
	mine := counter
	*mine++
	logger(slog.New(slog.DiscardHandler))
	return fmt.Sprintf("%p %v", ctx, *fast), nil
}

func logger(l *slog.Logger) { l.Info("again") }

// replaying, change, continueasnew, query, scope: through a variable, or in another function.
func decides(ctx *perdure.OrchestrationContext, change string) (string, error) {
	again := ctx.IsReplaying()
	if !again {
		_ = perdure.Sleep(ctx, time.Second)
	}
	_ = perdure.Version(ctx, change, 1, 2)
	_, err := perdure.ContinueAsNew[string](ctx, change)
	outer := ctx
	done := perdure.Go(ctx, func(*perdure.OrchestrationContext) { _ = perdure.Sleep(outer, time.Second) })
	answer := func(struct{}) (int, error) { return 0, perdure.Sleep(ctx, time.Second) }
	return "", errors.Join(perdure.SetQueryHandler(ctx, "wait", answer), perdure.WhenAll(ctx, done), errors.Unwrap(err))
}
