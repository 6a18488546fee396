package perdure_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// timers returns the names of the timers in a history.
func timers(events []history.Event) (names []string) {
	for i := range events {
		if e := &events[i]; e.Kind == history.TimerCreated {
			names = append(names, e.DisplayName())
		}
	}
	return names
}

// waits returns an orchestration with a timer of each kind. The timers have the given name, or none if it is empty.
func waits(name string) func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
	var opts []perdure.TimerOption
	if name != "" {
		opts = []perdure.TimerOption{perdure.WithTimerName(name)}
	}
	return func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		limited, stop := perdure.WithTimeout(ctx, time.Hour, opts...)
		defer stop()
		if _, err := perdure.CreateTimer(limited, time.Minute, opts...).Await(limited); err != nil {
			return 0, err
		}
		if err := perdure.Sleep(ctx, time.Minute, opts...); err != nil {
			return 0, err
		}
		n, err := perdure.WaitForCondition(ctx, 0, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			return perdure.CallActivity(ctx, inc, n).Await(ctx)
		}, func(n int) bool { return n == 2 }, perdure.PollPolicy{Name: name})
		return n, err
	}
}

func TestWithTimerName_eachKindOfTimer_recordsName(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, waits("payment window")).run().replayed()
	if diff := cmp.Diff(slices.Repeat([]string{"payment window"}, 4), timers(w.history)); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	if got := w.history[2].String(); got != `TimerCreated #3 "payment window"` {
		t.Error(got)
	}
}

// A name is only displayed. Code that changes, adds or removes the names of timers can continue an existing history,
// whose recorded names stay. Code without names is like a build that does not support names.
func TestWithTimerName_changedCode_isNotComparedOnReplay(t *testing.T) {
	t.Parallel()
	for _, was := range []string{"", "payment window"} {
		for _, is := range []string{"", "payment window", "limit"} {
			for turns := range 5 {
				w := orchestrate(t, waits(was))
				for range turns {
					w.step()
				}
				old := len(timers(w.history))
				w.code = orchestrate(t, waits(is)).code
				w.instance = w.open()
				if err := w.instance.Replay(w.history); err != nil {
					t.Fatalf("old name %q, new name %q, after %d turns: got error %v", was, is, turns, err)
				}
				w.run().replayed()
				want := append(slices.Repeat([]string{was}, old), slices.Repeat([]string{is}, 4-old)...)
				if got := timers(w.history); w.output() != "2" || !slices.Equal(got, want) {
					t.Errorf("old name %q, new name %q, after %d turns: got %q, want %q", was, is, turns, got, want)
				}
			}
		}
	}
}

// No release compares the field with the name of a timer during replay. In particular, the name is not in the field
// Name of the event.
func TestWithTimerName_namedTimer_changesOnlyMessageOfEvent(t *testing.T) {
	t.Parallel()
	with, without := orchestrate(t, waits("payment window")).run(), orchestrate(t, waits("")).run()
	for i := range with.history {
		e := with.history[i]
		e.Message = ""
		if diff := cmp.Diff(without.history[i], e); diff != "" {
			t.Errorf("histories differ (-without names +with names):\n%s", diff)
		}
	}
}

func TestWithTimerName_invalidOrTooLong_isCorrected(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "", "a\xffb": "a\ufffdb", "über": "über", strings.Repeat("ü", 128): strings.Repeat("ü", 128),
	} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return 0, perdure.Sleep(ctx, time.Second, perdure.WithTimerName(name))
		})
		if got := timers(w.run().replayed().history); got[0] != want {
			t.Errorf("%q: got name %q", name, got)
		}
	}
	long := strings.Repeat("ü", 129)
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return 0, perdure.Sleep(ctx, time.Second, perdure.WithTimerName(long))
	})
	got := timers(w.run().replayed().history)[0]
	if len(got) > history.MaxTimerNameBytes || !utf8.ValidString(got) ||
		!strings.HasPrefix(got, strings.Repeat("ü", 100)) || !strings.Contains(got, "cut") {
		t.Errorf("name of %d bytes: got %q", len(long), got)
	}
}
