package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// server is an API on a loopback listener. It records the routes of requests, and can lose responses.
type server struct {
	*fakeprovider.Provider

	letters *fakeprovider.Letters
	client  *client.Client
	admin   *admin.Client

	mu     sync.Mutex
	routes []string
	keys   []string
	lose   int // the number of next responses that are lost

	end sync.Once // ends the instance "waited" when its result is requested
}

// hubWithLetters is a hub with dead letters.
type hubWithLetters struct {
	*fakeprovider.Provider
	*fakeprovider.Letters
}

func newServer(t *testing.T) *server {
	t.Helper()
	now := func() time.Time { return began }
	s := &server{
		Provider: fakeprovider.New(now, "hello", "@sum", schedule.OrchestrationName),
		letters:  fakeprovider.NewLetters(now, "inbox", "default"),
	}
	hub := hubWithLetters{s.Provider, s.letters}
	handler := httpapi.New(client.New(s.Provider, client.WithClock(now)), admin.New(hub, admin.WithClock(now)),
		httpapi.WithLogger(slog.New(slog.DiscardHandler)))
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/waited/result") {
			s.end.Do(func() { s.Append("waited", completed("1")) })
		}
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, r)
		if s.lost(r) {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), response.Header())
		w.WriteHeader(response.Code)
		_, _ = io.Copy(w, response.Body)
	}))
	t.Cleanup(listener.Close)
	clock := client.WithClock(now)
	awake := client.WithSleep(func(ctx context.Context, _ time.Duration) error { return ctx.Err() })
	var err error
	if s.client, err = client.Dial(listener.URL, clock, awake); err != nil {
		t.Fatal(err)
	}
	if s.admin, err = admin.Dial(listener.URL, clock, awake); err != nil {
		t.Fatal(err)
	}
	return s
}

// lost records a request, and reports whether its response is lost.
func (s *server) lost(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes = append(s.routes, r.Method+" "+r.Pattern)
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	s.lose--
	return s.lose >= 0
}

// requests returns the routes and the idempotency keys of the requests since the last call.
func (s *server) requests() (routes, keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	routes, keys = s.routes, s.keys
	s.routes, s.keys = nil, nil
	return routes, keys
}

// calls has a call for each operation with a route and a Go method.
func (s *server) calls() map[string]func(ctx context.Context) error {
	c, a := s.client, s.admin
	message := "why"
	job := admin.JobRequest{Operation: admin.OperationCancel, All: true}
	letters := admin.DeadLetterQuery{Queue: "inbox"}
	one := client.WithInstanceID("one")
	return map[string]func(ctx context.Context) error{
		"startOrchestration": func(ctx context.Context) error { _, err := c.Start(ctx, "hello", 1); return err },
		"listInstances": func(ctx context.Context) error {
			_, err := client.Collect(c.List(ctx, client.ListQuery{}))
			return err
		},
		"getInstance": func(ctx context.Context) error {
			_, err := c.Status(ctx, "one")
			_, pending := c.Pending(ctx, "one", "", 0)
			_, cost := a.EstimateCost(ctx, "one")
			return errors.Join(err, pending, cost)
		},
		"putInstance": func(ctx context.Context) error {
			_, err := c.StartOrRaiseEvent(ctx, "hello", 1, "paid", 7, one)
			return err
		},
		"getResult": func(ctx context.Context) error { _, err := c.Wait(ctx, "waited"); return err },
		"listExecutions": func(ctx context.Context) error {
			_, err := client.Collect(c.Executions(ctx, "one"))
			return err
		},
		"getHistory": func(ctx context.Context) error { _, err := client.Collect(c.History(ctx, "one")); return err },
		"streamHistory": func(ctx context.Context) error {
			for _, err := range c.Follow(ctx, "one") {
				return err
			}
			return errors.New("no event")
		},
		"listCancellations": func(ctx context.Context) error {
			_, err := client.Collect(c.Cancellations(ctx, "one", ""))
			return err
		},
		"raiseEvent":    func(ctx context.Context) error { return c.RaiseEvent(ctx, "one", "paid", 7) },
		"queryInstance": func(ctx context.Context) error { _, err := c.Query(ctx, "one", "q", nil); return err },
		"updateInstance": func(ctx context.Context) error {
			_, err := c.Update(ctx, "one", "address", 7)
			return err
		},
		"entityState": func(ctx context.Context) error { _, err := c.EntityState(ctx, "sum", "k"); return err },
		"callEntity": func(ctx context.Context) error {
			_, err := c.CallEntity(ctx, "sum", "k", "add", 7)
			return err
		},
		"annotateInstance": func(ctx context.Context) error { return c.Annotate(ctx, "one", message) },
		"cancelActivity":   func(ctx context.Context) error { return c.CancelActivity(ctx, "one", 2, message) },
		"pauseInstance":    func(ctx context.Context) error { return c.Pause(ctx, "one", message) },
		"resumeInstance": func(ctx context.Context) error {
			return ignore(c.Resume(ctx, "one", message), client.ErrNotPaused)
		},
		"cancelInstance":    func(ctx context.Context) error { return c.Cancel(ctx, "one", message) },
		"terminateInstance": func(ctx context.Context) error { return c.Terminate(ctx, "one", message) },
		"restartInstance":   func(ctx context.Context) error { _, err := c.Restart(ctx, "ended"); return err },
		"purgeInstance":     func(ctx context.Context) error { return c.Purge(ctx, "purged") },

		"startJob": func(ctx context.Context) error { _, err := a.StartJob(ctx, job); return err },
		"listJobs": func(ctx context.Context) error { _, err := client.Collect(a.Jobs(ctx)); return err },
		"getJob": func(ctx context.Context) error {
			_, err := a.Job(ctx, "j")
			return ignore(err, client.ErrNotFound)
		},
		"cancelJob": func(ctx context.Context) error {
			_, err := a.CancelJob(ctx, "j")
			return ignore(err, client.ErrNotFound)
		},

		"putSchedule": func(ctx context.Context) error {
			return c.Schedules().Put(ctx, schedule.Schedule{ID: "new", Orchestration: "hello", Expression: "@daily"})
		},
		"getSchedule": func(ctx context.Context) error { _, err := c.Schedules().Get(ctx, "s"); return err },
		"listSchedules": func(ctx context.Context) error {
			_, err := client.Collect(c.Schedules().List(ctx))
			return err
		},
		"runSchedule": func(ctx context.Context) error { _, err := c.Schedules().Trigger(ctx, "s"); return err },
		"backfillSchedule": func(ctx context.Context) error {
			return c.Schedules().Backfill(ctx, "s", began.Add(-time.Hour), began)
		},
		"pauseSchedule": func(ctx context.Context) error { return c.Schedules().Pause(ctx, "s", message) },
		"resumeSchedule": func(ctx context.Context) error {
			return ignore(c.Schedules().Resume(ctx, "s", message), client.ErrNotPaused)
		},
		"deleteSchedule": func(ctx context.Context) error { return c.Schedules().Delete(ctx, "s") },

		"listQueues":       func(ctx context.Context) error { _, err := a.Queues(ctx); return err },
		"countDeadLetters": func(ctx context.Context) error { _, err := a.CountDeadLetters(ctx); return err },
		"listDeadLetters":  func(ctx context.Context) error { _, err := a.DeadLetters(ctx, letters, 10); return err },
		"getDeadLetter": func(ctx context.Context) error {
			_, err := a.DeadLetters(ctx, admin.DeadLetterQuery{Queue: "inbox", IDs: []string{"x"}}, 10)
			return err
		},
		"redriveDeadLetters": func(ctx context.Context) error {
			_, err := a.RedriveDeadLetters(ctx, letters)
			return err
		},
		"dropDeadLetters": func(ctx context.Context) error { _, err := a.DropDeadLetters(ctx, letters); return err },

		"completeActivity": func(ctx context.Context) error {
			return ignore(c.CompleteActivity(ctx, "c1.x", 7), provider.ErrInvalidToken)
		},
		"failActivity": func(ctx context.Context) error {
			return ignore(c.FailActivity(ctx, "c1.x", io.EOF), provider.ErrInvalidToken)
		},
		"beatActivity": func(ctx context.Context) error {
			_, err := c.HeartbeatActivity(ctx, "c1.x", 7)
			return ignore(err, provider.ErrInvalidToken)
		},
		api.RenewWorkItems: func(ctx context.Context) error {
			_, err := c.RenewWorkItems(ctx, time.Minute, client.Lease{Token: "w1", ReceiptHandle: "a"})
			return err
		},
	}
}

// ignore returns nil for an error that a call is expected to return.
func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// prepare starts the instances of the calls.
func (s *server) prepare(t *testing.T) {
	t.Helper()
	s.SetQueryFunc(func(provider.QueryRequest) (json.RawMessage, error) { return json.RawMessage("7"), nil })
	s.UpdateWith(func(provider.Message) *provider.UpdateResult {
		return &provider.UpdateResult{Outcome: provider.UpdateCompleted, Result: history.Payload("true")}
	})
	for _, id := range []string{"one", "ended", "purged", "waited"} {
		mustStart(t, s.client, id)
	}
	if _, err := s.client.CallEntity(t.Context(), "sum", "k", "add", 1); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Schedules().Put(t.Context(),
		schedule.Schedule{ID: "s", Orchestration: "hello", Expression: "@daily"}); err != nil {
		t.Fatal(err)
	}
	s.Append("one", scheduled)
	s.Append("ended", completed("1"))
	s.Append("purged", completed("1"))
	s.requests()
}

// Each operation of the table that has a route is a call of the remote clients, which requests this route.
func TestDial_operationsOfTheTable_requestTheirRoutes(t *testing.T) {
	t.Parallel()
	calls := newServer(t).calls()
	for _, o := range api.Operations() {
		if o.Path == "" || len(o.Go.Names) == 0 {
			continue
		}
		if calls[o.ID] == nil {
			t.Errorf("%s: no call", o.ID)
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.prepare(t)
			if err := s.calls()[o.ID](t.Context()); err != nil {
				t.Error(err)
			}
			if routes, _ := s.requests(); !slices.Contains(routes, o.Method+" "+o.Path) {
				t.Errorf("requested %q, want %s %s", routes, o.Method, o.Path)
			}
		})
		delete(calls, o.ID)
	}
	for id := range calls {
		t.Errorf("%s: not in the table", id)
	}
}

// If the first response of a call is lost after the hub acted, the call succeeds, and a change has its effect once.
func TestDial_responseIsLost_callSucceedsOnce(t *testing.T) {
	t.Parallel()
	for _, o := range api.Operations() {
		if o.Path == "" || len(o.Go.Names) == 0 {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.prepare(t)
			s.mu.Lock()
			s.lose = 1
			s.mu.Unlock()
			if err := s.calls()[o.ID](t.Context()); err != nil {
				t.Error(err)
			}
			_, keys := s.requests()
			if o.Repeat == api.RepeatByKey && (len(keys) < 2 || keys[0] == "" || keys[0] != keys[1]) {
				t.Errorf("the keys of the requests are %q", keys)
			}
		})
	}
}

// A start, a note, a job and a run of a schedule whose responses are lost exist once.
func TestDial_responsesAreLost_nothingIsDoneTwice(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.prepare(t)
	ctx := t.Context()
	lose := func(call string) {
		t.Helper()
		s.mu.Lock()
		s.lose = 3
		s.mu.Unlock()
		if err := s.calls()[call](ctx); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	before, err := client.Collect(s.client.List(ctx, client.ListQuery{Orchestration: "hello"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"startOrchestration", "annotateInstance", "startJob", "runSchedule"} {
		lose(call)
	}
	after, err := client.Collect(s.client.List(ctx, client.ListQuery{Orchestration: "hello"}))
	if err != nil || len(after) != len(before)+1 {
		t.Errorf("%d instances after %d, %v", len(after), len(before), err)
	}
	if is, err := s.client.Status(ctx, "one"); err != nil || len(is.Notes) != 1 {
		t.Errorf("notes %v, %v", is.Notes, err)
	}
	if jobs, err := client.Collect(s.admin.Jobs(ctx)); err != nil || len(jobs) != 1 {
		t.Errorf("jobs %v, %v", jobs, err)
	}
	runs := map[string]bool{}
	for _, m := range s.Sent() {
		if m.InstanceID == schedule.InstanceID("s") && m.Kind == provider.MessageEventRaised {
			runs[m.EventID+" "+string(m.Data)] = true
		}
	}
	if len(runs) != 1 {
		t.Errorf("runs %v", runs)
	}
}

func TestDial_operationsWithoutRoute_returnNoRouteError(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx := t.Context()
	_, prepare := s.client.PrepareStart(ctx, "hello", 1)
	_, stored := s.client.StoredPayload(ctx, "one", history.EventPayload{})
	_, reconcile := s.admin.Reconcile(ctx, admin.ReconcileOptions{})
	_, purge := s.admin.PurgeQueues(ctx)
	var sweep error
	for _, err := range s.admin.SweepPayloads(ctx) {
		sweep = err
	}
	for name, err := range map[string]error{
		"PrepareStart": prepare, "StoredPayload": stored, "Reconcile": reconcile, "PurgeQueues": purge,
		"SweepPayloads": sweep,
	} {
		if e, ok := errors.AsType[*client.NoRouteError](err); !ok || e.Operation != name || e.Reason == "" ||
			!errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if routes, _ := s.requests(); len(routes) > 0 {
		t.Errorf("requested %q", routes)
	}
}

func TestDial_optionOfNewOnly_isRejected(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]client.Option{
		"WithCaller": client.WithCaller("me"), "WithCodec": client.WithCodec(nil),
		"WithQuerier": client.WithQuerier(fakeprovider.New(time.Now)),
	} {
		if _, err := client.Dial("https://api.example.com", opt); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// Open uses the endpoint of the environment, and connects only without one.
func TestOpen_environment_selectsTransport(t *testing.T) {
	p := fakeprovider.New(time.Now, "hello")
	connected := 0
	connect := func() (client.Backend, error) { connected++; return p, nil }
	for endpoint, want := range map[string]int{"": 1, "https://api.example.com": 0} {
		t.Setenv(client.EndpointVariable, endpoint)
		connected = 0
		c, err := client.Open(connect, client.WithClock(time.Now), client.WithMaxAttempts(1))
		if err != nil || c == nil || connected != want {
			t.Errorf("%q: connected %d times, %v", endpoint, connected, err)
		}
	}
	t.Setenv(client.EndpointVariable, "")
	down := errors.New("down")
	if _, err := client.Open(func() (client.Backend, error) { return nil, down }); !errors.Is(err, down) {
		t.Errorf("error %v", err)
	}
}

// impatient is an API that does not wait: it responds at once that the instance is running.
type impatient struct{ requests *int }

func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	*i.requests++
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "2")
	if strings.HasSuffix(r.URL.Path, "/result") {
		w.WriteHeader(http.StatusAccepted)
	}
	_, _ = w.WriteString(`{"instanceId":"one","executionId":"x1","status":"Pending"}`)
	return w.Result(), r.Context().Err()
}

func TestDial_apiDoesNotWait_clientPausesBetweenRequests(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(context.Context, *client.Client) (client.Status, error){
		"Wait": func(ctx context.Context, c *client.Client) (client.Status, error) {
			return c.Wait(ctx, "one")
		},
		"WaitForStart": func(ctx context.Context, c *client.Client) (client.Status, error) {
			return c.WaitForStart(ctx, "one")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			requests := 0
			c, err := client.Dial("https://api.example.com",
				client.WithHTTPClient(&http.Client{Transport: impatient{&requests}}))
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			is, err := wait(ctx, c)
			if !errors.Is(err, context.DeadlineExceeded) || is.Status != client.StatusPending || requests > 32 {
				t.Errorf("%s = %+v, %v after %d requests", name, is, err, requests)
			}
		})
	}
}
