package perdure_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// Ten thousand coroutines of an instance are cancelled at once and compensate. They have scopes of their own, or share
// the scope of the instance, where each coroutine waits for the ends of all calls. A turn of more than ten seconds
// would block the instance.
func TestCompensate_tenThousandCancelledCoroutines_undoesAll(t *testing.T) {
	t.Parallel()
	const n, batch = 10_000, 1000
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprint("own scopes=", own), func(t *testing.T) {
			t.Parallel()
			undone := 0
			w := awaited(t, func(ctx *perdure.OrchestrationContext) (string, error) {
				doing := make([]*perdure.Future[string], n)
				for i := range doing {
					doing[i] = perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (_ string, err error) {
						if own {
							ctx, _ = perdure.WithCancel(ctx)
						}
						defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error {
							undone++
							return nil
						})
						return charge(ctx).Await(ctx)
					})
				}
				for _, f := range doing {
					_, _ = f.Await(perdure.WithoutCancel(ctx))
				}
				return "", ctx.Err()
			})
			var ends []history.Event
			for i := range w.history {
				if e := &w.history[i]; e.Kind == history.ActivityScheduled {
					ends = append(ends, done(e.ID))
				}
			}
			w.turn(history.Event{Kind: history.CancelRequested, RequestedBy: history.RequestedByClient})
			for len(ends) > 0 {
				if want := map[bool]int{true: n - len(ends)}[own]; undone != want {
					t.Fatalf("got %d compensations while %d calls run, want %d", undone, len(ends), want)
				}
				w.turn(ends[:batch]...)
				ends = ends[batch:]
			}
			if undone != n || !w.instance.Ended() {
				t.Errorf("got %d compensations, ended: %v", undone, w.instance.Ended())
			}
			undone = 0
			if w.replayed(); undone != n {
				t.Errorf("replay: got %d compensations", undone)
			}
		})
	}
}
