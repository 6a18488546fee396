package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzRequest checks that the API never responds to a request with a 5xx status, and that each response is as in the
// OpenAPI document and the table of operations.
func FuzzRequest(f *testing.F) {
	const waiting = "/v1/instances/waiting"
	for _, s := range [][3]string{
		{http.MethodPost, hello, `{"instanceId":"a","input":{"ref":"x"},"tags":{"k":"v"},"delay":"1h"}`},
		{http.MethodGet, "/v1/instances?limit=5&status=Running&tag=a=b&startedAfter=2026-01-01T00:00:00Z", ""},
		{http.MethodGet, waiting + "/history?after=1&execution=x", ""},
		{http.MethodGet, waiting + "?pending=true", ""},
		{http.MethodGet, waiting + "/cancellations?cursor=1", ""},
		{http.MethodPost, waiting + "/events/e", `[1,2]`},
		{http.MethodPost, waiting + "/cancel", `{"message":"m"}`},
		{http.MethodPost, waiting + "/activities/2/cancel", ""},
		{http.MethodPost, waiting + "/notes", `{"note":"n"}`},
		{http.MethodPost, "/v1/jobs", `{"operation":"purge","dryRun":true,"filter":{"name":"a"}}`},
		{http.MethodPost, "/v1/work-items/renew", `{"visibilityTimeout":60,"leases":[{"token":"w1.1.x","receiptHandle":"r"}]}`},
		{http.MethodPost, "/v1/entities/sum/7/add", `1`},
		{http.MethodPut, "/v1/schedules/nightly", `{"when":"@daily"}`},
		{http.MethodPost, waiting + "/restart", `{"event":2}`},
		{http.MethodDelete, waiting + "?force=true", ""},
		{http.MethodGet, "/v1/instances/~YS9i", ""},
		{http.MethodHead, "/v1/instances/%2e%2e", ""},
		{"FROB", "/v1//instances", "{"},
	} {
		f.Add(s[0], s[1], s[2], "application/json", "key-1")
	}
	f.Fuzz(func(t *testing.T, method, target, body, media, key string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(target, "/") || strings.ContainsAny(target, " \r\n") ||
			strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || method == "" || method == http.MethodConnect {
			return // a server of net/http rejects it
		}
		if strings.Contains(strings.ToLower(u.Path+"?"+u.RawQuery), "wait=") || strings.Contains(u.RawQuery, "%") ||
			strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/stream") || strings.Contains(u.RawQuery, "ait") {
			return // it waits
		}
		h := setup(t)
		h.start(t, "waiting")
		header := []string{"Content-Type", media}
		if key != "" {
			header = append(header, "Idempotency-Key", key)
		}
		if a := h.call(t, method, target, body, header...); a.Code >= http.StatusInternalServerError &&
			a.Code != http.StatusNotImplemented {
			t.Errorf("%s %s %q: status %d: %s", method, target, body, a.Code, a.Body)
		}
	})
}
