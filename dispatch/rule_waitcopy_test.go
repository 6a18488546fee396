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

// Interleaving: the first attempt fails, and a copy of its work item comes, when its lease is over, before the orchestrator has heard of the
// failure. Then that makes the second attempt wait for an hour, and the activity is cancelled: did the copy begin, the undo would overtake it.
// What the first delivery ended with was kept before it was told, so the copy tells that again.
func TestR23ACopyOfAnAttemptThatFailedTellsThatAgain(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "undo", func(context.Context, string) (string, error) { s.note(&s.undone); return "", nil })
	perdure.AddActivity(r, "do", func(ctx context.Context, _ deed) (string, error) {
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
		in := s.startAs("a", "saga", deed{Every: time.Hour})
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
			t.Errorf("begun %d times", n)
		}
		s.wantUndone(in, perdure.OutcomeReturned)
	})
}
