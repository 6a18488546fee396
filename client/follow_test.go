package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// pollCounter counts the polls of Follow on a hub without ReadTail.
type pollCounter struct {
	*fakeprovider.Provider

	polls atomic.Int64
}

func (p *pollCounter) ReadSettled(
	ctx context.Context, executionID string, from int64,
) (provider.Settlements, error) {
	p.polls.Add(1)
	return p.Provider.ReadSettled(ctx, executionID, from)
}

// inBubble returns a client in virtual time with the instance "one".
func inBubble(t *testing.T) (*client.Client, *pollCounter) {
	t.Helper()
	p := &pollCounter{Provider: fakeprovider.New(time.Now, "hello")}
	c := connect(p)
	mustStart(t, c, "one")
	return c, p
}

func sideEffect() history.Event {
	return history.Event{Kind: history.SideEffectRecorded, Time: began, Value: history.NewInlinePayload([]byte("1"))}
}

func continuedAsNew() history.Event {
	return history.Event{Kind: history.OrchestrationContinuedAsNew, Time: began}
}

// place is an event with its execution.
type place struct {
	execution string
	event     history.Event
}

func (p place) String() string { return fmt.Sprintf("%s.%d %s", p.execution, p.event.ID, p.event.Kind) }

// followed returns up to most events that follow a place, and the last error.
func followed(ctx context.Context, c *client.Client, after place, most int) (all []place, err error) {
	execution := after.execution
	var opts []client.HistoryOption
	if after.event.ID > 0 {
		opts = []client.HistoryOption{client.WithExecutionID(execution), client.AfterEvent(after.event.ID)}
		if after.event.Kind == history.OrchestrationContinuedAsNew {
			execution = after.event.ExecutionID
		}
	}
	for e, err := range c.Follow(ctx, "one", opts...) {
		if err != nil {
			return all, err
		}
		all = append(all, place{execution, e})
		if e.Kind == history.OrchestrationContinuedAsNew {
			execution = e.ExecutionID
		}
		if len(all) == most {
			return all, nil
		}
	}
	return all, nil
}

// generations is a history of three executions that has ended.
func generations(t *testing.T) *client.Client {
	t.Helper()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one", sideEffect(), sideEffect(), continuedAsNew(), sideEffect(), continuedAsNew(), continuedAsNew(),
		sideEffect(), completed("1"))
	return c
}

func TestFollow_resumedAfterAnyEvent_yieldsEachEventOnce(t *testing.T) {
	t.Parallel()
	c := generations(t)
	first := place{execution: "x1", event: history.Event{ID: 1, Kind: history.OrchestrationStarted}}
	rest, err := followed(t.Context(), c, first, -1)
	if err != nil || len(rest) != 3+3+2+3 {
		t.Fatalf("%v, %v", rest, err)
	}
	for i := range rest {
		got, err := followed(t.Context(), c, rest[i], -1)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(rest[i+1:]) {
			t.Errorf("after %s: %v, %v\nwant %v", rest[i], got, err, rest[i+1:])
		}
	}
	last := first
	for i := range rest {
		got, err := followed(t.Context(), c, last, 1)
		if err != nil || len(got) != 1 || got[0].String() != rest[i].String() {
			t.Fatalf("stopped after %s: %v, %v, want %s", last, got, err, rest[i])
		}
		last = got[0]
	}
}

// Two hundred commits at different intervals are seen within a second each. The number of polls is bounded.
func TestFollow_newEvents_arriveWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inBubble(t)
		const commits = 200
		var at time.Duration
		from := time.Now()
		committed := make([]time.Duration, commits)
		for i := range commits {
			at += time.Duration(1+i*i*7919%4000) * time.Millisecond
			committed[i] = at
			time.AfterFunc(at, func() { p.Append("one", sideEffect()) })
		}
		time.AfterFunc(at+time.Second, func() { p.Append("one", completed("1")) })

		var late []time.Duration
		for e, err := range c.Follow(t.Context(), "one") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == history.SideEffectRecorded {
				late = append(late, time.Since(from)-committed[len(late)])
			}
		}
		slices.Sort(late)
		if len(late) != commits {
			t.Fatalf("%d events", len(late))
		}
		p99, polls := late[commits*99/100], float64(p.polls.Load())/at.Seconds()
		if p99 > time.Second || late[0] < 0 || polls > 7 {
			t.Errorf("p99 %s from commit to reader with %.1f polls a second", p99, polls)
		}
		t.Logf("p50 %s, p99 %s, %.1f polls a second", late[commits/2], p99, polls)
	})
}

// A follower of an idle instance polls about 4,800 times an hour.
func TestFollow_idleInstance_pollsOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inBubble(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := followed(ctx, c, place{}, -1); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if polls := p.polls.Load(); polls < 3600 || polls > 5200 && !overHTTP || polls > 7500 {
			t.Errorf("%d polls an hour", polls)
		}
		if overHTTP {
			return // the API chooses the interval
		}
		before := p.polls.Load()
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, err := range c.Follow(ctx, "one", client.WithPollInterval(time.Minute)) {
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if polls := p.polls.Load() - before; polls < 60 || polls > 150 {
			t.Errorf("%d polls an hour at an interval of a minute", polls)
		}
	})
}

func TestFollow_burstOfCommits_isYieldedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inBubble(t)
		const burst = 1000
		time.AfterFunc(time.Minute, func() {
			for range burst {
				p.Append("one", sideEffect())
			}
		})
		time.AfterFunc(2*time.Minute, func() { p.Append("one", completed("1")) })
		all, err := followed(t.Context(), c, place{}, -1)
		if err != nil || len(all) != burst+2 {
			t.Fatalf("%d events, %v", len(all), err)
		}
		for i := range all {
			if all[i].event.ID != int64(i+1) {
				t.Fatalf("event %d is %d", i, all[i].event.ID)
			}
		}
	})
}

// A slow reader also gets the events that were committed while it was busy.
func TestFollow_slowReader_losesNoEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inBubble(t)
		for i := range 50 {
			time.AfterFunc(time.Duration(i)*time.Second, func() {
				if p.Append("one", sideEffect()); i%7 == 6 {
					p.Append("one", continuedAsNew())
				}
				if i == 49 {
					p.Append("one", completed("1"))
				}
			})
		}
		events := 0
		for e, err := range c.Follow(t.Context(), "one") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == history.SideEffectRecorded {
				events++
			}
			time.Sleep(3 * time.Second)
		}
		if events != 50 {
			t.Errorf("%d events", events)
		}
	})
}

func TestFollow_pausedOrBlockedInstance_continues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inBubble(t)
		stopped := []history.Event{
			{Kind: history.ExecutionSuspended, Time: began, RequestedBy: "client"},
			{Kind: history.ExecutionResumed, Time: began, RequestedBy: "client"},
			{Kind: history.InputsParked, Time: began, Error: &history.Failure{Type: "T", Message: "m"}},
			completed("1"),
		}
		for i, e := range stopped {
			time.AfterFunc(time.Duration(i+1)*time.Hour, func() { p.Append("one", e) })
		}
		all, err := followed(t.Context(), c, place{}, -1)
		if want := "[.1 OrchestrationStarted .2 ExecutionSuspended .3 ExecutionResumed .4 InputsParked " +
			".5 OrchestrationCompleted]"; err != nil || fmt.Sprint(all) != want {
			t.Errorf("%v, %v", all, err)
		}
	})
}

func TestFollow_purgedInstance_returnsErrNotFound(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"purged": false, "purged and started again": true} {
		synctest.Test(t, func(t *testing.T) {
			c, p := inBubble(t)
			p.Append("one", sideEffect())
			time.AfterFunc(time.Minute, func() {
				if err := c.Purge(context.WithoutCancel(t.Context()), "one", client.Force()); err != nil {
					t.Error(err)
				}
				if again {
					mustStart(t, c, "one")
				}
			})
			from := time.Now()
			all, err := followed(t.Context(), c, place{}, -1)
			ended := len(all) == 3 && all[2].event.Kind.Terminal() // read before the history was deleted
			if !ended && (!errors.Is(err, client.ErrNotFound) || !strings.Contains(err.Error(), "was deleted")) {
				t.Errorf("%s: %v, %v", name, all, err)
			}
			if took := time.Since(from); took > time.Minute+time.Second {
				t.Errorf("%s: noticed after %s", name, took)
			}
		})
	}
}

// staleHub does not see the deletion of a history, like a provider after the purge of a damaged history.
type staleHub struct{ *fakeprovider.Provider }

func (staleHub) ReadSettled(_ context.Context, _ string, from int64) (provider.Settlements, error) {
	return provider.Settlements{Next: max(from, 1)}, nil
}

// Without a trace of the purge in the history, the instance itself shows it within two minutes.
func TestFollow_purgeWithoutTrace_returnsErrNotFound(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"purged": false, "purged and started again": true} {
		synctest.Test(t, func(t *testing.T) {
			p := staleHub{fakeprovider.New(time.Now, "hello")}
			c := connect(p)
			mustStart(t, c, "one")
			time.AfterFunc(10*time.Minute, func() {
				if err := c.Purge(context.WithoutCancel(t.Context()), "one", client.Force()); err != nil {
					t.Error(err)
				}
				if again {
					mustStart(t, c, "one")
				}
			})
			from := time.Now()
			all, err := followed(t.Context(), c, place{}, -1)
			if len(all) != 1 || !errors.Is(err, client.ErrNotFound) {
				t.Errorf("%s: %v, %v", name, all, err)
			}
			if took := time.Since(from); took > 12*time.Minute {
				t.Errorf("%s: noticed after %s", name, took)
			}
		})
	}
}

// An hour of throttling delays events, and costs few polls.
func TestFollow_throttledHub_isRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inBubble(t)
		throttled := &provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: errors.New("throttled")}
		time.AfterFunc(time.Minute, func() { p.FailWith(throttled) })
		var before atomic.Int64
		time.AfterFunc(time.Minute+time.Millisecond, func() { before.Store(p.polls.Load()) })
		time.AfterFunc(time.Hour, func() {
			if during := p.polls.Load() - before.Load(); !overHTTP && during < 50 || during > 300 {
				t.Errorf("%d polls during an hour of throttling", during)
			}
			p.FailWith(nil)
			p.Append("one", sideEffect(), completed("1"))
		})
		from := time.Now()
		all, err := followed(t.Context(), c, place{}, -1)
		if err != nil || len(all) != 3 {
			t.Errorf("%v, %v", all, err)
		}
		if took := time.Since(from); took > time.Hour+time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

func TestFollow_shortestPollInterval_yieldsNewEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inBubble(t)
		time.AfterFunc(time.Microsecond, func() { p.Append("one", completed("1")) })
		all, err := client.Collect(c.Follow(t.Context(), "one", client.WithPollInterval(1)))
		if err != nil || len(all) != 2 {
			t.Errorf("%v, %v", all, err)
		}
	})
}

func TestFollow_permanentError_isReturned(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Damage("x1", fmt.Errorf("h#0: %w", provider.ErrCorrupt))
	if all, err := followed(t.Context(), c, place{}, -1); !errors.Is(err, provider.ErrCorrupt) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestFollow_invalidStart_isAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := setup(t)
		mustStart(t, c, "one")
		mustStart(t, c, "two")
		p.Append("one", sideEffect())
		for name, tt := range map[string]struct {
			id    string
			opts  []client.HistoryOption
			field string
			err   error
		}{
			"missing instance":  {"missing", nil, "", client.ErrNotFound},
			"missing execution": {"one", []client.HistoryOption{client.WithExecutionID("x9")}, "", client.ErrNotFound},
			"execution of another instance": {
				"one", []client.HistoryOption{client.WithExecutionID("x2"), client.AfterEvent(1)}, "", client.ErrNotFound,
			},
			"event that does not exist": {"one", []client.HistoryOption{client.AfterEvent(3)}, "after", nil},
			"negative event":            {"one", []client.HistoryOption{client.AfterEvent(-1)}, "after", nil},
			"negative interval": {
				"one", []client.HistoryOption{client.WithPollInterval(-time.Second)}, "pollInterval", nil,
			},
			"invalid id": {"a\n", nil, "instanceId", nil},
		} {
			var err error
			for _, err = range c.Follow(t.Context(), tt.id, tt.opts...) {
				if err == nil {
					t.Errorf("%s: yields an event", name)
				}
			}
			var field *provider.FieldError
			if errors.As(err, &field) != (tt.field != "") || field != nil && field.Field != tt.field ||
				tt.err != nil && !errors.Is(err, tt.err) || err == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
