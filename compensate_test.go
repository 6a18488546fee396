package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// booked starts the orchestration "trip", which books a flight and a hotel with compensations, and then returns the
// result of end.
func booked(t *testing.T, end func(ctx *perdure.OrchestrationContext, n int) (int, error)) *world {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "undo", func(_ context.Context, what string) (string, error) { return what, nil })
	perdure.AddOrchestration(r, "trip", func(ctx *perdure.OrchestrationContext, n int) (_ int, err error) {
		for _, what := range []string{"flight", "hotel"} {
			defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
				_, err := perdure.CallActivityByName[string](ctx, "undo", what).Await(ctx)
				return err
			})
		}
		return end(ctx, n)
	})
	return newWorld(t, r).start("trip", 1)
}

// undone returns the inputs of the activity "undo" in order.
func (w *world) undone() (all []string) {
	for i := range w.history {
		if e := &w.history[i]; e.Kind == history.ActivityScheduled && e.Name == "undo" {
			all = append(all, strings.Trim(string(e.Input), `"`))
		}
	}
	return all
}

var errLate = errors.New("too late")

func TestCompensate_orchestrationFails_undoesLastFirst(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*perdure.OrchestrationContext, int) (int, error){
		"an error": func(*perdure.OrchestrationContext, int) (int, error) { return 0, errLate },
		"a panic":  func(*perdure.OrchestrationContext, int) (int, error) { panic("too late") },
		"continue as new, and a failure": func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return 0, errors.Join(errLate, continueWith(ctx, 2))
		},
		"continue as new twice": func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return 0, errors.Join(continueWith(ctx, 2), continueWith(ctx, 3))
		},
	} {
		w := booked(t, end).run().replayed()
		if got := w.undone(); !slices.Equal(got, []string{"hotel", "flight"}) || w.failure().Message == "" {
			t.Errorf("%s: got compensations %q", name, got)
		}
	}
}

func TestCompensate_successOrContinueAsNew_undoesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*perdure.OrchestrationContext, int) (int, error){
		"success": func(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil },
		"continuing": func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			if n == 1 {
				return 0, continueWith(ctx, 2)
			}
			return n, nil
		},
		"continue as new, wrapped": func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			if n == 1 {
				return 0, fmt.Errorf("next: %w", errors.Join(nil, continueWith(ctx, 2)))
			}
			return n, nil
		},
	} {
		w := booked(t, end).run().replayed()
		if got := w.undone(); len(got) > 0 || w.output() == "" {
			t.Errorf("%s: got compensations %q, want none", name, got)
		}
	}
}

// A cancelled instance runs its compensations to their ends, also if it returns the error of ContinueAsNew.
func TestCompensate_orchestrationCancelled_undoesLastFirst(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*perdure.OrchestrationContext) (int, error){
		"its error":  func(ctx *perdure.OrchestrationContext) (int, error) { return 0, ctx.Err() },
		"continuing": func(ctx *perdure.OrchestrationContext) (int, error) { return 0, continueWith(ctx, 2) },
	} {
		w := booked(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			_ = perdure.Sleep(ctx, time.Hour)
			return end(ctx)
		})
		w.turn(history.Event{
			Kind: history.CancelRequested, Reason: "requested", Message: "changed my mind", RequestedBy: "client",
		}).run().replayed()
		if got := w.undone(); !slices.Equal(got, []string{"hotel", "flight"}) ||
			w.history[len(w.history)-1].Kind != history.OrchestrationCancelled {
			t.Errorf("%s: got compensations %q, history %s", name, got, kinds(w.history))
		}
	}
}

// The failure contains the error of a compensation and the original error. The other compensations still run.
func TestCompensate_undoFails_addsErrorAndContinues(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func() (int, error){
		"an error": func() (int, error) { return 0, errLate },
		"a panic":  func() (int, error) { panic(errLate) },
	} {
		undone := 0
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (_ int, err error) {
			defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error { undone++; return nil })
			defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error {
				return errors.New("the hotel does not respond")
			})
			return end()
		}).run()
		if f := w.failure(); undone != 1 || !strings.Contains(f.Message, "too late") ||
			!strings.Contains(f.Message, "the hotel does not respond") {
			t.Errorf("%s: got %d compensations, failure %+v", name, undone, f)
		}
	}
}

// The failure has the stack of the original panic.
func TestCompensate_panic_keepsStack(t *testing.T) {
	t.Parallel()
	f := booked(t, func(*perdure.OrchestrationContext, int) (int, error) {
		return outOfRange(nil), nil
	}).run().failure()
	if f.Type != history.TypePanic || !strings.Contains(f.Message, "index out of range") ||
		!strings.Contains(f.Message, "outOfRange") {
		t.Errorf("got %+v", f)
	}
}

func outOfRange(s []int) int { return s[3] }

// An instance that is dropped from memory runs no compensation, even if the error variable is set.
func TestCompensate_instanceDroppedFromMemory_undoesNothing(t *testing.T) {
	t.Parallel()
	undone := 0
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (_ int, err error) {
		err = errLate
		defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error { undone++; return nil })
		return 0, perdure.Sleep(ctx, time.Hour)
	})
	if !w.instance.Close() || undone > 0 {
		t.Errorf("got %d compensations, want none", undone)
	}
}

func TestIsContinueAsNew_joinedWithOtherError_isFalse(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		next := continueWith(ctx, 2)
		printed := ""
		for _, err := range []error{
			next, fmt.Errorf("w: %w", next), errors.Join(next, next), errors.Join(next, errLate), errLate, nil,
		} {
			printed += fmt.Sprint(perdure.IsContinueAsNew(err))[:1]
		}
		return printed, nil
	})
	if got := w.run().output(); got != `"tttfff"` {
		t.Error(got)
	}
}

func TestCompensate_nilArgument_panics(t *testing.T) {
	t.Parallel()
	for want, call := range map[string]func(*perdure.OrchestrationContext){
		"perdure: Compensate: err is nil; pass the address": func(ctx *perdure.OrchestrationContext) {
			perdure.Compensate(ctx, nil, func(*perdure.OrchestrationContext) error { return nil })
		},
		"perdure: Compensate: undo is nil": func(ctx *perdure.OrchestrationContext) {
			var err error
			perdure.Compensate(ctx, &err, nil)
		},
	} {
		got := nothingScheduled(t, func(ctx *perdure.OrchestrationContext) error { call(ctx); return nil })
		if !strings.HasPrefix(got, want) {
			t.Errorf("got %s", got)
		}
	}
}
