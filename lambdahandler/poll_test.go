package lambdahandler

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func TestNew_outsideLambda_findsHubByName(t *testing.T) {
	t.Parallel()
	const lambda, table = "AWS_LAMBDA_RUNTIME_API", "PERDURE_TABLE"
	for _, c := range []struct {
		set  []string
		want bool
	}{{nil, true}, {[]string{table}, false}, {[]string{lambda}, false}, {[]string{lambda, table}, false}} {
		getenv := func(name string) string {
			if slices.Contains(c.set, name) {
				return "set"
			}
			return ""
		}
		if got := byName(getenv); got != c.want {
			t.Errorf("with %v set: got discovery by name %v", c.set, got)
		}
	}
}

func greetings() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "hello", func(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil })
	perdure.AddActivity(r, "greet", func(_ context.Context, n int) (int, error) { return n, nil })
	perdure.AddActivity(
		r, "pay", func(_ context.Context, n int) (int, error) { return n, nil }, perdure.OnQueue("payments"),
	)
	return r
}

func inMemory(t *testing.T) *simhub.Hub {
	t.Helper()
	hub, err := simhub.New(simhub.Options{Registry: greetings()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	return hub
}

func TestNewWorker_unknownQueue_isNamed(t *testing.T) {
	t.Parallel()
	e, hub := &environment{}, inMemory(t).Provider.Config()
	e.checkQueue("payments", hub)
	if err := e.err(); err != nil {
		t.Error(err)
	}
	e.checkQueue("paiments", hub)
	if err := e.err(); err == nil ||
		!strings.Contains(
			err.Error(), `PERDURE_QUEUE has the value "paiments", but hub "test" has the queues default, payments`,
		) {
		t.Errorf("got error %v", err)
	}
}

func TestActivityNames_queue_returnsItsActivities(t *testing.T) {
	t.Parallel()
	if got := activityNames(greetings(), "payments"); !slices.Equal(got, []string{"pay"}) {
		t.Errorf("activities of payments: got %v", got)
	}
}

// A polling renewer fires timers and sweeps instances without an EventBridge rule.
func TestServeTimers_firesTimersAndSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := inMemory(t)
		in, err := hub.Provider.StartOrchestration(t.Context(), provider.Start{
			InstanceID: "a", Name: "hello", Input: history.Payload("1"), StartID: "s",
		})
		if err != nil {
			t.Fatal(err)
		}
		inbox := func() []provider.Record {
			records, err := hub.Provider.FetchRecords(t.Context(), provider.QueueInbox)
			if err != nil {
				t.Fatal(err)
			}
			if err := hub.Provider.DeleteRecords(t.Context(), provider.QueueInbox, records...); err != nil {
				t.Fatal(err)
			}
			return records
		}
		inbox() // the wake is lost
		due := time.Now().Add(30 * time.Second)
		if err := hub.Provider.HoldTimers(t.Context(), provider.Timer{
			V: provider.WireVersion, InstanceID: "b", ExecutionID: "x", TimerID: 3, FireAt: due,
		}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			r := newRenewer(hub.Renewer, client.New(hub.Provider), "", slog.New(slog.DiscardHandler))
			ended <- serveTimers(ctx, hub.Provider, r)
		}()
		time.Sleep(time.Minute)
		if records := inbox(); len(records) != 1 ||
			!strings.Contains(records[0].Body, string(provider.MessageTimerFired)) {
			t.Errorf("got inbox messages %v, want a timer that has fired", records)
		}
		time.Sleep(4 * time.Minute)
		if records := inbox(); len(records) == 0 || !strings.Contains(records[0].Body, in.ExecutionID) {
			t.Errorf("got inbox messages %v, want a wake of %s", records, in.ExecutionID)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestServeHTTP_stop_finishesRunningRequests(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stop()
		for accepted := true; accepted; { // until the listener is closed
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
			if accepted = err == nil; accepted {
				c.Close()
			}
		}
		_, _ = io.WriteString(w, "done")
	})
	ended := make(chan error)
	go func() { ended <- serveHTTP(ctx, l, h) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer result.Body.Close()
	if b, err := io.ReadAll(result.Body); err != nil || string(b) != "done" {
		t.Errorf("got %q, error %v", b, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
