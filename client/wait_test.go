package client_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

func mustStart(t *testing.T, c *client.Client, id string) {
	t.Helper()
	if _, err := c.Start(t.Context(), "hello", nil, client.WithInstanceID(id)); err != nil {
		t.Fatal(err)
	}
}

func completed(output string) history.Event {
	return history.Event{
		Kind: history.OrchestrationCompleted, Time: began.Add(time.Second),
		Output: history.NewInlinePayload([]byte(output)),
	}
}

func TestWait_instanceCompletes_returnsStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fakeprovider.New(time.Now, "hello")
		c := connect(p)
		mustStart(t, c, "one")
		time.AfterFunc(time.Minute, func() { p.Append("one", completed(`{"ref":"a"}`)) })
		from := time.Now()
		s, err := c.Wait(t.Context(), "one")
		if err != nil || s.Status != client.StatusCompleted || string(s.Output) != `{"ref":"a"}` {
			t.Fatalf("Wait: got %+v, error %v", s, err)
		}
		if late := time.Since(from) - time.Minute; late > time.Second {
			t.Errorf("end reported %s late", late)
		}
	})
}

// The execution that is current at the start of the wait ends long before the instance.
func TestWait_continueAsNew_waitsForTheInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fakeprovider.New(time.Now, "hello")
		c := connect(p)
		mustStart(t, c, "one")
		for n := range 3 {
			time.AfterFunc(time.Duration(n+1)*time.Minute, func() {
				p.Append("one", history.Event{Kind: history.OrchestrationContinuedAsNew, Time: time.Now()})
			})
		}
		time.AfterFunc(time.Hour, func() { p.Append("one", completed(`"end"`)) })
		from := time.Now()
		s, err := c.Wait(t.Context(), "one")
		if err != nil || s.Status != client.StatusCompleted || string(s.Output) != `"end"` || s.ExecutionID != "x4" ||
			s.ExecutionNumber != 4 {
			t.Errorf("Wait: got %+v, error %v", s, err)
		}
		if took := time.Since(from); took < time.Hour {
			t.Errorf("ended after %s", took)
		}
	})
}

// The delays double from 20 ms to 1 s, and jitter shortens each by up to a half.
func TestWait_polling_backsOffWithJitter(t *testing.T) {
	t.Parallel()
	localOnly(t, "the API waits")
	var pauses []time.Duration
	enough := errors.New("enough")
	p := fakeprovider.New(time.Now, "hello")
	c := connect(p, client.WithSleep(func(_ context.Context, d time.Duration) error {
		if pauses = append(pauses, d); len(pauses) == 10 {
			return enough
		}
		return nil
	}))
	mustStart(t, c, "one")
	if _, err := c.Wait(t.Context(), "one"); !errors.Is(err, enough) {
		t.Fatalf("Wait: got error %v", err)
	}
	for i, pause := range pauses {
		longest := min(20*time.Millisecond<<i, time.Second)
		if pause < longest/2 || pause > longest {
			t.Errorf("pause %d: got %s, want %s to %s", i, pause, longest/2, longest)
		}
	}
	if tail := slices.Compact(pauses[6:]); len(tail) == 1 {
		t.Errorf("pauses without variation: got %v", pauses)
	}
}

func TestWait_contextEnds_returnsLastStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fakeprovider.New(time.Now, "hello")
		c := connect(p)
		mustStart(t, c, "one")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		from := time.Now()
		s, err := c.Wait(ctx, "one")
		if !errors.Is(err, context.DeadlineExceeded) || s.InstanceID != "one" || s.Status != client.StatusPending {
			t.Errorf("Wait: got %+v, error %v", s, err)
		}
		if took := time.Since(from); took != 5*time.Second {
			t.Errorf("got duration %s, want 5s", took)
		}
	})
}

func TestWait_missingInstance_returnsErrNotFound(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	if _, err := c.Wait(t.Context(), "missing"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("Wait: got error %v", err)
	}
	var field *provider.FieldError
	if _, err := c.Wait(t.Context(), ""); !errors.As(err, &field) || field.Field != "instanceId" {
		t.Errorf("Wait with an empty ID: got error %v", err)
	}
}

// waiting is a provider that implements Waiter.
type waiting struct{ *fakeprovider.Provider }

func (w waiting) WaitInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	w.Append(instanceID, completed("1"))
	return w.ReadInstance(ctx, instanceID)
}

func TestWait_providerImplementsWaiter_usesTheProvider(t *testing.T) {
	t.Parallel()
	localOnly(t, "the API waits")
	c, p := setup(t)
	mustStart(t, c, "one")
	s, err := connect(waiting{p}).Wait(t.Context(), "one")
	if err != nil || s.Status != client.StatusCompleted || p.Reads() != 1 {
		t.Errorf("Wait: got %+v, error %v after %d reads", s, err, p.Reads())
	}
}

func TestWaitForStart_firstTurnRuns_returnsStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fakeprovider.New(time.Now, "hello")
		c := connect(p)
		mustStart(t, c, "one")
		time.AfterFunc(time.Hour, func() {
			p.Append("one", history.Event{Kind: history.TurnStarted, Time: time.Now()})
		})
		from := time.Now()
		s, err := c.WaitForStart(t.Context(), "one")
		if err != nil || s.Status != client.StatusRunning || time.Since(from) < time.Hour ||
			time.Since(from) > time.Hour+time.Second {
			t.Errorf("WaitForStart: got %+v, error %v after %v", s, err, time.Since(from))
		}
		p.Append("one", completed(`"out"`))
		if s, err := c.WaitForStart(t.Context(), "one"); err != nil || s.Status != client.StatusCompleted ||
			string(s.Output) != `"out"` {
			t.Errorf("ended instance: got %+v, error %v", s, err)
		}
	})
}

func TestWaitForStart_pausedOrBlockedBeforeFirstTurn_returnsStatus(t *testing.T) {
	t.Parallel()
	for _, e := range []history.Event{
		{Kind: history.ExecutionSuspended, Time: began, Message: "not now"},
		{
			Kind: history.InputsParked, Time: began, BuildID: "b",
			Error: &history.Failure{Type: history.TypeUnregistered},
		},
	} {
		c, p := setup(t)
		mustStart(t, c, "one")
		p.Append("one", e)
		if s, err := c.WaitForStart(t.Context(), "one"); err != nil ||
			s.Status != client.StatusPaused && s.Status != client.StatusBlocked {
			t.Errorf("%s: got %+v, error %v", e.Kind, s, err)
		}
	}
}

func TestWaitForStart_contextEnds_returnsLastStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := connect(fakeprovider.New(time.Now, "hello"))
		mustStart(t, c, "one")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s, err := c.WaitForStart(ctx, "one")
		if !errors.Is(err, context.DeadlineExceeded) || s.InstanceID != "one" || s.Status != client.StatusPending {
			t.Errorf("WaitForStart: got %+v, error %v", s, err)
		}
		if _, err := c.WaitForStart(t.Context(), "missing"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("unknown instance: got error %v", err)
		}
	})
}
