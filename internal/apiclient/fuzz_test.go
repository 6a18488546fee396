package apiclient_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/apiclient"
)

// FuzzDo checks that any response of an API, or of a gateway in front of it, is a result for the requested instance or
// an error, and that no response makes the client wait longer than a minute.
func FuzzDo(f *testing.F) {
	for _, s := range []struct {
		status                  uint16
		media, body, retryAfter string
	}{
		{http.StatusOK, jsonType, `{"instanceId":"one","status":"Running"}`, "1"},
		{http.StatusOK, jsonType, `{"instanceId":"other"}`, ""},
		{http.StatusOK, "text/html", "<html>", "soon"},
		{http.StatusOK, jsonType, `[]`, "-1"},
		{http.StatusNoContent, "", "", "9223372036854775808"},
		{http.StatusServiceUnavailable, problemType, unavailable, "Wed, 01 Jul 2026 03:05:00 GMT"},
		{http.StatusTooManyRequests, jsonType, `{"message":"Too Many Requests"}`, "Fri, 31 Dec 9999 23:59:59 GMT"},
		{http.StatusNotFound, problemType, `{"code":"not_found","detail":"d","field":"f"}`, "0"},
		{http.StatusFound, "", "", "3600"},
	} {
		f.Add(s.status, s.media, s.body, s.retryAfter)
	}
	f.Fuzz(func(t *testing.T, status uint16, media, body, retryAfter string) {
		g := &gateway{respond: func(int, *http.Request) (*http.Response, error) {
			return response(int(status), media, body, "Retry-After", retryAfter), nil
		}}
		resp, err := g.dial(t).Do(t.Context(), read)
		if (resp == nil) == (err == nil) {
			t.Fatalf("response %+v, error %v", resp, err)
		}
		const longest = time.Minute + 20*time.Second // Retry-After, and the delay of the client
		for _, d := range g.slept {
			if d < 0 || d > longest {
				t.Errorf("Retry-After %q: the client waits %v", retryAfter, d)
			}
		}
		if err != nil || resp.Status == http.StatusNoContent {
			return
		}
		var of struct {
			InstanceID string `json:"instanceId"`
		}
		if err := resp.Decode(&of); err != nil || of.InstanceID != "" && of.InstanceID != "one" ||
			!json.Valid([]byte(body)) || resp.RetryAfter < 0 || resp.RetryAfter > time.Minute {
			t.Errorf("response %+v, error %v", resp, err)
		}
	})
}

// FuzzParseEndpoint checks that an accepted endpoint is a URL of a host without credentials, which is parsed unchanged.
func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{
		"https://api.example.com/prod/", "http://127.0.0.1:8080/v1", "https://u:p@a/", "ftp://a", "https://a?b", "//a",
		"https://[::1]:80/a%2fb", "https://a/v1/v1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		u, err := apiclient.ParseEndpoint(endpoint)
		if err != nil {
			return
		}
		if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" {
			t.Errorf("%q is %+v", endpoint, u)
		}
		apiclient.ServiceOf(u.Hostname()) // must not panic
		apiclient.IsLoopback(u.Hostname())
	})
}
