package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

const streamPath = inUse + "/events/stream"

// sent is an event of a stream.
type sent struct{ id, name, data string }

// parse returns the events of a stream. Comments are left out.
func parse(t *testing.T, body string) (all []sent) {
	t.Helper()
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		var e sent
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "retry", "":
			default:
				t.Errorf("line %q", line)
			}
		}
		if e != (sent{}) {
			all = append(all, e)
		}
	}
	return all
}

// lived is an instance of two executions that has ended.
func lived(t *testing.T) *hub {
	t.Helper()
	h := setup(t)
	h.start(t, "one")
	h.Append("one", history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0"},
		history.Event{Kind: history.OrchestrationContinuedAsNew, Time: began},
		history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0"}, completed(`"a\nb"`))
	return h
}

func TestStream_endedInstance_sendsHistoryAndEnd(t *testing.T) {
	t.Parallel()
	h := lived(t)
	a := h.call(t, http.MethodGet, streamPath+"?lastEventId=x1.1", "").want(http.StatusOK)
	want := []sent{
		{"x1.2", "TurnStarted", `{"id":2,"kind":"TurnStarted","time":"2026-07-01T03:00:00Z","version":"1.0.0"}`},
		{
			"x2.0", "OrchestrationContinuedAsNew",
			`{"id":3,"kind":"OrchestrationContinuedAsNew","time":"2026-07-01T03:00:00Z","executionId":"x2"}`,
		},
	}
	got := parse(t, a.Body.String())
	if len(got) != 6 || !slices.Equal(got[:2], want) {
		t.Errorf("sent %q", got)
	}
	wantEnd := []sent{
		{
			"x2.3", "OrchestrationCompleted",
			`{"id":3,"kind":"OrchestrationCompleted","time":"2026-07-01T03:00:01Z","output":"a\nb"}`,
		},
		{"x2.end", "end", `{"instanceId":"one","executionId":"x2","status":"Completed"}`},
	}
	if !slices.Equal(got[4:], wantEnd) {
		t.Errorf("ends with %q", got[4:])
	}
	if !a.Flushed || a.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("flushed %t, %v", a.Flushed, a.Header())
	}
}

// A stream that is cut after any event is resumed by the header or the parameter, without a gap and without repetition.
func TestStream_cutAfterAnyEvent_isResumed(t *testing.T) {
	t.Parallel()
	h := lived(t)
	whole := parse(t, h.call(t, http.MethodGet, streamPath+"?lastEventId=x1.1", "").Body.String())
	for i := range whole {
		for by, a := range map[string]callResponse{
			"header":    h.call(t, http.MethodGet, streamPath+"?lastEventId=x1.1", "", "Last-Event-ID", whole[i].id),
			"parameter": h.call(t, http.MethodGet, streamPath+"?lastEventId="+whole[i].id, ""),
		} {
			if i == len(whole)-1 { // after the end
				a.want(http.StatusNoContent)
				continue
			}
			if got := parse(t, a.want(http.StatusOK).Body.String()); !slices.Equal(got, whole[i+1:]) {
				t.Errorf("by %s after %s: %q", by, whole[i].id, got)
			}
		}
	}
	// the data of the stream is that of the history
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	body := h.call(t, http.MethodGet, inUse+"/history", "").Body.Bytes()
	if err := json.Unmarshal(body, &page); err != nil {
		t.Fatal(err)
	}
	for i, item := range page.Items {
		if got := whole[2+i].data; got != string(item) {
			t.Errorf("sent %s, the history has %s", got, item)
		}
	}
}

func TestStream_invalidLastEventID_isABadRequest(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	for _, id := range []string{
		"1", "x1", "x1.", ".1", "x1.00", "x1.-1", "x1.+1", "x1.01", "x1.1 ", "x1.1e3", "x1.9223372036854775808", "x1.2",
		"x1.9223372036854775807", "x1.END", strings.Repeat("x", 65) + ".1",
		strings.Repeat("9", 5000), "\x01.1", "\xff.1", "x1/1", "null", "..", "x1.\u0661",
	} {
		h.call(t, http.MethodGet, streamPath, "", "Last-Event-ID", id).wantProblem(http.StatusBadRequest,
			"invalid_request", "Last-Event-ID")
	}
	for query, field := range map[string]string{
		"lastEventId=x1": "lastEventId", "lastEventId=x1.2": "lastEventId",
		"lastEventId=x1.1&lastEventId=x1.1": "lastEventId",
		"lastEventId=%ff.1":                 "lastEventId", "wait=soon": "wait", "wait=-1s": "wait", "after=1": "after",
	} {
		h.call(t, http.MethodGet, streamPath+"?"+query, "").wantProblem(http.StatusBadRequest, "invalid_request", field)
	}
	h.start(t, "two")
	for _, id := range []string{"x9.1", "x2.1", "x1.end.1", "x1.1,x1.2"} {
		h.call(t, http.MethodGet, streamPath, "", "Last-Event-ID", id).wantProblem(http.StatusNotFound,
			"execution_not_found", "execution")
	}
}

// The stream names a continue-as-new by the next execution. Another name would give the next events wrong IDs.
func TestStream_idOfContinueAsNew_isABadRequest(t *testing.T) {
	t.Parallel()
	lived(t).call(t, http.MethodGet, streamPath, "", "Last-Event-ID", "x1.3").wantProblem(http.StatusBadRequest,
		"invalid_request", "Last-Event-ID")
}

// An external event can have the name stream.
func TestRaise_eventNamedStream_isSent(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.call(t, http.MethodPost, streamPath, "1").want(http.StatusAccepted)
	if all := h.Sent(); len(all) == 0 || all[len(all)-1].Name != "stream" {
		t.Errorf("sent %+v", all)
	}
	a := h.call(t, http.MethodDelete, streamPath, "")
	a.wantProblem(http.StatusMethodNotAllowed, "method_not_allowed", "")
	if got := a.Header().Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("allows %s", got)
	}
}

func TestStream_head_returnsHeaderOnly(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	a := h.call(t, http.MethodHead, streamPath, "").want(http.StatusOK)
	if a.Body.Len() > 0 || a.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s, %v", a.Body, a.Header())
	}
}

// timedWriter records the time of each write and of each flush, and can be slow.
type timedWriter struct {
	*httptest.ResponseRecorder

	from    time.Time
	at      []time.Duration
	flushed []time.Duration
	delay   time.Duration
	wrote   atomic.Int64
}

func newTimedWriter() *timedWriter {
	return &timedWriter{ResponseRecorder: httptest.NewRecorder(), from: time.Now()}
}

// Write implements http.ResponseWriter.
func (w *timedWriter) Write(b []byte) (int, error) {
	time.Sleep(w.delay)
	w.at = append(w.at, time.Since(w.from))
	w.wrote.Add(1)
	return w.ResponseRecorder.Write(b)
}

// Flush implements http.Flusher.
func (w *timedWriter) Flush() { w.flushed = append(w.flushed, time.Since(w.from)) }

func streamRequest(ctx context.Context, t *testing.T, query string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, streamPath+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStream_newEvents_areSentWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		const commits = 30
		for i := range commits {
			time.AfterFunc(time.Duration(i+1)*7*time.Second, func() {
				h.Append("one", history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0"})
			})
		}
		time.AfterFunc((commits+1)*7*time.Second, func() { h.Append("one", completed("1")) })
		w := newTimedWriter()
		h.api.ServeHTTP(w, streamRequest(t.Context(), t, ""))
		if all := parse(t, w.Body.String()); len(all) != commits+3 {
			t.Fatalf("%d events", len(all))
		}
		for i := range commits {
			if late := w.at[2+i] - time.Duration(i+1)*7*time.Second; late < 0 || late > time.Second {
				t.Errorf("event %d was sent %s after its commit", i, late)
			}
		}
	})
}

func TestStream_eventsThatAreReady_areFlushedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		turn := history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0"}
		for range 99 {
			h.Append("one", turn)
		}
		time.AfterFunc(10*time.Second, func() { h.Append("one", turn) })
		time.AfterFunc(20*time.Second, func() { h.Append("one", completed("1")) })
		w := newTimedWriter()
		w.delay = time.Millisecond // the next events are read during a write
		h.api.ServeHTTP(w, streamRequest(t.Context(), t, ""))
		if all := parse(t, w.Body.String()); len(all) != 103 {
			t.Errorf("%d events", len(all))
		}
		if len(w.flushed) != 3 {
			t.Fatalf("flushed at %v; want the stored events, the new one and the end", w.flushed)
		}
		for i, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second} {
			if late := w.flushed[i] - want; late < 0 || late > time.Second {
				t.Errorf("flush %d at %v; want %v", i, w.flushed[i], want)
			}
		}
	})
}

// A thousand commits at once arrive in order, with keep-alive comments before them.
func TestStream_burstAfterIdleTime_isSentInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		time.AfterFunc(10*time.Minute, func() {
			for range 1000 {
				h.Append("one", history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0"})
			}
			h.Append("one", completed("1"))
		})
		a := h.call(t, http.MethodGet, streamPath, "").want(http.StatusOK)
		all := parse(t, a.Body.String())
		if len(all) != 1003 {
			t.Fatalf("%d events", len(all))
		}
		for i := range 1002 {
			if want := fmt.Sprintf("x1.%d", i+1); all[i].id != want {
				t.Fatalf("%s instead of %s", all[i].id, want)
			}
		}
		if n := strings.Count(a.Body.String(), ": keep-alive\n\n"); n < 38 || n > 40 {
			t.Errorf("%d comments in ten minutes", n)
		}
	})
}

func TestStream_runningInstance_endsAfterTheTimeLimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ invocation, want time.Duration }{
		"outside Lambda": {0, 15 * time.Minute},
		"on Lambda":      {29 * time.Second, 28 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := setup(t)
			h.start(t, "one")
			ctx := t.Context()
			if tt.invocation > 0 {
				limited, cancel := context.WithTimeout(ctx, tt.invocation)
				defer cancel()
				ctx = limited
			}
			w := newTimedWriter()
			h.api.ServeHTTP(w, streamRequest(ctx, t, ""))
			if took := time.Since(w.from); took != tt.want {
				t.Errorf("%s: ended after %s", name, took)
			}
			if all := parse(t, w.Body.String()); len(all) != 1 || all[0].id != "x1.1" {
				t.Errorf("%s: sent %q", name, all)
			}
		})
	}
}

// The bubble of the test fails if a goroutine of the stream remains.
func TestStream_disconnectedCaller_ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		ctx, disconnect := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, disconnect)
		w := newTimedWriter()
		h.api.ServeHTTP(w, streamRequest(ctx, t, ""))
		if took := time.Since(w.from); took != time.Minute {
			t.Errorf("ended after %s", took)
		}
	})
}

// readAhead counts the events that a reader of the history has taken.
type readAhead struct {
	*fakeprovider.Provider

	taken atomic.Int64
}

// ReadHistory implements provider.Instances.
func (p *readAhead) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		for e, err := range p.Provider.ReadHistory(ctx, instanceID, executionID, after) {
			p.taken.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestStream_slowReader_holdsFewEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &readAhead{Provider: fakeprovider.New(time.Now, "hello")}
		h := &hub{Provider: p.Provider}
		h.api = httpapi.New(client.New(p), admin.New(p), httpapi.WithLogger(slogTo(&bytes.Buffer{})))
		h.start(t, "one")
		for range 200 {
			h.Append("one", history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0"})
		}
		h.Append("one", completed("1"))
		w := newTimedWriter()
		w.delay = time.Second
		check := time.NewTicker(10 * time.Second)
		defer check.Stop()
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.api.ServeHTTP(w, streamRequest(t.Context(), t, ""))
		}()
		for open := true; open; {
			select {
			case <-check.C:
				if ahead := p.taken.Load() - w.wrote.Load(); ahead > 11 {
					t.Errorf("%d events ahead of the reader", ahead)
				}
			case <-done:
				open = false
			}
		}
		if all := parse(t, w.Body.String()); len(all) != 203 {
			t.Errorf("%d events", len(all))
		}
	})
}

// unflushed is a writer of a gateway that sends responses as a whole.
type unflushed struct{ http.ResponseWriter }

func TestStream_bufferingGateway_isALongPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		poll := func(query string) (all []sent, took time.Duration) {
			from, w := time.Now(), httptest.NewRecorder()
			h.api.ServeHTTP(unflushed{w}, streamRequest(t.Context(), t, query))
			if w.Code != http.StatusOK {
				t.Errorf("%s: status %d: %s", query, w.Code, w.Body)
			}
			return parse(t, w.Body.String()), time.Since(from)
		}
		if all, took := poll(""); len(all) != 1 || took > time.Second {
			t.Errorf("existing events: %q after %s", all, took)
		}
		if all, took := poll("?lastEventId=x1.1"); len(all) > 0 || took != 20*time.Second {
			t.Errorf("nothing new: %q after %s", all, took)
		}
		if all, took := poll("?lastEventId=x1.1&wait=5s"); len(all) > 0 || took != 5*time.Second {
			t.Errorf("nothing new for 5 s: %q after %s", all, took)
		}
		if all, took := poll("?lastEventId=x1.1&wait=0s"); len(all) > 0 || took > time.Second {
			t.Errorf("nothing new: %q after %s", all, took)
		}
		time.AfterFunc(10*time.Second, func() {
			h.Append("one", history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0"})
		})
		all, took := poll("?lastEventId=x1.1")
		if len(all) != 1 || all[0].id != "x1.2" || took < 10*time.Second || took > 12*time.Second {
			t.Errorf("a new event: %q after %s", all, took)
		}
		h.Append("one", completed("1"))
		if all, _ := poll("?lastEventId=x1.2"); len(all) != 2 || all[1].name != "end" {
			t.Errorf("the end: %q", all)
		}
		// a server that streams polls too, if the caller wants it
		a := h.call(t, http.MethodGet, streamPath+"?wait=1s&lastEventId=x1.2", "").want(http.StatusOK)
		if all := parse(t, a.Body.String()); len(all) != 2 {
			t.Errorf("with wait: %q", all)
		}
	})
}

// A long poll does not hold events back while further ones follow.
func TestStream_longPollOfBusyInstance_hasEventsWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		const commits, interval = 400, 30 * time.Millisecond
		from := time.Now()
		for i := range commits {
			time.AfterFunc(time.Duration(i+1)*interval, func() {
				h.Append("one", history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0"})
			})
		}
		for at, n := "x1.1", 0; n < commits; {
			a := h.call(t, http.MethodGet, streamPath+"?wait=20s&lastEventId="+at, "").want(http.StatusOK)
			for _, e := range parse(t, a.Body.String()) {
				n, at = n+1, e.id
				if late := time.Since(from) - time.Duration(n)*interval; late < 0 || late > time.Second {
					t.Fatalf("event %s arrived %s after its commit", e.id, late)
				}
			}
		}
	})
}

// A long poll has the events that fit a response of Lambda. A stream has no limit.
func TestStream_largeEvents_fitTheResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		for _, size := range []int{3 << 20, 2 << 20, 2 << 20, 7 << 20} {
			h.Append("one", history.Event{
				Kind: history.SideEffectRecorded, Time: began,
				Value: history.NewInlinePayload([]byte(`"` + strings.Repeat("x", size) + `"`)),
			})
		}
		h.Append("one", completed("1"))
		at := "x1.1"
		for _, want := range []int{2, 1} {
			a := h.call(t, http.MethodGet, streamPath+"?wait=1s&lastEventId="+at, "").want(http.StatusOK)
			all := parse(t, a.Body.String())
			if len(all) != want || a.Body.Len() > 6<<20 {
				t.Fatalf("%d events, %d bytes", len(all), a.Body.Len())
			}
			at = all[len(all)-1].id
		}
		h.call(t, http.MethodGet, streamPath+"?wait=1s&lastEventId="+at, "").wantProblem(
			http.StatusUnprocessableEntity, "answer_too_large", "")
		a := h.call(t, http.MethodGet, streamPath+"?lastEventId="+at, "").want(http.StatusOK)
		if all := parse(t, a.Body.String()); len(all) != 3 || len(all[0].data) < 7<<20 {
			t.Errorf("%d events", len(all))
		}
	})
}

// An error after the header is the last event of the stream.
func TestStream_purgedOrDamagedInstance_sendsProblem(t *testing.T) {
	t.Parallel()
	for code, fail := range map[string]func(*hub) error{
		"execution_not_found": func(h *hub) error { return h.DeleteInstance(context.Background(), "one", true) },
		"corrupt_history": func(h *hub) error {
			h.FailWith(fmt.Errorf("h#3: %w", provider.ErrCorrupt))
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := setup(t)
			h.start(t, "one")
			time.AfterFunc(time.Minute, func() {
				if err := fail(h); err != nil {
					t.Error(err)
				}
			})
			a := h.call(t, http.MethodGet, streamPath, "").want(http.StatusOK)
			all := parse(t, a.Body.String())
			if len(all) != 2 || all[1].name != "problem" || all[1].id != "" ||
				!strings.Contains(all[1].data, `"code":"`+code+`"`) || strings.Contains(all[1].data, "h#3") {
				t.Errorf("%s: sent %q", code, all)
			}
		})
	}
}

// A throttled hub delays events, and the comments keep the connection open.
func TestStream_throttledHub_continues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		throttled := &provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: errors.New("throttled")}
		time.AfterFunc(time.Minute, func() { h.FailWith(throttled) })
		time.AfterFunc(5*time.Minute, func() {
			h.FailWith(nil)
			h.Append("one", completed("1"))
		})
		a := h.call(t, http.MethodGet, streamPath, "").want(http.StatusOK)
		if all := parse(t, a.Body.String()); len(all) != 3 || all[2].name != "end" {
			t.Errorf("sent %q", all)
		}
	})
}

// streamResponses returns each response of the route.
func streamResponses(t *testing.T, failures ...error) (all []callResponse) {
	t.Helper()
	h := lived(t)
	for _, failure := range append(failures, nil) {
		h.FailWith(failure)
		all = append(all, h.call(t, http.MethodGet, streamPath, ""))
	}
	h.start(t, "two")
	h.Append("two", history.Event{
		Kind: history.SideEffectRecorded, Time: began,
		Value: history.NewInlinePayload([]byte(`"` + strings.Repeat("x", 6<<20) + `"`)),
	})
	for _, target := range []string{
		streamPath + "?lastEventId=x2.end", streamPath + "?lastEventId=1", streamPath + "?lastEventId=x9.1",
		"/v1/instances/missing/events/stream", "/v1/instances/two/events/stream?wait=1s&lastEventId=x3.1",
	} {
		all = append(all, h.call(t, http.MethodGet, target, ""))
	}
	return all
}
