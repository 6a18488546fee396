package lambdahandler

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/fakeprovider"
)

// FuzzHTTPEvent checks that any event of an HTTP API or a function URL is rejected, or served with its method, body and
// the verified caller, and a path that the gateway has authorized.
func FuzzHTTPEvent(f *testing.F) {
	const request = `{"version":"2.0","rawPath":"/v1/instances/a b","rawQueryString":"limit=5",` +
		`"headers":{"content-type":"application/json","idempotency-key":"a,b"},"pathParameters":{"proxy":"instances/a%20b"},` +
		`"requestContext":{"domainName":"x.execute-api.eu-west-1.amazonaws.com","http":{"method":"POST","sourceIp":"192.0.2.7"},` +
		`"authorizer":{"iam":{"userArn":"arn:aws:iam::1:user/a"},"jwt":{"claims":{"sub":"b"}},"lambda":{"principalId":5}}}`
	f.Add(request + `,"body":"e30=","isBase64Encoded":true}`)
	f.Add(request + `,"body":"{"}`)
	f.Add(request + `,"body":"%","isBase64Encoded":true}`)
	f.Add(strings.ReplaceAll(request, "execute-api", "lambda-url") + `}`)
	f.Add(`{"rawPath":"/v1/a?b","pathParameters":{"proxy":"a%3Fb%zz"},"headers":{"":""},"requestContext":{"authorizer":{}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var e events.APIGatewayV2HTTPRequest
		if json.Unmarshal([]byte(text), &e) != nil {
			return
		}
		if caller := notAuthorized.caller(&e); caller != "" {
			t.Errorf("caller %q, who is not verified", caller)
		}
		for _, by := range []authorization{notAuthorized, authorizedByIAM, authorizedByJWT, authorizedByLambda} {
			served := false
			serve := httpHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served = true
				body, err := io.ReadAll(r.Body)
				want := []byte(e.Body)
				if e.IsBase64Encoded {
					want, _ = base64.StdEncoding.DecodeString(e.Body)
				}
				if err != nil || !bytes.Equal(body, want) || r.Method != e.RequestContext.HTTP.Method {
					t.Errorf("%s %q, error %v, want %q", r.Method, body, err, want)
				}
				if r.URL.Path != e.RawPath && !strings.HasPrefix(r.URL.Path, e.RawPath) &&
					!strings.Contains(e.RequestContext.DomainName, functionURLHost) {
					t.Errorf("path %q, but %q is authorized", r.URL.Path, e.RawPath)
				}
				_, _ = io.WriteString(w, r.URL.EscapedPath())
			}), by)
			resp, err := serve(t.Context(), e)
			if served == (err != nil) || served && resp.StatusCode != http.StatusOK {
				t.Errorf("served %v, status %d, error %v", served, resp.StatusCode, err)
			}
		}
	})
}

// FuzzRenewerEvent checks that any event of the renewer function has at most one kind of effect, and never fails with a
// panic.
func FuzzRenewerEvent(f *testing.F) {
	for _, event := range []string{
		sqsEvent, `{"source":"aws.events"}`, `{"visibilityTimeout":60,"leases":[{"token":"w1.1.x","receiptHandle":"r"}]}`,
		`{"rawPath":"/v1/work-items/renew","requestContext":{"http":{"method":"POST"}},"body":"{}"}`, `{}`, `[]`, ``,
		`{"Records":[{"messageId":"m","body":"{\"v\":1,\"instanceId\":\"a\",\"executionId\":\"x\",\"timerId\":1}"}]}`,
		`{"leases":[],"source":"aws.events"}`, `{"leases":{}}`,
	} {
		f.Add([]byte(event))
	}
	h := fakeprovider.New(time.Now)
	log := slog.New(slog.DiscardHandler)
	k, err := dispatch.NewRenewer(h, &dispatch.RenewerOptions{Logger: log})
	if err != nil {
		f.Fatal(err)
	}
	r := newRenewer(k, client.New(h), "", log)
	f.Fuzz(func(t *testing.T, event []byte) {
		if !json.Valid(event) {
			return // the runtime of Lambda rejects it
		}
		var e renewerEvent
		readable := json.Unmarshal(event, &e) == nil
		result, err := r.handle(t.Context(), event)
		if kinds := e.kinds(); (!readable || len(kinds) != 1) && err == nil {
			t.Errorf("%s has the kinds %v, result %+v", event, kinds, result)
		}
		if failed, ok := result.(events.SQSEventResponse); ok && len(failed.BatchItemFailures) > len(e.Records) {
			t.Errorf("%d of %d records failed", len(failed.BatchItemFailures), len(e.Records))
		}
	})
}

// FuzzInboxEvent checks that an event of the orchestrator function is a query or has the records of the event.
func FuzzInboxEvent(f *testing.F) {
	f.Add([]byte(sqsEvent))
	f.Add([]byte(`{"perdureQuery":{"instanceId":"a","name":"q","input":1},"Records":[{"messageId":"m"}]}`))
	f.Add([]byte(`{"Records":[{"body":1}]}`))
	f.Add([]byte(`{"perdureQuery":null}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		var e inboxEvent
		if json.Unmarshal(event, &e) != nil {
			return
		}
		records := recordsOf(e.SQSEvent)
		if len(records) != len(e.Records) {
			t.Fatalf("%d of %d records", len(records), len(e.Records))
		}
		for i, r := range records {
			if m := &e.Records[i]; r.ID != m.MessageId || r.Body != m.Body || r.ReceiptHandle != m.ReceiptHandle {
				t.Errorf("record %+v of message %+v", r, m)
			}
		}
		if e.Query != nil {
			if _, err := json.Marshal(e.Query); err != nil {
				t.Errorf("query %+v: %v", e.Query, err)
			}
		}
	})
}

// FuzzEnvironment checks that the value of each variable is accepted within its bounds, or rejected with an error that
// names the variable.
func FuzzEnvironment(f *testing.F) {
	for _, v := range []string{
		"", "64 MiB", "9223372036854775807GiB", "-1", "30d", "0", "1h", "NaN", "true", "hub", "off", "iam",
		"https://shop.example.com,", "api.example.com:80,*", `{"default":"https://sqs/default"}`, "[]", "debug", "requeue",
		"90", "10ms", "12h", "1e3",
	} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		var name string
		e := &environment{getenv: func(asked string) string {
			name = asked
			return value
		}}
		check := func(accepted bool, v any) {
			for _, err := range e.errs {
				if !strings.HasPrefix(err.Error(), "lambdahandler: environment variable ") {
					t.Errorf("%s=%q: %v", name, value, err)
				}
			}
			if len(e.errs) == 1 && !strings.Contains(e.errs[0].Error(), name) && !strings.Contains(name, "PERIOD") {
				t.Errorf("%s=%q: %v", name, value, e.errs)
			}
			if !accepted {
				t.Errorf("%s=%q is %v", name, value, v)
			}
			e.errs = nil
		}
		n := e.bytes("BYTES", 7)
		check(n >= 0 && n <= 1<<40, n)
		attempts := e.maxCrashes()
		check(attempts >= 1 && attempts <= maxMaxCrashes, attempts)
		retention := e.retention()
		check(retention == 0 || retention >= time.Hour, retention)
		metrics := e.metrics()
		check(metrics == dispatch.MetricsOff || metrics.Known(), metrics)
		by := e.authorization()
		check(by == notAuthorized || by == authorizedByIAM || by == authorizedByJWT || by == authorizedByLambda, by)
		inline := e.inlineTimeout()
		check(inline == -1 || inline > 0 && inline <= maxInlineTimeout, inline)
		urls := e.urls("URLS")
		check(value == "" || urls != nil, urls)
		check(true, e.originGuard())
		check(true, e.allowedHosts())
		check(true, e.logLevel())
		check(true, e.servesWebUI())
		var o dispatch.WorkerOptions
		e.activities(&o)
		check(o.LockTimeout >= time.Second && o.LockTimeout <= maxLock && o.CancelPollInterval >= minDuration, o)
		h := e.hub(true, true)
		e.timing(&h)
		e.errs = nil
	})
}

// FuzzDeclaredSchedules checks that the declared schedules are rejected with an error that names the variable, or have
// a revision that depends on their content.
func FuzzDeclaredSchedules(f *testing.F) {
	f.Add(`[{"id":"nightly","orchestration":"report","when":"0 2 * * *","input":7}]`)
	f.Add(`[{"id":"nightly","later":1}]`)
	f.Add(`[{"input":null},{"from":"noon"}]`)
	f.Add(`{}`)
	f.Add(`[] [{"id":"nightly"}]`)
	f.Fuzz(func(t *testing.T, doc string) {
		d := newDeclaredSchedules(nil, doc)
		if d.parseErr != nil {
			if !strings.Contains(d.parseErr.Error(), "PERDURE_SCHEDULES") || len(d.pending) > 0 {
				t.Errorf("%q: %d schedules, error %v", doc, len(d.pending), d.parseErr)
			}
			return
		}
		if doc != "" && !json.Valid([]byte(doc)) {
			t.Errorf("%q is accepted", doc)
		}
		for i := range d.pending {
			again := d.pending[i]
			again.Revision = ""
			if len(d.pending[i].Revision) != 32 {
				t.Errorf("revision %q", d.pending[i].Revision)
			}
			_ = again.Validate() // must not panic
		}
	})
}
