package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

const anUpdate = "/v1/instances/one/update"

// updatesEnd makes all updates of a hub return the result end.
func updatesEnd(h *hub, end provider.UpdateResult) {
	h.UpdateWith(func(provider.Message) *provider.UpdateResult { return &end })
}

func TestUpdate_handlerReturns_resultIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		h.UpdateWith(func(m provider.Message) *provider.UpdateResult {
			return &provider.UpdateResult{
				Outcome: provider.UpdateCompleted, Result: history.Payload(`{"with":` + string(m.Data) + `}`),
			}
		})
		h.call(t, http.MethodPost, anUpdate,
			`{"update":"address"}`).want(http.StatusOK).wantBody(
			`{"instanceId":"one","update":"address","result":{"with":null}}`,
		)
		const first = `{"instanceId":"one","update":"address","updateId":"u-1","result":{"with":{"n":[1]}}}`
		h.call(t, http.MethodPost, anUpdate, `{"update":"address","input":{"n":[1]}}`, "Idempotency-Key",
			"u-1").want(http.StatusOK).wantBody(first)
		h.call(t, http.MethodPost, anUpdate, `{"update":"address","input":2}`, "Idempotency-Key",
			"u-1").want(http.StatusOK).wantBody(first)
		if m := h.Sent()[len(h.Sent())-1]; m.Kind != provider.MessageUpdate || m.EventID != "u-1" ||
			string(m.Data) != `{"n":[1]}` || m.StartID == "" {
			t.Errorf("sent %+v", m)
		}
		for body, field := range map[string]string{
			``: "body", `{}`: "update", `{"update":""}`: "update", `{"update":7}`: "update",
			`{"update":"a\u0000"}`: "update", `{"update":"a","more":1}`: "more",
			`{"update":"` + strings.Repeat("x", 257) + `"}`: "update",
		} {
			h.call(t, http.MethodPost, anUpdate, body).wantProblem(http.StatusBadRequest, "invalid_request", field)
		}
		large := `{"update":"q","input":"` + strings.Repeat("x", perdure.MaxPayloadBytes) + `"}`
		h.call(t, http.MethodPost, anUpdate, large).wantProblem(http.StatusRequestEntityTooLarge, "payload_too_large",
			"input")
		h.call(t, http.MethodPost, "/v1/instances/missing/update", `{"update":"q"}`).wantProblem(http.StatusNotFound,
			"instance_not_found", "instanceId")
	})
}

// If an update takes too long, the response is a 202 with Retry-After and the update ID, so that the caller can wait
// again.
func TestUpdate_slowHandler_isAcceptedAsPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		a := h.call(t, http.MethodPost, anUpdate, `{"update":"address"}`, "Idempotency-Key",
			"u-1").want(http.StatusAccepted)
		a.wantBody(`{"instanceId":"one","update":"address","updateId":"u-1","status":"Running"}`)
		if a.Header().Get("Retry-After") == "" {
			t.Error("the response has no Retry-After")
		}
	})
}

func TestUpdate_callerLeft_returnsNoPendingResponse(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	ctx, leave := context.WithCancel(t.Context())
	h.UpdateWith(func(provider.Message) *provider.UpdateResult {
		leave()
		return nil
	})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, anUpdate, strings.NewReader(`{"update":"address"}`))
	r.Header.Set("Content-Type", "application/json")
	a := callResponse{ResponseRecorder: httptest.NewRecorder(), t: t, method: http.MethodPost}
	h.api.ServeHTTP(a, r)
	a.wantProblem(http.StatusServiceUnavailable, "unavailable", "")
}

// updateEnds maps the problem code of each failure of an update to the result, status and field.
var updateEnds = map[string]struct {
	callResponse provider.UpdateResult
	status       int
	field        string
}{
	"unknown_update":   {rejectedFor(history.RejectedNoHandler), http.StatusNotFound, "update"},
	"update_rejected":  {rejectedFor(history.RejectedByValidator), http.StatusUnprocessableEntity, "update"},
	"update_misused":   {rejectedFor(history.RejectedNotReadOnly), http.StatusUnprocessableEntity, "update"},
	"update_bad_input": {rejectedFor(history.RejectedInput), http.StatusBadRequest, "input"},
	"update_too_many":  {rejectedFor(history.RejectedLimit), http.StatusConflict, "instanceId"},
	"update_failed": {
		provider.UpdateResult{
			Outcome: provider.UpdateCompleted, Error: &history.Failure{Type: "T", Message: "why it is so"},
		}, http.StatusUnprocessableEntity, "update",
	},
	"update_left": {
		provider.UpdateResult{Outcome: provider.UpdateAborted, Reason: "why it is so"},
		http.StatusConflict,
		"instanceId",
	},
	"update_forgotten": {
		provider.UpdateResult{Outcome: provider.UpdateResultExpired, Reason: "why it is so"},
		http.StatusGone,
		"Idempotency-Key",
	},
}

func rejectedFor(reason string) provider.UpdateResult {
	return provider.UpdateResult{
		Outcome: provider.UpdateRejected, Reason: reason, Error: &history.Failure{Type: "T", Message: "why it is so"},
	}
}

func TestUpdate_eachFailure_hasItsOwnCode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		for code, want := range updateEnds {
			updatesEnd(h, want.callResponse)
			a := h.call(t, http.MethodPost, anUpdate, `{"update":"q"}`)
			a.wantProblem(want.status, code, want.field)
			if !strings.Contains(a.Body.String(), "why it is so") &&
				want.callResponse.Outcome != provider.UpdateResultExpired {
				t.Errorf("%s: %s", code, a.Body)
			}
		}
	})
}

// updateResponses returns each response that the document describes for an update.
func updateResponses(t *testing.T, large string, down, refused error) (all []callResponse) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		ask := func(body string, header ...string) {
			all = append(all, h.call(t, http.MethodPost, anUpdate, body, header...))
		}
		ask(`{"update":"q"}`) // the update is still pending
		for _, end := range updateEnds {
			updatesEnd(h, end.callResponse)
			ask(`{"update":"q"}`)
		}
		updatesEnd(h, provider.UpdateResult{Outcome: provider.UpdateCompleted, Result: history.Payload("1")})
		ask(`{"update":"q"}`)
		ask(`{"update":"q","input":` + large + `}`)
		ask(`{"update":"q"}`, "Content-Type", "text/plain")
		for _, id := range []string{"missing", "over"} {
			all = append(all, h.call(t, http.MethodPost, "/v1/instances/"+id+"/update", `{"update":"q"}`))
		}
		for _, err := range []error{down, refused} {
			h.FailWith(err)
			ask(`{"update":"q"}`)
		}
	})
	return all
}

// If the API cannot decode the result, or the result is too large for a response, the response has the size of the
// result instead.
func TestUpdate_encodedOrLargeResult_isReplacedByItsSize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		updatesEnd(h, provider.UpdateResult{
			Outcome: provider.UpdateCompleted,
			Result:  history.EncodedPayload{Codec: "orders", Data: []byte("x"), Bytes: 7}.Payload(),
		})
		h.call(t, http.MethodPost, anUpdate, `{"update":"address"}`, "Idempotency-Key", "u-1").want(http.StatusOK).
			wantBody(
				`{"instanceId":"one","update":"address","updateId":"u-1","resultSealed":{"codec":"orders","bytes":7}}`,
			)
		updatesEnd(h, provider.UpdateResult{
			Outcome: provider.UpdateCompleted, Result: history.Payload(`"` + strings.Repeat("x", 2<<20) + `"`),
		})
		h.call(t, http.MethodPost, anUpdate, `{"update":"address"}`, "Idempotency-Key", "u-2").want(http.StatusOK).
			wantBody(`{"instanceId":"one","update":"address","updateId":"u-2","resultSealed":{"bytes":2097154}}`)
	})
}
