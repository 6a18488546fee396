package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simhub"
)

// lines returns the lines of the log that report an event.
func (j *journal) lines(event string) (lines []string) {
	for line := range strings.Lines(j.String()) {
		if slices.Contains(strings.Fields(line), "event="+event) {
			lines = append(lines, line)
		}
	}
	return lines
}

// wantLine fails the test unless exactly one line reports an event and contains all words.
func (j *journal) wantLine(t *testing.T, event string, words ...string) {
	t.Helper()
	lines := j.lines(event)
	if len(lines) != 1 {
		t.Errorf("got %d lines with event %s, want 1:\n%s", len(lines), event, j)
		return
	}
	for _, w := range words {
		if !strings.Contains(lines[0], " "+w) {
			t.Errorf("the line lacks %s: %s", w, lines[0])
		}
	}
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// Log events of a cancellation.
const (
	eventActivityCancelled    = logevent.ActivityCancelled
	eventActivityEnded        = logevent.ActivityCancelledEnded
	eventCleanupPanic         = logevent.ActivityCleanupPanicked
	eventActivitySkipped      = logevent.ActivitySkipped
	eventChildCancelRequested = logevent.SubOrchestrationCancelRequested
	eventChildCancelled       = logevent.SubOrchestrationCancelled
	eventChildCancelFailed    = logevent.SubOrchestrationCancelFailed
	eventChildNeverStarted    = logevent.SubOrchestrationNeverStarted
	eventChildCancelRejected  = logevent.SubOrchestrationCancelRejected
)

// The log has one line about the cancellation of an activity and one about its end, with durations. Polls are not
// logged.
func TestCancelLog_activityObservesIt_hasTwoLines(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever, job{Takes: time.Hour, Longer: 9 * time.Second})
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(time.Minute + 400*time.Millisecond)
		f.cancel(in, 3)
		time.Sleep(10 * time.Second)
		common := []string{
			"level=INFO", "activity=job", "instance=a", "execution=" + in.ExecutionID, "attempt=1",
			"reason=select_loser",
		}
		f.log.wantLine(t, eventActivityCancelled,
			append(common, "activityId=3", `message="too slow"`, "decidedFor=100ms", "ranFor=1m0.5s")...)
		f.log.wantLine(t, eventActivityEnded, append(common, "activityId=3", "end=stopped", "endedAfter=0s")...)
		f.cancel(in, 4)
		<-over
		if n := strings.Count(f.log.String(), "\n"); n != 4 {
			t.Errorf("got %d lines about two cancelled activities, want two each:\n%s", n, &f.log)
		}
		if ended := f.log.lines(eventActivityEnded); len(ended) != 2 || !strings.Contains(ended[1], "activityId=4") ||
			!strings.Contains(ended[1], "end=finished endedAfter=9s") {
			t.Errorf("got end lines %s, want the second to report #4 as finished after 9s", ended)
		}
	})
}

// The activity was cancelled before it started.
func TestCancelLog_activityNeverStarted_hasOneLine(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever)
		time.Sleep(time.Second)
		f.cancel(in, 3)
		time.Sleep(time.Minute)
		<-f.handled(ctx, f.worker(nil))
		f.log.wantLine(t, eventActivitySkipped, "level=INFO", "activity=job", "instance=a", "execution="+in.ExecutionID,
			"activityId=3", "reason=select_loser", "decidedFor=1m0s")
	})
}

// A panic in the grace period is a warning, because only the log may report it.
func TestCancelLog_panicInTheGracePeriod_isAWarning(t *testing.T) {
	t.Parallel()
	for _, omit := range []bool{false, true} {
		onJobHub(t, func(ctx context.Context, f *jobHub) {
			in := f.jobsOf("a", job{Takes: time.Hour, Longer: 2 * time.Second, Panics: true})
			over := f.handled(ctx, f.worker(func(o *dispatch.WorkerOptions) { o.OmitErrorTexts = omit }))
			time.Sleep(time.Minute)
			f.cancel(in, 3)
			<-over
			want := []string{
				"level=WARN", "activity=job", "instance=a", "execution=" + in.ExecutionID, "activityId=3",
				"reason=select_loser", "end=stopped", "endedAfter=2s",
			}
			f.log.wantLine(t, eventCleanupPanic, want...)
			if secret := strings.Contains(f.log.String(), "a secret"); secret == omit {
				t.Errorf("with OmitErrorTexts=%v, the log contains the text of the panic: %v", omit, secret)
			}
		})
	}
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: time.Hour, Panics: true})
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		<-f.handled(ctx, f.worker(nil))
		f.log.wantLine(t, eventCleanupPanic, "level=WARN", "activityId=3", "reason=deadline", "error=")
		if n := len(f.log.lines(eventActivityEnded)); n > 0 {
			t.Error("the log reports a cancelled activity, want none")
		}
	})
}

// A turn that cancels a thousand children logs one line that names the first of them. A turn that receives their
// responses logs one line.
func TestCancelLog_thousandChildren_haveOneLinePerTurn(t *testing.T) {
	t.Parallel()
	const many = 1000
	log := &journal{}
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	perdure.AddOrchestration(r, "parent", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		scope, leave := perdure.WithCancel(ctx)
		for i := range n {
			perdure.CallSubOrchestrationByName[int](scope, "waits", 0, perdure.WithInstanceID(fmt.Sprint("c", i)))
		}
		if err := perdure.Sleep(ctx, time.Minute); err != nil {
			return 0, err
		}
		leave()
		return n, perdure.Sleep(ctx, time.Hour)
	})
	inBubble(t, simhub.Options{Registry: r, Logger: log.logger(), BatchSize: 10}, func(_ context.Context, h *hub) {
		in := h.startAs("p", "parent", many)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Fatalf("the instance ended with %s", end.Kind)
		}
		log.wantLine(t, eventChildCancelRequested, "level=INFO", "instance=p", "execution="+in.ExecutionID,
			fmt.Sprintf("children=%d", many), `first="#3 c0, #4 c1, `, "reason=dropped_future")
		if line := log.lines(eventChildCancelRequested)[0]; strings.Count(line, "#") != 10 {
			t.Errorf("got line %s, want ten children", line)
		}
		turns := 0
		for _, e := range h.events(in) {
			if e.Kind == history.TurnStarted {
				turns++
			}
		}
		if n := len(log.lines(eventChildCancelled)); n == 0 || n > turns {
			t.Errorf("got %d lines about responses in %d turns, want 1 to %d", n, turns, turns)
		}
		if n := strings.Count(log.String(), "\n"); n > turns+1 {
			t.Errorf("got %d lines in %d turns, want at most one more than turns", n, turns)
		}
	})
}

// The parent's cancel finds an instance of another start, or no instance.
func TestCancelLog_childRejectsTheCancel_isLogged(t *testing.T) {
	t.Parallel()
	log := &journal{}
	inBubble(t, simhub.Options{Logger: log.logger()}, func(_ context.Context, h *hub) {
		otherInstance := h.startAs("c", "waits-a-day", 0)
		h.turn(0)
		parent := h.startAs("p", "gives-up-child", 0)
		h.turn(0)
		h.drainInbox()
		h.raise(parent, "e", 1)
		for range 3 {
			h.turn(0)
		}
		log.wantLine(t, eventChildCancelRejected, "level=INFO", "instance=c", "execution="+otherInstance.ExecutionID,
			"parent=p",
			"parentExecution="+parent.ExecutionID, "parentEventId=3", "reason=requested",
			`error="instance \"c\" belongs to another start"`)
		log.wantLine(t, eventChildCancelFailed, "level=WARN", "instance=p", "execution="+parent.ExecutionID,
			"children=1",
			`first="#3 c"`, `error="instance \"c\" belongs to another start"`)
		h.send(cancelMessage("missing", "s1"))
		h.turn(0)
		log.wantLine(t, eventChildNeverStarted, "level=INFO", "instance=missing", "parent=parent", "parentExecution=px",
			"parentEventId=3", "reason=parent_cancelled")
	})
}
