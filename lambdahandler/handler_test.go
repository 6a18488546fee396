package lambdahandler

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// recorded is a handler that records its input and fails the given records.
type recorded struct {
	got  []provider.Record
	fail []string
}

func (r *recorded) HandleRecords(_ context.Context, records []provider.Record) []string {
	r.got = records
	return r.fail
}

const sqsEvent = `{"Records":[
	{"messageId":"m-1","receiptHandle":"r-1","body":"{}","attributes":{"ApproximateReceiveCount":"3","MessageGroupId":"g","SequenceNumber":"18849496460467696128"}},
	{"messageId":"m-2","receiptHandle":"r-2","body":"x","attributes":{}}]}`

func TestSQSHandler_failedRecord_isReported(t *testing.T) {
	t.Parallel()
	var e events.SQSEvent
	if err := json.Unmarshal([]byte(sqsEvent), &e); err != nil {
		t.Fatal(err)
	}
	h := &recorded{fail: []string{"m-2"}}
	result, err := sqsHandler(h)(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Record{
		{ID: "m-1", ReceiptHandle: "r-1", Body: "{}", Group: "g", Sequence: "18849496460467696128", ReceiveCount: 3},
		{ID: "m-2", ReceiptHandle: "r-2", Body: "x", ReceiveCount: 1},
	}
	if !slices.Equal(h.got, want) {
		t.Errorf("got records %+v", h.got)
	}
	if b, _ := json.Marshal(result); string(b) != `{"batchItemFailures":[{"itemIdentifier":"m-2"}]}` {
		t.Errorf("got %s", b)
	}
}

// Some readers reject "batchItemFailures": null, and others interpret null as the failure of all records.
func TestR19_noFailures_areAnEmptyList(t *testing.T) {
	t.Parallel()
	result, err := sqsHandler(&recorded{})(t.Context(), events.SQSEvent{})
	if b, _ := json.Marshal(result); err != nil || string(b) != `{"batchItemFailures":[]}` {
		t.Errorf("got %s, error %v", b, err)
	}
}

func TestHTTPHandler_event_isServed(t *testing.T) {
	t.Parallel()
	h := httpHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set(
			"X-Seen", r.Method+" "+r.URL.Path+" "+r.URL.RawQuery+" "+r.Header.Get("Idempotency-Key")+" "+r.RemoteAddr,
		)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(b)
	}), authorizedByIAM)
	var e events.APIGatewayV2HTTPRequest
	err := json.Unmarshal([]byte(`{"version":"2.0","rawPath":"/v1/instances/a b?c","rawQueryString":"wait=20s","headers":{"idempotency-key":"k"},
		"requestContext":{"domainName":"x.example","http":{"method":"POST","sourceIp":"192.0.2.7"}},"body":"aGVsbG8=","isBase64Encoded":true}`), &e)
	if err != nil {
		t.Fatal(err)
	}
	result, err := h(t.Context(), e)
	if err != nil || result.StatusCode != http.StatusAccepted || result.Body != "hello" {
		t.Errorf("got %+v, error %v", result, err)
	}
	if want := "POST /v1/instances/a b?c wait=20s k 192.0.2.7"; result.Headers["X-Seen"] != want {
		t.Errorf("request of the handler: got %q, want %q", result.Headers["X-Seen"], want)
	}
	e.Body = "%"
	if _, err := h(t.Context(), e); err == nil {
		t.Error("invalid base64 body: got no error")
	}
}

func TestEnvironment_invalidVariables_areAllNamed(t *testing.T) {
	t.Parallel()
	set := map[string]string{
		"PERDURE_HUB": "h", "PERDURE_INBOX_URL": "u", "PERDURE_WORK_QUEUES": "{", "PERDURE_LOG_LEVEL": "loud",
		"PERDURE_CACHE_BYTES": "64 Mb", "PERDURE_DEAD_LETTERS": "{}",
	}
	e := &environment{getenv: func(name string) string { return set[name] }}
	e.hub(true, true)
	e.logLevel()
	e.bytes("PERDURE_CACHE_BYTES", 64<<20)
	for _, name := range []string{
		"PERDURE_TABLE", "PERDURE_WORK_QUEUES", "PERDURE_TIMERS_URL", "PERDURE_LOG_LEVEL", "PERDURE_CACHE_BYTES",
	} {
		if err := e.err(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %s in error %v", name, err)
		}
	}
	if err := e.err(); strings.Contains(err.Error(), "PERDURE_HUB") {
		t.Errorf("valid PERDURE_HUB: got error %v", err)
	}
}

// The variable of the dead-letter queues is optional for the API.
func TestEnvironment_apiDeadLetters_areOptional(t *testing.T) {
	t.Parallel()
	for letters, want := range map[string]int{"": 0, `{"inbox":"https://sqs/inbox-dead-letters.fifo"}`: 1} {
		e := environmentWith(map[string]string{"PERDURE_DEAD_LETTERS": letters, "PERDURE_TIMERS": "schedules"})
		if h := e.hub(false, true); len(h.DeadLetters) != want || e.err() != nil {
			t.Errorf("%q: got dead-letter queues %v, error %v", letters, h.DeadLetters, e.err())
		}
	}
}

// environmentWith returns the environment of a renewer with changes.
func environmentWith(changes map[string]string) *environment {
	set := map[string]string{
		"PERDURE_HUB": "h", "PERDURE_TABLE": "t", "PERDURE_INBOX_URL": "u", "PERDURE_WORK_QUEUES": "{}",
		"PERDURE_DEAD_LETTERS": "{}", "PERDURE_TIMERS_URL": "u",
		"PERDURE_SCHEDULE_GROUP": "g", "PERDURE_SCHEDULE_ROLE_ARN": "role", "PERDURE_TIMERS_ARN": "timers",
		"PERDURE_TIMERS_DEAD_LETTERS_ARN": "dead",
	}
	maps.Copy(set, changes)
	return &environment{getenv: func(name string) string { return set[name] }}
}

func TestEnvironment_timerVariables_areValidated(t *testing.T) {
	t.Parallel()
	hops := func(more map[string]string) map[string]string {
		all := map[string]string{
			"PERDURE_TIMERS": "hops", "PERDURE_SCHEDULE_GROUP": "", "PERDURE_SCHEDULE_ROLE_ARN": "",
			"PERDURE_TIMERS_ARN": "", "PERDURE_TIMERS_DEAD_LETTERS_ARN": "",
		}
		maps.Copy(all, more)
		return all
	}
	for name, c := range map[string]struct {
		changes map[string]string
		wrong   string // empty if the environment is valid
	}{
		"schedules by default": {nil, ""},
		"schedules":            {map[string]string{"PERDURE_TIMERS": "schedules"}, ""},
		"hops alone":           {hops(nil), ""},
		"neither":              {map[string]string{"PERDURE_TIMERS": "Schedules"}, "PERDURE_TIMERS"},
		"no group":             {map[string]string{"PERDURE_SCHEDULE_GROUP": ""}, "PERDURE_SCHEDULE_GROUP"},
		"no role":              {map[string]string{"PERDURE_SCHEDULE_ROLE_ARN": ""}, "PERDURE_SCHEDULE_ROLE_ARN"},
		"no queue":             {map[string]string{"PERDURE_TIMERS_ARN": ""}, "PERDURE_TIMERS_ARN"},
		"no dead letters": {
			map[string]string{"PERDURE_TIMERS_DEAD_LETTERS_ARN": ""}, "PERDURE_TIMERS_DEAD_LETTERS_ARN",
		},
		"short": {
			map[string]string{"PERDURE_TIMER_LONGEST_DELAY": "2s", "PERDURE_SCHEDULE_LEAD": "1s"}, "",
		},
		"no lead": {
			map[string]string{"PERDURE_TIMER_LONGEST_DELAY": "1s", "PERDURE_SCHEDULE_LEAD": "0s"}, "",
		},
		"lead of the stack": {
			map[string]string{"PERDURE_TIMER_LONGEST_DELAY": "900s", "PERDURE_SCHEDULE_LEAD": "120s"}, "",
		},
		"no duration":       {map[string]string{"PERDURE_TIMER_LONGEST_DELAY": "2"}, "PERDURE_TIMER_LONGEST_DELAY"},
		"too short":         {map[string]string{"PERDURE_TIMER_LONGEST_DELAY": "999ms"}, "PERDURE_TIMER_LONGEST_DELAY"},
		"too long":          {map[string]string{"PERDURE_TIMER_LONGEST_DELAY": "15m1s"}, "PERDURE_TIMER_LONGEST_DELAY"},
		"negative lead":     {map[string]string{"PERDURE_SCHEDULE_LEAD": "-1s"}, "PERDURE_SCHEDULE_LEAD"},
		"lead too long":     {map[string]string{"PERDURE_TIMER_LONGEST_DELAY": "2s"}, "PERDURE_SCHEDULE_LEAD"},
		"hops have no lead": {hops(map[string]string{"PERDURE_TIMER_LONGEST_DELAY": "2s"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := environmentWith(c.changes)
			h := e.hub(true, true)
			options := e.timing(&h)
			if c.wrong != "" {
				if err := e.err(); err == nil || !strings.Contains(err.Error(), "variable "+c.wrong+" ") {
					t.Errorf("want variable %s in error %v", c.wrong, err)
				}
				return
			}
			if _, err := dynamo.New(h, dynamo.Clients{}, options...); err != nil || e.err() != nil {
				t.Errorf("hub %+v: got error %v, %v", h, err, e.err())
			}
			want := dynamo.HubConfig{
				Name: "h", Table: "t", InboxURL: "u", TimersURL: "u", WorkQueues: map[string]string{},
				DeadLetters: map[string]string{}, TimerMode: "hops",
			}
			if c.changes["PERDURE_TIMERS"] != "hops" {
				want.TimerMode, want.ScheduleGroup, want.ScheduleRoleARN, want.TimersARN, want.TimersDeadLettersARN = "schedules", "g", "role", "timers", "dead"
			}
			if diff := cmp.Diff(want, h); diff != "" {
				t.Errorf("hub: mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

// An API can have only the variable of the timers queue. It deletes the schedules of purged instances only if it has
// the variables of schedules.
func TestEnvironment_apiWithoutSchedules_isValid(t *testing.T) {
	t.Parallel()
	set := map[string]string{
		"PERDURE_HUB": "h", "PERDURE_TABLE": "t", "PERDURE_INBOX_URL": "u", "PERDURE_TIMERS_URL": "u",
	}
	e := &environment{getenv: func(name string) string { return set[name] }}
	h := e.hub(false, true)
	if _, err := dynamo.New(h, dynamo.Clients{}, e.timing(&h)...); err != nil || e.err() != nil || h.TimerMode != "" {
		t.Errorf("%+v: got error %v, %v", h, err, e.err())
	}
	set["PERDURE_TIMERS"] = "hops"
	if h := e.hub(false, true); e.err() != nil || h.TimerMode != dynamo.TimersRequeue {
		t.Errorf("hops: got %+v, error %v", h, e.err())
	}
	set["PERDURE_TIMERS"] = "schedules"
	if e.hub(false, true); e.err() == nil {
		t.Error("schedules without a group: got no error")
	}
}

// PERDURE_ORCHESTRATOR is the function for queries. The variable is optional.
func TestEnvironment_apiOrchestrator_isOptional(t *testing.T) {
	t.Parallel()
	set := map[string]string{
		"PERDURE_HUB": "h", "PERDURE_TABLE": "t", "PERDURE_INBOX_URL": "u", "PERDURE_TIMERS_URL": "u",
	}
	for _, want := range []string{"", "arn:orchestrator:live"} {
		set["PERDURE_ORCHESTRATOR"] = want
		e := &environment{getenv: func(name string) string { return set[name] }}
		if h := e.hub(false, true); e.err() != nil || h.Orchestrator != want {
			t.Errorf("query function: got %q, want %q, error %v", h.Orchestrator, want, e.err())
		}
	}
}

func TestEnvironment_sizeWithUnit_isParsed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 64 << 20, "0": 0, "1024": 1024, "10 KiB": 10 << 10, "2GiB": 2 << 30} {
		e := &environment{getenv: func(string) string { return text }}
		if got := e.bytes("SIZE", 64<<20); got != want || e.err() != nil {
			t.Errorf("%q: got %d, error %v; want %d", text, got, e.err(), want)
		}
	}
}

// The test is not parallel, because the settings of the garbage collector are global.
func TestTuneMemory_userSettings_takePrecedence(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
	tuneMemory(func(name string) string { return map[string]string{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512"}[name] })
	if got := debug.SetGCPercent(100); got != gcPercent {
		t.Errorf("got GC percent %d", got)
	}
	if got := debug.SetMemoryLimit(-1); got != 429496729 {
		t.Errorf("got memory limit %d, want 80 %% of 512 MiB", got)
	}
	tuneMemory(func(name string) string { return map[string]string{"GOGC": "50", "GOMEMLIMIT": "1GiB"}[name] })
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC is set: got GC percent %d", got)
	}
}

// respondWith is a record handler that also responds to queries of one instance.
type respondWith struct{ recorded }

func (*respondWith) QueryInstance(_ context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	if q.InstanceID != "order-7" {
		return nil, fmt.Errorf("instance %q: %w", q.InstanceID, provider.ErrNotFound)
	}
	return json.RawMessage(`{"asked":"` + q.Name + `","with":` + string(q.Input) + `}`), nil
}

// The orchestrator function distinguishes queries from inbox records. The responses for records have no additional
// fields.
func TestInboxHandler_distinguishesEvents(t *testing.T) {
	t.Parallel()
	h := &respondWith{recorded{fail: []string{"m-2"}}}
	for event, want := range map[string]string{
		sqsEvent: `{"batchItemFailures":[{"itemIdentifier":"m-2"}]}`,
		`{"perdureQuery":{"instanceId":"order-7","name":"progress","input":{"n":1}}}`: `{"answer":{"asked":"progress","with":{"n":1}}}`,
		`{"perdureQuery":{"instanceId":"order-8","name":"progress"}}`:                 `{"error":{"instanceId":"order-8","query":"progress","code":"not_found","message":"instance \"order-8\": not found"}}`,
	} {
		result, err := lambda.NewHandler(inboxHandler(h)).Invoke(t.Context(), []byte(event))
		if err != nil || string(result) != want {
			t.Errorf("%s\ngot %s, error %v", event, result, err)
		}
	}
	if len(h.got) != 2 {
		t.Errorf("got %d records, want 2", len(h.got))
	}
}
