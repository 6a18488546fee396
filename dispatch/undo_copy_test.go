package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleaving:
//  1. The first attempt fails. A copy of its work item is delivered after its lease has expired, before the
//     orchestrator receives the failure.
//  2. The orchestrator schedules the second attempt in an hour, and the activity is cancelled. If the copy started, the
//     undo could run before it.
//  3. The outcome of the first delivery was stored before it was sent, so the copy resends it.
func TestR23_copyOfFailedAttempt_sendsTheStoredOutcome(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "undo", func(context.Context, string) (string, error) { s.note(&s.undone); return "", nil })
	perdure.AddActivity(r, "do", func(ctx context.Context, _ spec) (string, error) {
		s.note(&s.begun)
		if len(s.seen(&s.begun)) == 1 {
			return "", errors.New("the first time")
		}
		defer s.note(&s.ended)
		<-ctx.Done()
		time.Sleep(4 * time.Second)
		return "done in the end", nil
	})
	perdure.AddOrchestration(r, "saga", s.saga)
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		s.hub = h
		in := s.startAs("a", "saga", spec{Every: time.Hour})
		s.turn(0)
		items := s.workItems()
		work := must(dispatch.NewWorker(r, s.Provider, &dispatch.WorkerOptions{Logger: slog.New(slog.DiscardHandler)}))
		work.HandleRecords(ctx, []provider.Record{items[0].Record})
		again := items[0].WorkItem
		again.PossibleDuplicate = true
		if err := s.Provider.PutWorkItems(ctx, again); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		go work.HandleRecords(ctx, s.receive("sim://default"))
		time.Sleep(time.Second)
		s.turn(0)
		s.meanwhile(2*time.Hour, func() { s.cancelIt(in) })
		if n := len(s.seen(&s.begun)); n != 1 {
			t.Errorf("got %d runs, want 1", n)
		}
		s.wantUndone(in, perdure.OutcomeReturned)
	})
}
