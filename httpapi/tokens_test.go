package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

const activities = "/v1/activities/"

// newTokenHub returns a hub with completion tokens of a pending activity, a completed activity, an earlier attempt, and
// an activity of an instance that has ended.
func newTokenHub(t *testing.T) *hub {
	t.Helper()
	h := newRunningHub(t)
	h.Append("one", history.Event{Kind: history.ActivityScheduled, Time: began, Name: "charge", Queue: "default"},
		history.Event{Kind: history.ActivityScheduled, Time: began, Name: "charge", Queue: "default"},
		history.Event{Kind: history.ActivityCompleted, Time: began, SourceEventID: 3})
	for token, of := range map[string]struct {
		instance string
		activity int64
	}{"c1.waits": {"one", 2}, "c1.done": {"one", 3}, "c1.early": {"one", 4}, "c1.gone": {"over", 2}} {
		in, err := h.ReadInstance(t.Context(), of.instance)
		if err != nil {
			t.Fatal(err)
		}
		h.SetCompletionToken(token, &provider.WorkItem{
			InstanceID: of.instance, ExecutionID: in.ExecutionID, Segment: 1, ActivityID: of.activity, Attempt: 1,
			Queue: "default",
		})
		if token == "c1.early" {
			h.SetRetries(in.ExecutionID, provider.ActivityRetry{ActivityID: 4, Attempt: 2, Error: &history.Failure{}})
		}
	}
	return h
}

// tokenCall is the path of a call, and the part of its body after the token.
type tokenCall struct{ path, rest string }

func tokenCalls() []tokenCall {
	return []tokenCall{
		{activities + "complete", `,"result":{"paid":7}}`},
		{
			activities + "fail",
			`,"error":{"type":"Declined","message":"no funds","nonRetryable":true,"details":{"code":51}}}`,
		},
		{activities + "heartbeat", `,"details":{"page":3}}`},
	}
}

func TestActivityTokens_eachTokenState_hasItsOwnResponse(t *testing.T) {
	t.Parallel()
	for _, c := range tokenCalls() {
		want := http.StatusAccepted
		if strings.HasSuffix(c.path, "heartbeat") {
			want = http.StatusOK
		}
		h := newTokenHub(t)
		h.call(t, http.MethodPost, c.path, `{"token":"c1.waits"`+c.rest).want(want).wantBody("{}")
		for token, problem := range map[string]struct {
			status int
			code   string
		}{
			"w1.waits": {http.StatusBadRequest, "invalid_token"}, "": {http.StatusBadRequest, "invalid_token"},
			fakeprovider.ForeignToken: {http.StatusBadRequest, "other_hub"},
			"c1.early":                {http.StatusConflict, "superseded"}, "c1.done": {
				http.StatusConflict, "activity_over",
			},
			"c1.gone": {http.StatusGone, "execution_over"},
		} {
			a := h.call(t, http.MethodPost, c.path, `{"token":"`+token+`"`+c.rest)
			if a.wantProblem(problem.status, problem.code, "token"); token != "" &&
				strings.Contains(a.Body.String(), token) {
				t.Errorf("%s: the response contains the token: %s", c.path, a.Body)
			}
		}
	}
}

func TestActivityTokens_completeAndFail_sendOutcome(t *testing.T) {
	t.Parallel()
	h := newTokenHub(t)
	for _, c := range tokenCalls() {
		h.call(t, http.MethodPost, c.path, `{"token":"c1.waits"`+c.rest)
	}
	sent := h.Sent()
	completed, failed := sent[len(sent)-2].Outcomes[0], sent[len(sent)-1].Outcomes[0]
	if string(completed.Result) != `{"paid":7}` || completed.ActivityID != 2 || completed.Attempt != 1 {
		t.Errorf("%+v", completed)
	}
	if f := failed.Error; f == nil || f.Type != "Declined" || f.Message != "no funds" || !f.NonRetryable ||
		string(f.Details) != `{"code":51}` {
		t.Errorf("%+v", failed)
	}
	h.call(t, http.MethodPost, activities+"fail", `{"token":"c1.waits"}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "error")
	h.call(t, http.MethodPost, activities+"fail",
		`{"token":"c1.waits","error":{"details":"`+strings.Repeat("x", 4095)+
			`"}}`).wantProblem(http.StatusBadRequest, "invalid_request", "error.details")
	h.call(t, http.MethodPost, activities+"fail",
		`{"token":"c1.waits","error":{"kind":"x"}}`).wantProblem(http.StatusBadRequest, "invalid_request", "kind")
}

func TestFailActivity_causesAndJoinedTypes_areStored(t *testing.T) {
	t.Parallel()
	h := newTokenHub(t)
	nested := func(n int) string {
		return `{"token":"c1.waits","error":` + strings.Repeat(`{"type":"Charge","joined":["Audit"],"cause":`, n) +
			`{"type":"Declined","message":"no funds"}` + strings.Repeat("}", n+1)
	}
	h.call(t, http.MethodPost, activities+"fail", nested(1)).want(http.StatusAccepted)
	sent := h.Sent()
	f := sent[len(sent)-1].Outcomes[0].Error
	if f.Type != "Charge" || f.Cause == nil || f.Cause.Type != "Declined" || f.Cause.Message != "no funds" ||
		len(f.Joined) != 1 || f.Joined[0] != "Audit" {
		t.Errorf("got failure %+v", f)
	}
	h.call(t, http.MethodPost, activities+"fail", nested(8)).want(http.StatusAccepted)
	h.call(t, http.MethodPost, activities+"fail", nested(9)).wantProblem(http.StatusBadRequest, "invalid_request",
		"cause")
}

func TestHeartbeatActivity_cancelledActivity_returnsCancellation(t *testing.T) {
	t.Parallel()
	h := newTokenHub(t)
	h.Append("one", history.Event{
		Kind: history.ActivityCancelRequested, Time: began, SourceEventID: 2, Reason: "requested", Message: "enough",
	})
	h.call(t, http.MethodPost, activities+"heartbeat",
		`{"token":"c1.waits"}`).want(http.StatusOK).wantBody(
		`{"cancel":{"reason":"requested","message":"enough","requestedAt":"` +
			began.Format("2006-01-02T15:04:05Z07:00") + `"}}`,
	)
}

// tokenResponses returns the responses of each route with a token, with success and with each failure.
func tokenResponses(t *testing.T, large string, failures ...error) (all []callResponse) {
	t.Helper()
	for _, c := range tokenCalls() {
		for _, token := range []string{
			"c1.waits", "c1.done", "c1.early", "c1.gone", fakeprovider.ForeignToken, "nothing",
		} {
			all = append(all, newTokenHub(t).call(t, http.MethodPost, c.path, `{"token":"`+token+`"`+c.rest))
		}
		h := newTokenHub(t)
		all = append(all, h.call(t, http.MethodPost, c.path, `{"token":"c1.waits","result":`+large+`}`),
			h.call(t, http.MethodPost, c.path, `{"token":"`+strings.Repeat("x", 300<<10)+`"}`),
			h.call(t, http.MethodPost, c.path, `{}`, "Content-Type", "text/plain"))
		for _, failure := range failures {
			all = append(all, request{http.MethodPost, c.path, `{"token":"c1.waits"` + c.rest, nil, failure}.of(t, h))
		}
	}
	return all
}
