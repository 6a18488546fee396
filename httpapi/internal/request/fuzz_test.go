package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/provider"
)

// wantField fails the test unless err is a FieldError with one of the fields, or with any field if there are none.
func wantField(t *testing.T, err error, fields ...string) {
	t.Helper()
	e, ok := errors.AsType[*provider.FieldError](err)
	if !ok || e.Field == "" || e.Problem == "" || len(fields) > 0 && !strings.Contains(strings.Join(fields, " "), e.Field) {
		t.Errorf("error without one of the fields %q: %v", fields, err)
	}
}

// FuzzBody checks that a body is rejected with an error that names the field, or is a JSON object with the given
// fields, each at most once.
func FuzzBody(f *testing.F) {
	for _, s := range []string{
		`{"instanceId":"a","tags":{"k":"v"},"at":"2026-01-02T12:00:00Z","input":[1],"n":5}`, `{}`, `{"n":1,"n":2}`,
		`{"N":1}`, `{"n":1.5}`, `{"at":"noon"}`, `{"tags":[]}`, `{} {}`, "\xff", `{"":1}`, `{"n":`, `[]`, ``,
		`{"n":null,"tags":null,"input":null}`, `{"input":` + strings.Repeat("[", 10_001), `{"instanceId":"\ud800"}`,
	} {
		f.Add(s, "application/json")
	}
	f.Add("{}", "application/json; charset=latin1")
	f.Add("{}", "text/plain")
	f.Add("{}", "application/problem+json;;")
	f.Fuzz(func(t *testing.T, body, media string) {
		var v struct {
			InstanceID string            `json:"instanceId"`
			Tags       map[string]string `json:"tags"`
			At         time.Time         `json:"at"`
			Input      json.RawMessage   `json:"input"`
			N          int64             `json:"n"`
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", media)
		err := Body(httptest.NewRecorder(), r, map[string]any{
			"instanceId": &v.InstanceID, "tags": &v.Tags, "at": &v.At, "input": &v.Input, "n": &v.N,
		})
		if err != nil {
			if !errors.Is(err, problem.ErrMediaType) && len(body) <= maxBodyBytes {
				wantField(t, err)
			}
			return
		}
		var all map[string]json.RawMessage
		want := v
		d := json.NewDecoder(strings.NewReader(body))
		d.DisallowUnknownFields()
		if err := errors.Join(json.Unmarshal([]byte(body), &all), d.Decode(&want)); err != nil || len(all) > 5 {
			t.Fatalf("%q is accepted: %v", body, err)
		}
		if !reflect.DeepEqual(want, v) {
			t.Errorf("%q is %+v, want %+v", body, v, want)
		}
		if given := all["input"]; !bytes.Equal(given, v.Input) {
			t.Errorf("the input %q is %q", given, v.Input)
		}
	})
}

// FuzzQuery checks that a query is rejected with an error that names the parameter, or has parameters within bounds.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"limit=5&wait=20s&force=true&after=2026-01-02T12:00:00Z&tag=a=b&tag=c=", "limit=0", "limit=5&limit=6", "%zz", "=1",
		"wait=-1s", "wait=9999999h", "after=9999-12-31T23:59:59-23:59", "force=1", "tag=a&tag=a=b", "x=1", "limit", ";",
		"tag==", "limit=%2B5",
	} {
		f.Add(s)
	}
	accepted := []string{"limit", "wait", "force", "after", ParamTag}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := Query(raw, accepted)
		if err != nil {
			wantField(t, err)
			return
		}
		for name, values := range query {
			if len(values) > 1 && name != ParamTag {
				t.Errorf("%q repeats %s", raw, name)
			}
		}
		if n, err := Int(query, "limit", 1, 1000, 100); err != nil {
			wantField(t, err, "limit")
		} else if n < 1 || n > 1000 {
			t.Errorf("%q: limit %d", raw, n)
		}
		if d, err := Duration(query, "wait", time.Minute); err != nil {
			wantField(t, err, "wait")
		} else if d < 0 || d > time.Minute {
			t.Errorf("%q: wait %v", raw, d)
		}
		if _, err := Bool(query, "force"); err != nil {
			wantField(t, err, "force")
		}
		if at, err := Time(query, "after"); err != nil {
			wantField(t, err, "after")
		} else if _, err := json.Marshal(at.UTC()); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
		if tags, err := Tags(query); err != nil {
			wantField(t, err, ParamTag)
		} else if len(tags) != len(query[ParamTag]) {
			t.Errorf("%q: tags %q", raw, tags)
		}
	})
}

// FuzzID checks that an escaped ID is read unchanged, and that an accepted segment of a path has an ID that its
// canonical form also has.
func FuzzID(f *testing.F) {
	for _, id := range []string{"order-7", "a/b", "..", "~", "~YQ", "~YR", "~YQ==", "~YQ\n", "", "\xff", "GET", "é", "7", "-1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := func(segment string) (string, error) {
			r := &http.Request{URL: &url.URL{}}
			r.SetPathValue("id", segment)
			return ID(r, "id", "instanceId")
		}
		if id, err := read(EscapeID(text)); err != nil || id != text {
			t.Errorf("%q is escaped as %q and read as %q, error %v", text, EscapeID(text), id, err)
		}
		id, err := read(text)
		if err != nil {
			wantField(t, err, "instanceId")
		} else if again, err := read(EscapeID(id)); err != nil || again != id {
			t.Errorf("%q is %q, then %q, error %v", text, id, again, err)
		}
		r := &http.Request{Header: http.Header{}}
		r.SetPathValue("id", text)
		if _, err := Number(r, "id"); err != nil {
			wantField(t, err, "id")
		}
		r.Header.Set(problem.FieldIdempotencyKey, text)
		key, given, err := IdempotencyKey(r)
		if err != nil {
			wantField(t, err, problem.FieldIdempotencyKey)
		} else if !given || key != text || key == "" || len(key) > client.MaxIdempotencyKeyBytes {
			t.Errorf("key %q is %q, given %v", text, key, given)
		}
	})
}
