package selftest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
	"github.com/perdure/perdure/schedule"
)

// gateway calls an API in memory. Like a gateway, it joins the values of a header.
type gateway struct{ api http.Handler }

func (g gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range r.Header {
		r.Header.Set(name, strings.Join(values, ","))
	}
	w := httptest.NewRecorder()
	g.api.ServeHTTP(w, r)
	return w.Result(), nil
}

func gatewayClient(t *testing.T, api http.Handler, opts ...client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial("http://api.example.com", append([]client.DialOption{
		client.WithHTTPClient(&http.Client{Transport: gateway{api}}),
		client.WithToken(func(context.Context) (string, error) { return "token", nil }),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// inMemory runs f with a hub in memory that has the application of the self-test, in virtual time.
func inMemory(t *testing.T, r *perdure.Registry, f func(ctx context.Context, h *hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		simulated, err := simhub.New(simhub.Options{Registry: r, Bucket: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { simulated.Cloud.Serve(ctx) })
		running.Go(func() {
			for sleep.For(ctx, time.Minute) == nil {
				_, _ = simulated.Renewer.Sweep(ctx) // the next one repeats what failed
			}
		})
		direct, operated := client.New(simulated.Provider), admin.New(simulated.Provider)
		api := httpapi.New(direct, operated, httpapi.WithLogger(slog.New(slog.DiscardHandler)))
		f(ctx, &hub{
			client: direct, api: gatewayClient(t, api), admin: operated, now: time.Now, sleep: sleep.For,
			repeatingAPI: gatewayClient(t, api, apiclient.OptionFunc(repeatKey)),
			progress:     io.Discard, deployment: &hubadmin.Admin{
				Config: simulated.Provider.Config(), Instances: simulated.Provider, Queues: simulated.Cloud.Queues,
			},
		})
		cancel()
		running.Wait()
		simulated.Close()
		synctest.Wait()
	})
}

// deployedCode returns the registry of the functions.
func deployedCode() *perdure.Registry {
	r := app.Registry(nil)
	schedule.Register(r)
	return r
}

func TestOperations_inMemory_pass(t *testing.T) {
	t.Parallel()
	inMemory(t, deployedCode(), func(ctx context.Context, h *hub) {
		for _, operation := range h.operations(false) {
			if r := h.runScenario(ctx, &operation); r.Error != "" {
				t.Errorf("%s: %s", r.Name, r.Error)
			}
		}
		if err := (&operator{h}).repeatHeader(ctx); err != nil {
			t.Errorf("repeated header: %v", err)
		}
		if detail, err := h.drained(ctx); err != nil || detail != "2 queues are empty" {
			t.Errorf("drained: got %q, %v", detail, err)
		}
	})
}

// An orchestration that returns another result, and one that never receives its event, fail their scenarios.
func TestOperations_wrongApplication_fail(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	schedule.Register(r)
	perdure.AddOrchestration(r, app.FanOut, func(*perdure.OrchestrationContext, int) (int, error) { return 1, nil })
	perdure.AddOrchestration(r, app.Steps, func(*perdure.OrchestrationContext, int) (int, error) { return 60, nil })
	perdure.AddOrchestration(r, app.Greet, func(*perdure.OrchestrationContext, string) (string, error) {
		return "goodbye", nil
	})
	perdure.AddOrchestration(r, app.Receive, func(ctx *perdure.OrchestrationContext, _ string) (int, error) {
		return perdure.WaitForExternalEvent[int](ctx, "another").Await(ctx)
	})
	want := map[string]string{
		"FanOutOf100": "want 5050", "EventStream": "0 of 20 activities", "ScheduledRun": `want "hello, world"`,
		"PurgedIDReused": `want "hello, again"`, "DeadLetterRedriven": "deadline exceeded",
		apiScenario: "0 of 5 activities",
	}
	inMemory(t, r, func(ctx context.Context, h *hub) {
		for _, operation := range h.operations(true) {
			if r := h.runScenario(ctx, &operation); !strings.Contains(r.Error, want[r.Name]) || want[r.Name] == "" {
				t.Errorf("%s: got %q, want %q", r.Name, r.Error, want[r.Name])
			}
		}
	})
}

// A gateway that reports another caller differs from AWS.
func TestRecordCaller_gatewayReportsAnother_isReported(t *testing.T) {
	t.Parallel()
	inMemory(t, deployedCode(), func(ctx context.Context, h *hub) {
		api := httpapi.New(h.client, h.admin, httpapi.WithLogger(slog.New(slog.DiscardHandler)))
		another := gatewayClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			api.ServeHTTP(w, r.WithContext(client.ContextWithCaller(r.Context(), "another")))
		}))
		_, err := (&operator{h}).recordCaller(ctx)
		if _, open := errors.AsType[*probes.UndecidedError](err); !open {
			t.Errorf("unknown caller: got %v", err)
		}
		h.api = another
		h.client = client.New(h.deployment.Instances, client.WithCaller("another"))
		if detail, err := (&operator{h}).recordCaller(ctx); err != nil || detail != "another" {
			t.Errorf("the same caller: got %q, %v", detail, err)
		}
		h.client = client.New(h.deployment.Instances, client.WithCaller("operator"))
		_, err = (&operator{h}).recordCaller(ctx)
		if err == nil || !strings.Contains(err.Error(), `the caller "another" of the API`) {
			t.Errorf("got %v", err)
		}
	})
}

// A gateway that drops repeated headers differs from AWS.
func TestRepeatHeader_gatewayKeepsOneValue_isReported(t *testing.T) {
	t.Parallel()
	inMemory(t, deployedCode(), func(ctx context.Context, h *hub) {
		api := httpapi.New(h.client, h.admin, httpapi.WithLogger(slog.New(slog.DiscardHandler)))
		h.repeatingAPI = gatewayClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key, _, _ := strings.Cut(r.Header.Get(idempotencyKey), ",")
			r.Header.Set(idempotencyKey, key)
			api.ServeHTTP(w, r)
		}), apiclient.OptionFunc(repeatKey))
		if err := (&operator{h}).repeatHeader(ctx); err == nil || !strings.Contains(err.Error(), "was started with two values") {
			t.Errorf("got %v", err)
		}
	})
}

// requests calls an API in memory after a gateway that has a time limit, unless it is 0.
type requests struct {
	api    http.Handler
	limit  time.Duration
	status int // after the limit, or 0 for a closed connection
}

func (r requests) Do(
	ctx context.Context, sent *awsrequest.Request, _ int64,
) (*awsrequest.Response, error) {
	if r.limit > 0 {
		if err := sleep.For(ctx, r.limit); err != nil {
			return nil, err
		}
		if r.status == 0 {
			return nil, errors.New("connection closed")
		}
		return &awsrequest.Response{Status: r.status, Body: []byte("timeout")}, nil
	}
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, httptest.NewRequestWithContext(ctx, sent.Method, sent.URL, http.NoBody))
	return &awsrequest.Response{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}, nil
}

// A gateway that ends a request before the API responds differs from AWS. Other failures show nothing.
func TestLongWait_gatewayEndsRequest_isReported(t *testing.T) {
	t.Parallel()
	inMemory(t, deployedCode(), func(ctx context.Context, h *hub) {
		api := httpapi.New(h.client, h.admin, httpapi.WithLogger(slog.New(slog.DiscardHandler)))
		h.address = "https://a.execute-api.eu-west-1.amazonaws.com"
		h.probes = &probes.Probes{GatewayConfig: probes.GatewayConfig{APIURL: h.address}}
		for want, c := range map[string]struct {
			gateway   requests
			undecided bool
		}{
			"": {gateway: requests{api: api}},
			"a request for 20s gets status 504 after 15s: timeout": {gateway: requests{limit: 15 * time.Second, status: 504}},
			"after 15s: connection closed":                         {gateway: requests{limit: 15 * time.Second}},
			"a request for 20s gets status 503 after 1s: timeout": {
				gateway: requests{limit: time.Second, status: 503}, undecided: true,
			},
			"connection closed": {gateway: requests{limit: time.Second}, undecided: true},
			"a request for 20s gets status 403 after 15s: timeout": {
				gateway: requests{limit: 15 * time.Second, status: 403}, undecided: true,
			},
		} {
			h.probes.Requests = c.gateway
			detail, err := (&operator{h}).longWait(ctx)
			_, open := errors.AsType[*probes.UndecidedError](err)
			if want == "" && (err != nil || detail == "") || want != "" && (err == nil || err.Error() != want) ||
				open != c.undecided {
				t.Errorf("want %q, got %q, %v", want, detail, err)
			}
		}
		h.probes.APIURL = ""
		if _, err := (&operator{h}).longWait(ctx); !errors.Is(err, probes.ErrNoAPI) {
			t.Errorf("without an API: got %v", err)
		}
	})
}
