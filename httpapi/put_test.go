package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

const putHello = `{"orchestration":"hello"}`

// putResponses returns each response that the document describes for a put.
func putResponses(t *testing.T, large string, failures ...error) (all []callResponse) {
	t.Helper()
	for _, failure := range failures {
		all = append(all, request{http.MethodPut, inUse, putHello, nil, failure}.of(t, newRunningHub(t)))
	}
	for target, bodies := range map[string][]string{
		"/v1/instances/new": {
			putHello, `{`, `{}`, `{"orchestration":"missing"}`, `{"orchestration":"hello","input":` + large + `}`,
		},
		inUse: {putHello},
		over:  {`{"orchestration":"hello","event":"e"}`},
	} {
		for _, body := range bodies {
			all = append(all, newRunningHub(t).call(t, http.MethodPut, target, body))
		}
	}
	all = append(all, newRunningHub(t).call(t, http.MethodPut, inUse, putHello, "Content-Type", "text/plain"))
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		put := func() { all = append(all, h.call(t, http.MethodPut, inUse, putUpdate)) }
		put() // the update is still pending
		for _, end := range updateEnds {
			updatesEnd(h, end.callResponse)
			put()
		}
		updatesEnd(h, provider.UpdateResult{Outcome: provider.UpdateCompleted, Result: history.Payload("1")})
		put()
	})
	return all
}

const putUpdate = `{"orchestration":"hello","update":"address","data":{"n":1}}`

func TestPut_replaceEndedInstance_startsNewInstance(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	a := h.call(t, http.MethodPut, over,
		`{"orchestration":"hello","input":{"n":1},"tags":{"k":"v"},"ifExists":"replace"}`).want(http.StatusAccepted)
	if got := a.Header().Get("Location"); got != over {
		t.Errorf("Location %s", got)
	}
	if body := h.call(t, http.MethodGet, over, "").want(http.StatusOK).Body.String(); !strings.Contains(body,
		`"status":"Pending"`) || !strings.Contains(body, `"tags":{"k":"v"}`) {
		t.Errorf("it is %s", body)
	}
	if sent := h.Sent(); len(sent) > 0 {
		t.Errorf("the ended instance received %+v", sent)
	}
}

// A put that replaces a running instance sends a terminate message. This hub does not handle the message, so the put
// fails when its context ends.
func TestPut_replaceRunningInstance_terminatesInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := httptest.NewRecorder()
		body := strings.NewReader(`{"orchestration":"hello","ifExists":"replace"}`)
		r := httptest.NewRequestWithContext(ctx, http.MethodPut, inUse, body)
		r.Header.Set("Content-Type", "application/json")
		h.api.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		sent := h.Sent()
		if len(sent) != 1 || sent[0].Kind != provider.MessageTerminate || sent[0].InstanceID != "one" ||
			sent[0].Text != client.ReplacedMessage {
			t.Errorf("sent %+v", sent)
		}
	})
}

func TestPut_idInUseWithoutReplace_isAConflict(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodPut, inUse, putHello).wantProblem(http.StatusConflict, "instance_id_in_use", "instanceId")
	h.call(t, http.MethodPut, inUse, `{"orchestration":"hello","ifExists":"ignore"}`).want(http.StatusAccepted)
	h.call(t, http.MethodPut, inUse, `{"orchestration":"hello","ifExists":"keep"}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "ifExists")
	h.call(t, http.MethodPut, inUse, `{"orchestration":"hello","instanceId":"two"}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "instanceId")
	h.call(t, http.MethodPut, "/v1/instances/new", putHello).want(http.StatusAccepted)
	if sent := h.Sent(); len(sent) > 0 {
		t.Errorf("sent %+v", sent)
	}
}

// A caller with permission to start an instance may lack permission to terminate and purge. A start therefore replaces
// no instance.
func TestStart_ifExistsReplace_isRejected(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodPost, hello, `{"instanceId":"over","ifExists":"replace"}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "ifExists")
	h.call(t, http.MethodPost, hello, `{"instanceId":"over","ifExists":"ignore"}`).want(http.StatusAccepted)
	h.call(t, http.MethodPost, hello, `{"ifExists":"ignore"}`).wantProblem(http.StatusBadRequest, "invalid_request",
		"ifExists")
	if body := h.call(t, http.MethodGet, over, "").Body.String(); !strings.Contains(body, `"status":"Failed"`) {
		t.Errorf("it is %s", body)
	}
}

func TestPut_repeatedKeyAfterPurge_isAConflict(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	put := func() callResponse {
		return h.call(t, http.MethodPut, "/v1/instances/new", `{"orchestration":"hello","ifExists":"replace"}`,
			"Idempotency-Key", "k")
	}
	put().want(http.StatusAccepted)
	put().want(http.StatusAccepted)
	h.call(t, http.MethodDelete, "/v1/instances/new?force=true", "").want(http.StatusNoContent)
	put().wantProblem(http.StatusConflict, "instance_id_in_use", "Idempotency-Key")
}

// The response to a put with an update contains the result of the update, the links, and whether the put started the
// instance.
func TestPut_withUpdate_returnsResultAndLinks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		h.UpdateWith(func(m provider.Message) *provider.UpdateResult {
			return &provider.UpdateResult{
				Outcome: provider.UpdateCompleted, Result: history.Payload(`{"with":` + string(m.Data) + `}`),
			}
		})
		links := func(id string) string {
			at := "/v1/instances/" + id
			return `"links":{"status":"` + at + `","result":"` + at + `/result","history":"` + at +
				`/history","executions":"` + at + `/executions"}}`
		}
		put := func(id, more string) callResponse {
			return h.call(t, http.MethodPut, "/v1/instances/"+id,
				`{"orchestration":"hello","input":5,"update":"address"`+more+`}`, "Idempotency-Key", "k")
		}
		for _, c := range []struct{ id, data, with, started string }{
			{"one", "1", "1", "false"}, {"new", "2", "2", "true"}, {"new", "3", "2", "true"},
		} {
			a := put(c.id, `,"data":`+c.data).want(http.StatusOK)
			a.wantBody(`{"instanceId":"` + c.id + `","update":"address","updateId":"k","result":{"with":` + c.with +
				`},"started":` + c.started + `,` + links(c.id))
			if got := a.Header().Get("Location"); got != "/v1/instances/"+c.id {
				t.Errorf("Location %s", got)
			}
		}
		if log := h.log.String(); !strings.Contains(log, "operation=put instance=new") ||
			strings.Contains(log, "operation=update") {
			t.Errorf("the log is %s", log)
		}
		put("over", "").wantProblem(http.StatusGone, "instance_over", "instanceId")
		put("over", `,"ifExists":"replace"`).want(http.StatusOK)

		h.UpdateWith(nil)
		h.call(t, http.MethodPut, inUse, putUpdate, "Idempotency-Key", "slow").want(http.StatusAccepted).
			wantBody(`{"instanceId":"one","update":"address","updateId":"slow","status":"Running","started":false,` +
				links("one"))
		updatesEnd(h, rejectedFor(history.RejectedInput))
		h.call(t, http.MethodPut, inUse, putUpdate).wantProblem(http.StatusBadRequest, "update_bad_input", "data")
		large := `{"orchestration":"hello","update":"q","data":"` + strings.Repeat("x", 201<<10) + `"}`
		h.call(t, http.MethodPut, inUse, large).wantProblem(http.StatusRequestEntityTooLarge, "payload_too_large",
			"data")
		sent := len(h.Sent())
		for body, field := range map[string]string{
			`"update":""`: "update", `"update":"a","event":"b"`: "update", `"update":7`: "update", `"data":1`: "data",
		} {
			h.call(t, http.MethodPut, inUse, `{"orchestration":"hello",`+body+`}`).wantProblem(http.StatusBadRequest,
				"invalid_request", field)
		}
		if len(h.Sent()) > sent {
			t.Errorf("sent %+v", h.Sent()[sent:])
		}
	})
}

func TestPut_withEvent_startsIfMissingAndRaisesEvent(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	put := func(target string, ifExists string) callResponse {
		return h.call(t, http.MethodPut, target, `{"orchestration":"hello","event":"paid","data":{"n":1}`+ifExists+`}`,
			"Idempotency-Key", "k")
	}
	if body := put(inUse, "").want(http.StatusAccepted).Body.String(); !strings.Contains(body, `"started":false`) {
		t.Errorf("%s", body)
	}
	for range 2 {
		if body := put("/v1/instances/new", "").want(http.StatusAccepted).Body.String(); !strings.Contains(body,
			`"started":true`) {
			t.Errorf("%s", body)
		}
	}
	put(over, "").wantProblem(http.StatusGone, "instance_over", "instanceId")
	put(over, `,"ifExists":"replace"`).want(http.StatusAccepted)
	var got []string
	for _, m := range h.Sent() {
		got = append(got, m.InstanceID+" "+m.Name+" "+m.EventID+" "+string(m.Data))
	}
	want := []string{`one paid k {"n":1}`, `new paid k {"n":1}`, `new paid k {"n":1}`, `over paid k {"n":1}`}
	if !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	h.call(t, http.MethodPut, inUse, `{"orchestration":"hello","data":1}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "data")
	h.call(t, http.MethodPut, inUse, `{"orchestration":"hello","event":""}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "event")
	if body := h.call(t, http.MethodPut, inUse,
		`{"orchestration":"hello","event":"e"}`).want(http.StatusAccepted).Body.String(); !strings.Contains(body,
		`"started":false`) {
		t.Errorf("without data: %s", body)
	}
}
