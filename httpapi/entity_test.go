package httpapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

const (
	aKey  = "/v1/entities/sum/k"
	aCall = aKey + "/add"
)

func TestCallEntity_newOrExistingEntity_returnsResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		h.UpdateWith(func(m provider.Message) *provider.UpdateResult {
			return &provider.UpdateResult{
				Outcome: provider.UpdateCompleted, Result: history.Payload(`{"with":` + string(m.Data) + `}`),
			}
		})
		h.call(t, http.MethodPost, aCall,
			`{"input":7}`).want(http.StatusOK).wantBody(`{"instanceId":"@sum@k","update":"add","result":{"with":7}}`)
		in, err := h.ReadInstance(t.Context(), "@sum@k")
		if err != nil || in.Name != "@sum" {
			t.Errorf("made %+v, %v", in, err)
		}
		const first = `{"instanceId":"@sum@k","update":"add","updateId":"u-1","result":{"with":8}}`
		h.call(t, http.MethodPost, aCall, `{"input":8}`, "Idempotency-Key", "u-1").want(http.StatusOK).wantBody(first)
		h.call(t, http.MethodPost, aCall, `{"input":9}`, "Idempotency-Key", "u-1").want(http.StatusOK).wantBody(first)
		if again, err := h.ReadInstance(t.Context(), "@sum@k"); err != nil || again.StartID != in.StartID {
			t.Errorf("the entity was created again: %+v, %v", again, err)
		}
		h.call(t, http.MethodPost, aCall, `{"inputs":8}`).wantProblem(http.StatusBadRequest, "invalid_request",
			"inputs")
	})
}

func TestGetEntity_withOrWithoutState_returnsStateOrNotFound(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.SetQueryFunc(func(q provider.QueryRequest) (json.RawMessage, error) {
		switch {
		case q.Name != perdure.EntityStateQuery:
			return nil, errors.New("another query: " + q.Name)
		case q.InstanceID == "@sum@empty":
			return json.RawMessage("null"), nil
		default:
			return json.RawMessage(`{"total":7}`), nil
		}
	})
	h.call(t, http.MethodGet, aKey,
		"").want(http.StatusOK).wantBody(`{"entity":"sum","key":"k","instanceId":"@sum@k","state":{"total":7}}`)
	h.call(t, http.MethodGet, "/v1/entities/sum/empty", "").wantProblem(http.StatusNotFound, "instance_not_found",
		"key")
	h.call(t, http.MethodPost, "/v1/entities/missing/k/add", `{}`).wantProblem(http.StatusNotFound,
		"unknown_orchestration", "entity")
}

// entityResponses returns the responses of each route of entities, with success and with each failure.
func entityResponses(t *testing.T, large string, down, refused error) (all []callResponse) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newRunningHub(t)
		h.start(t, "@sum@over")
		h.Append("@sum@over", failed("no stock"))
		ask := func(body string, header ...string) {
			all = append(all, h.call(t, http.MethodPost, aCall, body, header...))
		}
		show := func() { all = append(all, h.call(t, http.MethodGet, aKey, "")) }
		ask(`{}`) // the update is still pending
		show()    // the API cannot send queries
		for _, end := range updateEnds {
			updatesEnd(h, end.callResponse)
			ask(`{}`)
		}
		for code := range queryCodes {
			failQueries(h, code)
			show()
		}
		updatesEnd(h, provider.UpdateResult{Outcome: provider.UpdateCompleted, Result: history.Payload("1")})
		h.SetQueryFunc(func(provider.QueryRequest) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		ask(`{}`)
		show()
		h.SetQueryFunc(func(provider.QueryRequest) (json.RawMessage, error) { return json.RawMessage("null"), nil })
		show()
		ask(`{"more":1}`)
		all = append(all, h.call(t, http.MethodGet, aKey+"?a=1", ""),
			h.call(t, http.MethodPost, "/v1/entities/sum/over/add", "{}"))
		ask(`{"input":` + large + `}`)
		ask(`{}`, "Content-Type", "text/plain")
		for _, err := range []error{down, refused} {
			h.FailWith(err)
			ask(`{}`)
			show()
		}
	})
	return all
}
