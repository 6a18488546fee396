package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
)

// A repeated query would run the handler again, and would use up the retry budget while an instance has not started.
func TestDial_queryWithoutResult_isSentOnce(t *testing.T) {
	t.Parallel()
	for _, code := range []client.QueryCode{client.QueryNotStarted, client.QueryTimedOut} {
		f := refused(http.StatusConflict,
			`{"status":409,"code":"query_`+string(code)+`","detail":"no","retryable":true}`)
		c := respond(t, f)
		_, query := c.Query(t.Context(), "one", "stock", nil)
		_, state := c.EntityState(t.Context(), "sum", "a")
		for name, err := range map[string]error{"Query": query, "EntityState": state} {
			if e, ok := errors.AsType[*client.QueryError](err); !ok || e.Code != code {
				t.Errorf("%s: got error %v, want the code %s", name, err, code)
			}
		}
		if len(f.requests) != 2 {
			t.Errorf("%s: got %d requests for two queries", code, len(f.requests))
		}
	}
}

// letterAPI is an API with the dead letter "a" in the second of two queues.
type letterAPI struct{ lookups []string }

func (l *letterAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	f := responding(`{"queues":[{"queue":"inbox"},{"queue":"default"},{"queue":"other"}]}`)
	if id, lookup := strings.CutPrefix(r.URL.Path, "/v1/dead-letters/"); lookup {
		l.lookups = append(l.lookups, id)
		f = refused(http.StatusNotFound, `{"status":404,"code":"dead_letter_not_found","detail":"no","retryable":true}`)
		if id == "default/a" {
			f = responding(`{"queue":"default","id":"a","reason":"corrupt: x","instanceId":"one"}`)
		}
	}
	return f.RoundTrip(r)
}

// A dead letter is in one queue. Lookups in other queues are not repeated, because each one searches a whole queue.
func TestDial_deadLettersByID_areSearchedOncePerQueue(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		query admin.DeadLetterQuery
		limit int
		want  string
		found int
	}{
		"found":            {admin.DeadLetterQuery{}, 10, "inbox/a default/a", 1},
		"limit":            {admin.DeadLetterQuery{}, 1, "inbox/a default/a", 1},
		"other instance":   {admin.DeadLetterQuery{InstanceID: "two"}, 10, "inbox/a default/a other/a", 0},
		"another reason":   {admin.DeadLetterQuery{ReasonPrefix: "poison"}, 10, "inbox/a default/a other/a", 0},
		"queue without it": {admin.DeadLetterQuery{Queue: "inbox"}, 10, "inbox/a", 0},
	} {
		l := &letterAPI{}
		a, err := admin.Dial("https://api.example.com", client.WithHTTPClient(&http.Client{Transport: l}))
		if err != nil {
			t.Fatal(err)
		}
		test.query.IDs = []string{"a"}
		list, err := a.DeadLetters(t.Context(), test.query, test.limit)
		if got := strings.Join(l.lookups, " "); err != nil || got != test.want || len(list.Items) != test.found ||
			list.Complete != (test.found == 1) {
			t.Errorf("%s: got %+v, error %v, lookups %s, want %s", name, list, err, got, test.want)
		}
	}
}
