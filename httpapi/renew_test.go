package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

const renew = "/v1/work-items/renew"

func leases(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"token":"w1.1.a","receiptHandle":"mine"},`, n), ",") + "]"
}

// The response has one result for each lease, in the order of the request: the expiry, a cancellation of the activity,
// or the error.
func TestRenewLeases_severalLeases_resultsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	h := setup(t)
	soon := time.Second
	h.SetRenewal("mine", provider.Renewal{Until: began})
	h.SetRenewal("cancelled", provider.Renewal{
		Until: began,
		Cancel: provider.CancelInfo{
			Requested: true, Reason: "select_loser", Message: "too slow", RequestedAt: began.Add(-soon),
		},
	})
	h.SetRenewal("unknown", provider.Renewal{Until: began, CancelErr: errors.New("the table's own words")})
	h.SetRenewal("long", provider.Renewal{Err: provider.ErrLockLimit})
	h.SetRenewal("throttled", provider.Renewal{
		Err: &provider.Error{
			Op: "SQS.ChangeMessageVisibilityBatch", Retryable: true, Err: errors.New("the queue's own words"),
		},
	})
	h.SetRenewal("refused", provider.Renewal{
		Err: &provider.Error{Op: "SQS.ChangeMessageVisibilityBatch", Err: errors.New("the queue's own words")},
	})
	h.SetRenewal("gone", provider.Renewal{Err: &provider.FieldError{Field: "queue", Problem: "is unknown"}})
	var requested, want []string
	ask := func(token, handle, item string) {
		requested = append(requested, fmt.Sprintf(`{"token":%q,"receiptHandle":%q}`, token, handle))
		want = append(want, item)
	}
	failed := func(code string, retryable bool, detail string) string {
		return fmt.Sprintf(`"error":{"code":%q,"detail":%q,"retryable":%v}`, code, detail, retryable)
	}
	const until = `"expiresAt":"2026-07-01T03:01:30Z"`
	ask("w1.1.a", "mine", `{`+until+`}`)
	ask("w1.1.a", "cancelled",
		`{`+until+`,"cancel":{"reason":"select_loser","message":"too slow","requestedAt":"2026-07-01T02:59:59Z"}}`)
	ask("w1.1.a", "unknown", `{`+until+`,"cancelUnknown":true}`)
	ask("unknown", "mine",
		`{`+failed("invalid_token", false, "token was not issued by this hub, or its key was deleted")+`}`)
	ask("w1.1.a", "lost",
		`{`+failed("lock_lost", false, "lock on the message was lost; stop the activity and do not delete the message")+
			`}`)
	ask("w1.1.a", "long",
		`{`+failed("lock_limit", false, "lock would exceed 12 hours since the message was received")+`}`)
	ask("w1.1.a", "throttled", `{`+failed("unavailable", true, "no response from the task hub in time; try again")+`}`)
	ask("w1.1.a", "refused", `{`+failed("internal", false, "internal error; see the log of the API")+`}`)
	ask("w1.1.a", "gone", `{`+failed("unknown_queue", false, "hub no longer has this queue")+`}`)
	body := `{"visibilityTimeout":90,"leases":[` + strings.Join(requested, ",") + `]}`
	h.call(t, http.MethodPost, renew, body).want(http.StatusOK).wantBody(`{"leases":[` + strings.Join(want, ",") + `]}`)
	if log := h.log.String(); strings.Count(log, "level=WARN") != 1 ||
		!strings.Contains(log, "leases=9 failed=3 error=\"the table's own words\"") {
		t.Errorf("the failure of the service is not logged once: %s", log)
	}
	direct, err := httpapi.RenewLeases(t.Context(), client.New(h.Provider), slogTo(h.log), []byte(body))
	if err != nil || len(direct.Leases) != len(requested) || direct.Leases[1].Cancel.Reason != "select_loser" ||
		direct.Leases[4].Error.Code != "lock_lost" {
		t.Errorf("%+v, %v", direct, err)
	}
}

// The API and RenewLeases reject an invalid lease, and name the index of the lease.
func TestRenewLeases_invalidLease_isNamedWithItsIndex(t *testing.T) {
	t.Parallel()
	const good = `{"token":"w1.1.a","receiptHandle":"mine"}`
	for body, field := range map[string]string{
		``: "body", `[]`: "body", `{}`: "visibilityTimeout", `{"visibilityTimeout":60}`: "leases",
		`{"visibilityTimeout":60,"leases":[]}`: "leases", `{"visibilityTimeout":60,"leases":null}`: "leases",
		`{"visibilityTimeout":60,"leases":{}}`:                                       "leases",
		`{"visibilityTimeout":60,"leases":` + leases(101) + `}`:                      "leases",
		`{"leases":` + leases(1) + `}`:                                               "visibilityTimeout",
		`{"visibilityTimeout":0,"leases":` + leases(1) + `}`:                         "visibilityTimeout",
		`{"visibilityTimeout":-1,"leases":` + leases(1) + `}`:                        "visibilityTimeout",
		`{"visibilityTimeout":43201,"leases":` + leases(1) + `}`:                     "visibilityTimeout",
		`{"visibilityTimeout":1.5,"leases":` + leases(1) + `}`:                       "visibilityTimeout",
		`{"visibilityTimeout":"60","leases":` + leases(1) + `}`:                      "visibilityTimeout",
		`{"visibilityTimeout":9223372036854775807,"leases":` + leases(1) + `}`:       "visibilityTimeout",
		`{"visibilityTimeout":9223372037,"leases":` + leases(1) + `}`:                "visibilityTimeout",
		`{"visibilityTimeout":60,"visibilityTimeout":60,"leases":` + leases(1) + `}`: "visibilityTimeout",
		`{"visibilityTimeout":60,"leases":` + leases(1) + `,"extra":1}`:              "extra",
		`{"visibilityTimeout":60,"leases":[` + good + `,1]}`:                         "leases[1]",
		`{"visibilityTimeout":60,"leases":[` + good + `,null]}`:                      "leases[1]",
		`{"visibilityTimeout":60,"leases":[[]]}`:                                     "leases[0]",
		`{"visibilityTimeout":60,"leases":[{}]}`:                                     "leases[0].token",
		`{"visibilityTimeout":60,"leases":[` + good +
			`,{"token":"w1"}]}`: "leases[1].receiptHandle",
		`{"visibilityTimeout":60,"leases":[{"receiptHandle":"r"}]}`:                           "leases[0].token",
		`{"visibilityTimeout":60,"leases":[{"token":1,"receiptHandle":"r"}]}`:                 "leases[0].token",
		`{"visibilityTimeout":60,"leases":[{"token":"w1","receiptHandle":"r","a":1}]}`:        "leases[0].a",
		`{"visibilityTimeout":60,"leases":[{"token":"w1","token":"w1","receiptHandle":"r"}]}`: "leases[0].token",
		`{"visibilityTimeout":60,"leases":[{"token":"w1","receiptHandle":"a\u0000"}]}`:        "leases[0].receiptHandle", `{"visibilityTimeout":60,"leases":[{"token":"w1","receiptHandle":"` + strings.Repeat("x", 2049) + `"}]}`: "leases[0].receiptHandle",
	} {
		h := setup(t)
		h.SetRenewal("mine", provider.Renewal{Until: began})
		h.call(t, http.MethodPost, renew, body).wantProblem(http.StatusBadRequest, "invalid_request", field)
		if _, err := httpapi.RenewLeases(t.Context(), client.New(h.Provider), slogTo(h.log),
			[]byte(body)); err == nil || !strings.HasPrefix(err.Error(), "invalid_request: "+field+" ") {
			t.Errorf("%.200s: %v, want %s", body, err, field)
		}
	}
	h := setup(t)
	h.SetRenewal("mine", provider.Renewal{Until: began})
	h.call(t, http.MethodPost, renew, `{"visibilityTimeout":43200,"leases":`+leases(100)+`}`).want(http.StatusOK)
	h.call(t, http.MethodGet, renew, "").wantProblem(http.StatusMethodNotAllowed, "method_not_allowed", "")
	h.call(t, http.MethodPost, renew, `{"visibilityTimeout":60,"leases":`+leases(1)+`}`, "Content-Type",
		"text/plain").wantProblem(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type")
	h.FailWith(&provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: errors.New("no key")})
	h.call(t, http.MethodPost, renew,
		`{"visibilityTimeout":60,"leases":`+leases(1)+`}`).wantProblem(http.StatusServiceUnavailable, "unavailable", "")
}

// The handler of the renewer function serves this route, but no route that changes instances.
func TestNewRenewHandler_otherRoutes_areNotFound(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.api = httpapi.NewRenewHandler(client.New(h.Provider), httpapi.WithLogger(slogTo(h.log)))
	h.SetRenewal("mine", provider.Renewal{Until: began})
	h.call(t, http.MethodPost, renew, `{"visibilityTimeout":60,"leases":`+leases(1)+`}`).want(http.StatusOK)
	for _, target := range []string{hello, "/v1/jobs", inUse, "/v1/openapi.json"} {
		h.call(t, http.MethodPost, target, "{}").wantProblem(http.StatusNotFound, "no_such_route", "")
	}
}
