package lambdahandler

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// throttled is a transport of the SDK that throttles every request.
type throttled struct{ calls atomic.Int64 }

func (t *throttled) Do(r *http.Request) (*http.Response, error) {
	t.calls.Add(1)
	time.Sleep(5 * time.Millisecond) // so that concurrent calls overlap
	code := "com.amazonaws.dynamodb.v20120810#ThrottlingException"
	if strings.Contains(r.Header.Get("X-Amz-Target"), "SQS") {
		code = "com.amazonaws.sqs#RequestThrottled"
	}
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{
			"Content-Type": {"application/x-amz-json-1.0"},
		},
		Request: r,
		Body:    io.NopCloser(strings.NewReader(`{"__type":"` + code + `","message":"slow down"}`)),
	}, nil
}

func (t *throttled) config() aws.Config {
	return aws.Config{
		Region: "eu-central-1", HTTPClient: t,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
		}),
	}
}

// Without a limit, retries of the SDK multiply with retries of the provider and with the sixteen shards of a list. Each
// request makes at most twenty calls, and the response arrives within five seconds.
func TestAPI_allCallsThrottled_returns503InTime(t *testing.T) {
	t.Parallel()
	get, post := http.MethodGet, http.MethodPost
	for _, r := range []apiRequest{
		{method: get, target: "/v1/instances"},
		{method: get, target: "/v1/instances?limit=1000"},
		{method: get, target: "/v1/instances?name=a&status=Running"},
		{method: get, target: "/v1/instances?status=Blocked"},
		{method: get, target: "/v1/instances/a"},
		{method: get, target: "/v1/instances/a/result?wait=20s"},
		{method: get, target: "/v1/instances/a/history"},
		{method: get, target: "/v1/instances/a/history?execution=01KA0000000000000000000000"},
		{method: get, target: "/v1/instances/a/executions"},
		{method: get, target: "/v1/instances/a/cancellations"},
		{method: get, target: "/v1/instances/a/cancellations?execution=01KA0000000000000000000000"},
		{method: http.MethodDelete, target: "/v1/instances/a"},
		{method: http.MethodDelete, target: "/v1/instances/a?force=true"},
		{method: post, target: "/v1/orchestrations/hello", body: `{}`},
		{method: post, target: "/v1/orchestrations/hello", body: `{"delay":"1h"}`},
		{method: post, target: "/v1/instances/a/events/e", body: `1`},
		{method: post, target: "/v1/instances/a/cancel"},
		{method: post, target: "/v1/instances/a/terminate"},
		{method: post, target: "/v1/instances/a/activities/2/cancel"},
		{method: get, target: "/v1/jobs"},
		{method: get, target: "/v1/jobs/j"},
		{method: post, target: "/v1/jobs", body: `{"operation":"purge","all":true}`},
		{method: post, target: "/v1/jobs", body: `{"operation":"purge","all":true,"dryRun":true}`},
		{method: post, target: "/v1/jobs/j/cancel"},
	} {
		t.Run(r.method+" "+r.target+" "+r.body, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cloud := &throttled{}
				p, err := dynamo.New(
					dynamo.HubConfig{
						Name: "h", Table: "t", InboxURL: "https://sqs.example/inbox.fifo",
						TimersURL: "https://sqs.example/timers",
					}, dynamo.FromConfig(cloud.config()),
				)
				if err != nil {
					t.Fatal(err)
				}
				a := open(t, p).byLambda(byAPI, &r)
				t.Logf("%d calls, %v", cloud.calls.Load(), a.took)
				if n := cloud.calls.Load(); a.Code != http.StatusServiceUnavailable ||
					a.Header.Get("Retry-After") == "" || n < 2 || n > 20 || a.took > 5*time.Second {
					t.Errorf(
						"%d calls in %v: got %d, Retry-After %q: %s", n, a.took, a.Code, a.Header.Get("Retry-After"),
						a.Body,
					)
				}
			})
		})
	}
}

func TestList_oneThirdThrottled_succeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		hub, err := simhub.New(simhub.Options{
			Registry: greetings(),
			Intercept: func(_ context.Context, c simaws.Call, next func() error) error {
				if c.Operation == "Query" && calls.Add(1)%3 == 0 {
					return simaws.Throttled()
				}
				return next()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(hub.Close)
		d := open(t, hub.Provider)
		for range 50 {
			if a := d.byLambda(byAPI, &apiRequest{
				method: http.MethodGet, target: "/v1/instances",
			}); a.Code != http.StatusOK {
				t.Fatalf("got status %d: %s", a.Code, a.Body)
			}
		}
	})
}

// large returns orchestrations that set a custom status of the maximum size, which consists of quotes.
func large() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "large", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		ctx.SetCustomStatus(strings.Repeat(`"`, perdure.MaxCustomStatusBytes/2-1))
		_, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
		return 0, err
	})
	return r
}

// A thousand instances with IDs, tags and custom statuses of the maximum size are 57 MB in a response of Lambda.
func TestList_largeInstances_pagesFitLambda(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, err := simhub.New(simhub.Options{Registry: large()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(hub.Close)
		d := open(t, hub.Provider)
		tags := map[string]string{}
		for n := range 16 {
			tags[strings.Repeat(`"`, 62)+fmt.Sprintf("%02d", n)] = strings.Repeat(`\`, 256)
		}
		instances := manyOr(200, 1000)
		for n := range instances {
			body, err := json.Marshal(map[string]any{
				"instanceId": strings.Repeat(`"`, 1020) + fmt.Sprintf("%04d", n), "tags": tags, "input": 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			if a := d.byLambda(byAPI, &apiRequest{
				method: http.MethodPost, target: "/v1/orchestrations/large", body: string(body),
			}); a.Code != http.StatusAccepted {
				t.Fatalf("got status %d: %s", a.Code, a.Body)
			}
			time.Sleep(time.Millisecond)
		}
		settle(hub)
		for _, gateway := range []string{byAPI, byHTTP} {
			seen, pages, cursor := map[string]bool{}, 0, ""
			for more := true; more; more = cursor != "" {
				r := apiRequest{
					method: http.MethodGet, target: "/v1/instances?limit=1000&cursor=" + url.QueryEscape(cursor),
				}
				a := d.by(gateway, &r)
				if a.Code != http.StatusOK {
					t.Fatalf("got status %d: %s", a.Code, a.Body)
				}
				var page httpapi.InstancePage
				if err := json.Unmarshal(a.Body, &page); err != nil {
					t.Fatal(err)
				}
				for i := range page.Items {
					if len(page.Items[i].CustomStatus) < 16000 || len(page.Items[i].Tags) != 16 {
						t.Fatalf(
							"%s in the list: got a custom status of %d bytes without the large fields",
							page.Items[i].Status, len(page.Items[i].CustomStatus),
						)
					}
					seen[page.Items[i].InstanceID] = true
				}
				pages, cursor = pages+1, page.NextCursor
				if gateway == byHTTP && len(a.Body) < lambdaLimit && cursor != "" {
					break // the limit of pages is the same over HTTP
				}
			}
			t.Logf("by %s: %d instances in %d pages", gateway, len(seen), pages)
			if gateway == byHTTP && pages == 1 {
				continue
			}
			if len(seen) != instances || pages < 2 || pages > 11 {
				t.Errorf(
					"%s: got %d instances in %d pages, want %d in two to fifteen", gateway, len(seen), pages, instances,
				)
			}
		}
	})
}

// by sends a request through a gateway.
func (d *gateways) by(gateway string, r *apiRequest) apiResponse {
	if gateway == byHTTP {
		return d.byHTTP(r)
	}
	return d.byLambda(gateway, r)
}

// A client that does not complete its request is disconnected after ten seconds, wherever it stops.
func TestServeHTTP_slowRequest_endsAfterTenSeconds(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]string{
		"nothing":        "",
		"request line":   "POST /v1/orchestrations/hello HTTP/1.1\r\n",
		"headers":        "POST /v1/orchestrations/hello HTTP/1.1\r\nHost: x\r\nX: ",
		"content length": "POST /v1/orchestrations/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"half a body": "POST /v1/orchestrations/hello HTTP/1.1\r\nHost: x\r\nContent-Length: " +
			"100\r\n\r\n{\"input\":",
		"a chunk": "POST /v1/orchestrations/hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n5\r\n{\"inp\r\n",
		"body of a GET":             "GET /v1/instances HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
		"body for an unknown route": "POST /v1/nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
		"body of HTTP/1.0":          "POST /v1/orchestrations/hello HTTP/1.0\r\nContent-Length: 100\r\n\r\n{",
		"a second request": "GET /v1/healthz HTTP/1.1\r\nHost: x\r\n\r\nPOST /v1/orchestrations/hello " +
			"HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
		"Expect: 100-continue": "POST /v1/orchestrations/hello HTTP/1.1\r\nHost: x\r\nExpect: " +
			"100-continue\r\nContent-Length: 100\r\n\r\n",
	} {
		for _, slowly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dripping: %v", name, slowly), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := open(t, inMemory(t).Provider).dial()
					began := time.Now()
					sent := make(chan struct{})
					go func() {
						defer close(sent)
						_, err := io.WriteString(c, begun)
						for ; slowly && err == nil; time.Sleep(time.Second) { // each read succeeds
							_, err = io.WriteString(c, "x")
						}
					}()
					_, _ = io.Copy(io.Discard, c)
					if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
						t.Errorf("got end of the connection after %v", took)
					}
					c.Close()
					<-sent
				})
			})
		}
	}
}

// The read timeout applies until the end of the body. A wait then continues for the requested time.
func TestServeHTTP_longPoll_exceedsReadTimeout(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"no body": "GET /v1/instances/a/result?wait=20s HTTP/1.1\r\nHost: x\r\n\r\n",
		"a body":  "GET /v1/instances/a/result?wait=20s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := open(t, inMemory(t).Provider)
				if a := d.byHTTP(&apiRequest{
					method: http.MethodPost, target: "/v1/orchestrations/hello", body: `{"instanceId":"a","input":1}`,
				}); a.Code != http.StatusAccepted {
					t.Fatalf("got status %d: %s", a.Code, a.Body)
				}
				c := d.dial()
				defer c.Close()
				began := time.Now()
				go func() { _, _ = io.WriteString(c, request) }()
				a, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer a.Body.Close()
				if took := time.Since(began); a.StatusCode != http.StatusAccepted || took < 19*time.Second ||
					took > 21*time.Second {
					t.Errorf("got status %d after %v", a.StatusCode, took)
				}
			})
		})
	}
}

// A call that has read its body may take longer than the read timeout. A read deadline of the connection would end its
// context.
func TestServeHTTP_slowCall_exceedsReadTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		conns, served := make(chan net.Conn), make(chan error)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			select {
			case <-r.Context().Done():
				w.WriteHeader(http.StatusServiceUnavailable)
			case <-time.After(30 * time.Second):
			}
		})
		go func() { served <- serveHTTP(ctx, memoryListener{conns, ctx}, h) }()
		c, there := net.Pipe()
		conns <- there
		go func() { _, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}") }()
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a.Body.Close(); a.StatusCode != http.StatusOK {
			t.Errorf("got status %d", a.StatusCode)
		}
		c.Close()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// A slow body within the timeout is accepted, and the connection serves the next request.
func TestServeHTTP_slowBodyInTime_isAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, inMemory(t).Provider).dial()
		defer c.Close()
		r := bufio.NewReader(c)
		for range 3 {
			go func() {
				_, _ = io.WriteString(c, "POST /v1/orchestrations/hello HTTP/1.1\r\nHost: x\r\n"+
					"Content-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"input\"")
				time.Sleep(9 * time.Second)
				_, _ = io.WriteString(c, ":1}")
			}()
			a, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, a.Body)
			if a.Body.Close(); err != nil || a.StatusCode != http.StatusAccepted {
				t.Fatalf("got %d, error %v", a.StatusCode, err)
			}
			time.Sleep(time.Minute)
		}
	})
}

// An ID that a gateway decodes selects the same instance through all gateways, or is rejected with a 400 that contains
// the base64url form. The ID never selects another instance.
// slashStatus returns the status for an ID with a slash. An HTTP API decodes the slash, so that the path has no route.
func slashStatus(gateway string) int {
	if gateway == byAPI {
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

func TestAPI_idInPath_isTheSameForAllGateways(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := open(t, inMemory(t).Provider)
		for _, id := range []string{"a", "a b", "ü", "a+b", "a:b@c", "a&b=c;d", "100", `"`, "a~b"} {
			body, _ := json.Marshal(map[string]any{"instanceId": id, "input": 1})
			if a := d.byHTTP(&apiRequest{
				method: http.MethodPost, target: "/v1/orchestrations/hello", body: string(body),
			}); a.Code != http.StatusAccepted {
				t.Fatalf("got status %d: %s", a.Code, a.Body)
			}
			for _, gateway := range []string{byHTTP, byAPI, byFunctionURL} {
				a := d.by(gateway, &apiRequest{method: http.MethodGet, target: "/v1/instances/" + url.PathEscape(id)})
				var in httpapi.Instance
				if err := json.Unmarshal(a.Body, &in); err != nil || a.Code != http.StatusOK || in.InstanceID != id {
					t.Errorf("%q by %s: got status %d: %s", id, gateway, a.Code, a.Body)
				}
			}
		}
		for _, sent := range []string{"a%2Fb", "a%3Fb", "a%23b", "a%25b", "a%2fb", "%2e%2e"} {
			gateways := []string{byHTTP, byFunctionURL}
			if strings.HasSuffix(strings.ToLower(sent), "2fb") { // an HTTP API loses the other IDs
				gateways = append(gateways, byAPI)
			}
			for _, gateway := range gateways {
				if a := d.by(gateway, &apiRequest{
					method: http.MethodDelete, target: "/v1/instances/" + sent,
				}); a.Code != slashStatus(gateway) ||
					!strings.Contains(string(a.Body), "base64url without padding: ~") {
					t.Errorf("%s by %s: got status %d: %s", sent, gateway, a.Code, a.Body)
				}
			}
		}
		// An HTTP API decodes the path, and truncates the path at a question mark. The path parameter is complete.
		for _, proxy := range []string{"instances/a%3Fb", "instances/a?b"} {
			e := d.event(byAPI, &apiRequest{method: http.MethodDelete, target: "/v1/instances/a%3Fb"})
			if e.RawPath != "/v1/instances/a" {
				t.Fatalf("got path %q", e.RawPath)
			}
			e.PathParameters = map[string]string{"proxy": proxy}
			if a, err := d.lambda(t.Context(), e); err != nil || a.StatusCode != http.StatusBadRequest ||
				!strings.Contains(a.Body, "~YT9i") {
				t.Errorf("%s: got error %v, response %+v", proxy, err, a)
			}
		}
		for target, form := range map[string]string{
			"/v1/instances/a%2Fb/history": "~YS9i", "/v1/instances/a%2Fb/events/go": "~YS9i",
			"/v1/instances/a/events/go%2Fon": "~Z28vb24", "/v1/jobs/a%2Fb": "~YS9i",
			"/v1/orchestrations/a%2Fb": "~YS9i",
		} {
			for _, gateway := range []string{byHTTP, byAPI, byFunctionURL} {
				for _, method := range []string{http.MethodGet, http.MethodPost} {
					a := d.by(gateway, &apiRequest{method: method, target: target})
					if a.Code == http.StatusMethodNotAllowed && gateway != byAPI {
						continue // the path is a route with other methods
					}
					if a.Code != slashStatus(gateway) || !strings.Contains(string(a.Body), form) {
						t.Errorf("%s %s by %s: got status %d: %s", method, target, gateway, a.Code, a.Body)
					}
				}
			}
		}
	})
}

// Gateways join two keys with a comma.
func TestAPI_twoIdempotencyKeys_areRejectedByAllGateways(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := inMemory(t)
		d := open(t, hub.Provider)
		for _, header := range [][]string{
			{"Idempotency-Key", "a", "Idempotency-Key", "b"}, {"Idempotency-Key", "a,b"},
		} {
			for _, target := range []string{"/v1/orchestrations/hello", "/v1/instances/one/events/go"} {
				for _, gateway := range []string{byHTTP, byAPI, byFunctionURL} {
					a := d.by(gateway, &apiRequest{method: http.MethodPost, target: target, body: "{}", header: header})
					if p := problemOf(&a); a.Code != http.StatusBadRequest || p.Field != "Idempotency-Key" ||
						!strings.Contains(p.Detail, "more than once") {
						t.Errorf("%q by %s: got status %d: %s", header, gateway, a.Code, a.Body)
					}
				}
			}
		}
		if page, err := hub.Provider.ListInstances(t.Context(), provider.ListQuery{}); err != nil ||
			len(page.Instances) > 0 {
			t.Errorf("got instances %+v, error %v, want none", page, err)
		}
	})
}
