package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

const (
	deadInbox   = "/v1/dead-letters/inbox"
	deadDefault = "/v1/dead-letters/default"
	eventToI    = `{"v":1,"kind":"eventRaised","instanceId":"i","name":"e","data":5}`
)

// deadLetterHub is an API over a hub with dead letters. Each read of the clock advances the clock by tick.
type deadLetterHub struct {
	*hub
	*fakeprovider.Letters

	tick atomic.Int64
}

func withLetters(t *testing.T) *deadLetterHub {
	t.Helper()
	h := &deadLetterHub{hub: setup(t)}
	var passed atomic.Int64
	clock := func() time.Time { return began.Add(time.Duration(passed.Add(h.tick.Load()))) }
	h.Letters = fakeprovider.NewLetters(func() time.Time {
		return began.Add(time.Duration(passed.Load()))
	}, "default", provider.QueueInbox, provider.QueueTimers)
	p := struct {
		*fakeprovider.Provider
		*fakeprovider.Letters
	}{h.Provider, h.Letters}
	c, a := client.New(p, client.WithClock(clock)), admin.New(p, admin.WithClock(clock))
	h.api = httpapi.New(c, a, httpapi.WithLogger(slogTo(h.log)), httpapi.WithClock(clock))
	return h
}

func TestDeadLetters_eachRoute_returnsItsResult(t *testing.T) {
	t.Parallel()
	h := withLetters(t)
	corrupt := h.Bury(provider.QueueInbox, "corrupt: item x#1", eventToI)
	h.Bury(provider.QueueInbox, "poison: 13 deaths", `{"v":1,"kind":"cancel","instanceId":"j"}`)
	h.Bury("default", "", "no JSON")

	h.call(t, http.MethodGet, "/v1/dead-letters",
		"").want(http.StatusOK).wantBody(
		`{"queues":[{"queue":"default","visible":1,"hidden":0},{"queue":"inbox","visible":2,"hidden":0},{"queue":"timers","visible":0,"hidden":0}]}`,
	)
	h.call(t, http.MethodGet, deadInbox+"?reason=corrupt:", "").want(http.StatusOK).wantBody(
		`{"items":[{"queue":"inbox","id":"inbox-1","reason":"corrupt: item x#1","sentAt":"2026-07-01T03:00:00Z","deliveries":1,"kind":"eventRaised","instanceId":"i","name":"e"}],"complete":true,"readAt":"2026-07-01T03:00:00Z"}`)
	h.call(t, http.MethodGet, deadInbox+"?instance=j&limit=1", "").want(http.StatusOK).wantBody(
		`{"items":[{"queue":"inbox","id":"inbox-2","reason":"poison: 13 deaths","sentAt":"2026-07-01T03:00:00Z","deliveries":2,"kind":"cancel","instanceId":"j"}],"complete":false,"readAt":"2026-07-01T03:00:00Z"}`)
	if a := h.call(t, http.MethodGet, deadInbox+"/"+corrupt, "").want(http.StatusOK); !strings.Contains(a.Body.String(),
		`"body":`+eventToI) {
		t.Errorf("the dead letter is %s", a.Body)
	}
	if a := h.call(t, http.MethodGet, deadDefault+"/default-3",
		"").want(http.StatusOK); !strings.Contains(a.Body.String(), `"body":"no JSON"`) {
		t.Errorf("the dead letter is %s", a.Body)
	}

	redrive := func(body, want string) {
		t.Helper()
		h.call(t, http.MethodPost, deadInbox+"/redrive", body).want(http.StatusOK).wantBody(want)
	}
	redrive(`{"all":true,"sentBefore":"2026-07-01T02:59:59Z"}`,
		`{"done":0,"kept":0,"later":2,"failed":0,"sent":[],"complete":true,"errors":[]}`)
	redrive(`{"all":true}`, `{"done":1,"kept":1,"later":0,"failed":0,"sent":[],"complete":true,"errors":[]}`)
	redrive(`{"reason":"corrupt:"}`, `{"done":0,"kept":0,"later":0,"failed":0,"sent":[],"complete":true,"errors":[]}`)
	redrive(`{"ids":["inbox-2"],"force":true}`,
		`{"done":1,"kept":0,"later":0,"failed":0,"sent":[],"complete":true,"errors":[]}`)
	h.call(t, http.MethodPost, deadDefault+"/drop",
		`{"all":true}`).want(http.StatusOK).wantBody(
		`{"done":1,"kept":0,"later":0,"failed":0,"sent":[],"complete":true,"errors":[]}`,
	)
	if sent := h.Redriven(); len(sent) != 2 || sent[0].Record.ID != corrupt {
		t.Errorf("redriven are %+v", sent)
	}
	if log := h.log.String(); !strings.Contains(log,
		`event=operation.requested operation="redrive dead letters" queue=inbox requestedBy=client`) ||
		!strings.Contains(log, `operation="drop dead letters" queue=default`) {
		t.Errorf("logged is %s", log)
	}
}

// A request with a missing, misspelled or additional field affects no dead letters. It does not select all of them.
func TestDeadLetters_invalidRequest_changesNothing(t *testing.T) {
	t.Parallel()
	h := withLetters(t)
	h.Bury(provider.QueueInbox, "corrupt: item x#1", eventToI)
	ids := `"` + strings.Repeat(`x","`, 1000) + `x"`
	for body, field := range map[string]string{
		"": "body", "{}": "all", `{"all":false}`: "all", `{"ids":[]}`: "all", `{"reason":""}`: "all",
		`{"all":true,"reason":"corrupt:"}`: "all", `{"ids":["inbox-1"],"all":true}`: "ids",
		`{"ids":["inbox-1"],"instanceId":"i"}`: "ids", `{"ids":[` + ids + `]}`: "ids",
		`{"all":true,"sentbefore":"2026-07-01T03:00:00Z"}`:      "sentbefore",
		`{"all":true,"sentBefore":"9999-12-31T23:59:59-01:00"}`: "sentBefore",
	} {
		for _, verb := range []string{"/redrive", "/drop"} {
			h.call(t, http.MethodPost, deadInbox+verb, body).wantProblem(http.StatusBadRequest, "invalid_request",
				field)
		}
	}
	h.call(t, http.MethodPost, deadInbox+"/drop", `{"all":true,"force":true}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "force")
	h.call(t, http.MethodPost, "/v1/dead-letters/nowhere/redrive", `{"all":true}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "queue")
	h.call(t, http.MethodGet, "/v1/dead-letters/nowhere", "").wantProblem(http.StatusBadRequest, "invalid_request",
		"queue")
	h.call(t, http.MethodGet, deadInbox+"?limit=1001", "").wantProblem(http.StatusBadRequest, "invalid_request",
		"limit")
	h.call(t, http.MethodGet, deadInbox+"/missing", "").wantProblem(http.StatusNotFound, "dead_letter_not_found",
		"deadLetterId")
	if visible, hidden, _ := h.CountDeadLetters(t.Context(), provider.QueueInbox); visible != 1 || hidden != 0 ||
		len(h.Redriven()) > 0 {
		t.Errorf("%d are visible, %d hidden, %d redriven", visible, hidden, len(h.Redriven()))
	}
}

// An API without access to dead letters returns 404, because a server error would raise an alarm.
func TestDeadLetters_hubWithoutAccess_isNotFound(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, target := range []string{"/v1/dead-letters", deadInbox, deadInbox + "/x"} {
		h.call(t, http.MethodGet, target, "").wantProblem(http.StatusNotFound, "no_dead_letters", "")
	}
	h.call(t, http.MethodPost, deadInbox+"/redrive", `{"all":true}`).wantProblem(http.StatusNotFound, "no_dead_letters",
		"")
	p := struct {
		*fakeprovider.Provider
		*fakeprovider.Letters
	}{h.Provider, fakeprovider.NewLetters(time.Now)}
	h.api = httpapi.New(client.New(p), admin.New(p), httpapi.WithLogger(slogTo(h.log)))
	h.call(t, http.MethodGet, "/v1/dead-letters", "").wantProblem(http.StatusNotFound, "no_dead_letters", "")
}

// A redrive stops before the timeout of a gateway and reports that it is incomplete. Repeated calls redrive all dead
// letters.
func TestRedriveDeadLetters_manyLetters_isBoundedInTime(t *testing.T) {
	t.Parallel()
	h := withLetters(t)
	const letters = 400
	for n := range letters {
		h.Bury("default", "corrupt: for now", fmt.Sprintf(`{"activityId":%d}`, n))
	}
	h.tick.Store(int64(400 * time.Millisecond))
	calls, total := 0, int64(0)
	for complete := false; !complete && calls < 100; calls++ {
		var done httpapi.DeadLetterResult
		a := h.call(t, http.MethodPost, deadDefault+"/redrive",
			`{"all":true,"sentBefore":"2026-07-01T03:00:00Z"}`).want(http.StatusOK)
		if err := json.Unmarshal(a.Body.Bytes(), &done); err != nil {
			t.Fatal(err)
		}
		total, complete = total+done.Done, done.Complete
	}
	if calls < 2 || total != letters || len(h.Redriven()) != letters {
		t.Errorf("%d calls have redriven %d, and %d were sent, of %d", calls, total, len(h.Redriven()), letters)
	}
}

// If single dead letters fail, the result contains their errors. If all calls of the hub fail, the response is a
// problem.
func TestRedriveDeadLetters_redriveFails_errorIsReported(t *testing.T) {
	t.Parallel()
	h := withLetters(t)
	h.Bury("default", "corrupt: for now", "{}")
	h.FailLetters(errors.New("AccessDenied: secret"))
	h.call(t, http.MethodPost, deadDefault+"/redrive", `{"all":true}`).wantProblem(http.StatusInternalServerError,
		"internal", "")
	h.FailLetters(nil)
	p := struct {
		*fakeprovider.Provider
		*refusing
	}{h.Provider, &refusing{h.Letters}}
	h.api = httpapi.New(client.New(p), admin.New(p), httpapi.WithLogger(slogTo(h.log)))
	h.call(t, http.MethodPost, deadDefault+"/redrive", `{"all":true}`).want(http.StatusOK).wantBody(
		`{"done":0,"kept":0,"later":0,"failed":1,"sent":[],"complete":true,"errors":["hub is of another hub"]}`)
}

// refusing is a hub whose dead letters belong to another hub.
type refusing struct{ *fakeprovider.Letters }

func (*refusing) RedriveDeadLetters(context.Context, string, ...provider.DeadLetter) error {
	return &provider.FieldError{Field: "hub", Problem: "is of another hub"}
}

// A list of dead letters with large fields fits into a response. For a single dead letter that does not fit, the
// response is a problem.
func TestDeadLetters_largeLetters_fitLambdaLimit(t *testing.T) {
	t.Parallel()
	h := withLetters(t)
	large, err := json.Marshal(map[string]string{
		"instanceId": strings.Repeat("\u0001", 2000), "name": strings.Repeat("ü", 2000),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 700 {
		h.Bury("default", strings.Repeat("\"", 2000), string(large))
	}
	a := h.call(t, http.MethodGet, deadDefault+"?limit=1000", "").want(http.StatusOK)
	var list httpapi.DeadLetters
	if err := json.Unmarshal(a.Body.Bytes(), &list); err != nil || len(list.Items) == 0 || list.Complete ||
		inLambda(t, a.Body.Bytes()) > lambdaLimit {
		t.Errorf("%d items in %d bytes, complete %t, %v", len(list.Items), inLambda(t, a.Body.Bytes()), list.Complete,
			err)
	}
	id := h.Bury(provider.QueueInbox, "later: field", strings.Repeat("\u0001", 1<<20))
	h.call(t, http.MethodGet, deadInbox+"/"+id, "").wantProblem(http.StatusUnprocessableEntity, "answer_too_large",
		"body")
}
