package perduretest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// weather is an HTTP server that counts its connections.
func weather(t *testing.T) (server *httptest.Server, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/never" {
			<-r.Context().Done()
		}
		fmt.Fprint(w, "sunny")
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server, connections
}

// forecasts returns a registry whose orchestration calls a server each day, with the activity "ask".
func forecasts(server *httptest.Server, path string) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "ask", func(ctx context.Context, _ int) (string, error) {
		perdure.Heartbeat(ctx, "asked")
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			return "", err
		}
		res, err := server.Client().Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return string(b), err
	})
	perdure.AddOrchestration(r, "forecast", func(ctx *perdure.OrchestrationContext, days int) (string, error) {
		var all []string
		for day := range days {
			printed, err := perdure.CallActivityByName[string](ctx, "ask", day,
				perdure.WithStartToCloseTimeout(time.Minute)).Await(ctx)
			if err != nil {
				return "", err
			}
			all = append(all, printed)
			if err := perdure.Sleep(ctx, 24*time.Hour); err != nil {
				return "", err
			}
		}
		return strings.Join(all, " "), nil
	})
	return r
}

// Keep-alive connections work during days of virtual time.
func TestWithNetwork_callsOnSeveralDays_reuseTheConnection(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]perduretest.Option{
		"by name": perduretest.WithNetwork("ask"), "all": perduretest.WithNetwork(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, connections := weather(t)
			env := perduretest.New(t, forecasts(server, "/"), option)
			began := env.Now()
			if got := result(t, env,
				start(t, env, "forecast", 3)); got != strings.TrimSpace(strings.Repeat("sunny ", 3)) {
				t.Errorf("got %q", got)
			}
			if days := env.Now().Sub(began); days < 72*time.Hour || days > 72*time.Hour+10*time.Second {
				t.Errorf("got duration %v", days)
			}
			if n := connections.Load(); n != 1 {
				t.Errorf("got %d connections, want 1", n)
			}
			if calls := env.Calls("ask"); len(calls) != 3 || calls[0].Duration != 0 ||
				string(calls[2].Output) != `"sunny"` {
				t.Errorf("got %+v", calls)
			}
		})
	}
}

func TestWithNetwork_serverDoesNotRespond_failsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		server, _ := weather(t)
		env := perduretest.New(t, forecasts(server, "/never"), perduretest.WithNetwork(),
			perduretest.WithHangTimeout(2*time.Second))
		result(t, env, start(t, env, "forecast", 1))
	}, "context deadline exceeded")
}

// The output suggests the option, although the process ends when the server closes the connection.
func TestWithNetwork_optionIsMissing_failureSuggestsIt(t *testing.T) {
	t.Parallel()
	wantOutput(t, func(t *testing.T) {
		t.Helper()
		server, _ := weather(t)
		env := perduretest.New(t, forecasts(server, "/"), perduretest.WithHangTimeout(2*time.Second))
		result(t, env, start(t, env, "forecast", 1))
	}, "Use WithNetwork for activities that use the network")
}

// An activity outside of virtual time uses the client, reads its info, and reports heartbeats.
func TestWithNetwork_activity_usesClientInfoAndHeartbeats(t *testing.T) {
	t.Parallel()
	var env *perduretest.Env
	r := registry()
	perdure.AddActivity(r, "delegate", func(ctx context.Context, d time.Duration) (string, error) {
		info := perdure.ActivityInfoFrom(ctx)
		if done, ok := perdure.HeartbeatDetails[string](ctx); ok {
			return done, nil
		}
		id, err := env.Client().Start(ctx, "sleep", d, client.WithInstanceID("of "+info.Name))
		if err != nil {
			return "", err
		}
		if _, err := env.Client().Wait(ctx, id); err == nil ||
			!strings.Contains(err.Error(), "virtual time does not advance") {
			return "", perdure.NonRetryable(fmt.Errorf("it waits: %w", err))
		}
		perdure.Heartbeat(ctx, id)
		return "", fmt.Errorf("at %v it is tried again", env.Now())
	})
	perdure.AddOrchestration(r, "boss", func(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
		return perdure.CallActivityByName[string](ctx, "delegate", d,
			perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Hour})).Await(ctx)
	})
	env = perduretest.New(t, r, perduretest.WithNetwork("delegate"))
	if got := result(t, env, start(t, env, "boss", time.Hour)); got != "of delegate" {
		t.Errorf("got %q", got)
	}
	if got := result(t, env, "of delegate"); got != "slept" {
		t.Errorf("got %q", got)
	}
}

// A server that an activity calls uses the client, like a webhook.
func TestWithNetwork_serverOfAnActivity_usesTheClient(t *testing.T) {
	t.Parallel()
	var env *perduretest.Env
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		s, err := env.Client().Status(r.Context(), id)
		if err == nil {
			err = env.Client().RaiseEvent(r.Context(), id, "paid", string(s.Status))
		}
		if _, waits := env.Client().Wait(r.Context(), id); err == nil &&
			(waits == nil || !strings.Contains(waits.Error(), "virtual time does not advance")) {
			err = fmt.Errorf("it waits: %w", waits)
		}
		fmt.Fprint(w, err)
	}))
	t.Cleanup(server.Close)
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "pay", func(ctx context.Context, _ struct{}) (string, error) {
		res, err := server.Client().Get(server.URL + "?id=" + perdure.ActivityInfoFrom(ctx).InstanceID)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return string(b), err
	})
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		printed, err := perdure.CallActivityByName[string](ctx, "pay", nil,
			perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 1})).Await(ctx)
		if err != nil {
			return "", err
		}
		status, err := perdure.WaitForExternalEvent[string](ctx, "paid").Await(ctx)
		return printed + " " + status, err
	})
	env = perduretest.New(t, r, perduretest.WithNetwork("pay"))
	if got := result(t, env, start(t, env, "order", nil)); got != "<nil> Running" {
		t.Errorf("got %q", got)
	}
}

// If code hangs or the Env has ended, a server's goroutine that calls the client ends, so that the server can be
// closed.
func TestClient_envHangsOrHasEnded_goroutineOfAServerEnds(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		var env *perduretest.Env
		hangs, over := make(chan struct{}), make(chan struct{})
		var ended sync.WaitGroup
		ended.Go(func() {
			<-hangs
			_, _ = env.Client().Status(context.Background(), "hangs")
		})
		ended.Go(func() {
			<-over
			_, _ = env.Client().Status(context.Background(), "hangs")
		})
		t.Cleanup(func() {
			close(over)
			ended.Wait()
		})
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "hangs", func(*perdure.OrchestrationContext, struct{}) (int, error) {
			close(hangs)
			<-elsewhere
			return 0, nil
		})
		env = perduretest.New(t, r, perduretest.WithHangTimeout(3*time.Second))
		result(t, env, start(t, env, "hangs", nil))
	}, "an orchestration waits to receive from a channel")
}

// A function that moves the clock runs on the goroutine of the bubble. In an activity it would wait for the activity
// itself.
func TestDrive_activityCallsTheClient_runsInTheBubble(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	var taken atomic.Int64
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { // like an activity of WithNetwork
		defer close(ended)
		for {
			select {
			case call := <-env.Others():
				taken.Add(1)
				call()
			case <-over:
				return
			}
		}
	}()
	for taken.Load() == 0 {
		env.Now() // the goroutine above or the bubble may run this call
	}
	taken.Store(0)
	driven := 0
	for range 100 {
		env.Drive(func() { driven++ })
	}
	close(over)
	<-ended
	if n := taken.Load(); driven != 100 || n != 0 {
		t.Errorf("got %d calls, %d of them by an activity", driven, n)
	}
}
