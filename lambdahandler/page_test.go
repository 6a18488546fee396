package lambdahandler

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// The page is served where the environment asks for it, and the paths of the API's calls stay as they were sent.
func TestThePageIsServedWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{"": http.StatusNotFound, "false": http.StatusNotFound, "true": http.StatusOK} {
		env := func(name string) string {
			if name == "PERDURE_UI" {
				return value
			}
			return apiEnvironment(name)
		}
		f, err := NewAPI(t.Context(), WithEnvironment(env), WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		ask := func(path string) (got events.APIGatewayV2HTTPResponse) {
			e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path}
			e.RequestContext.HTTP.Method = http.MethodGet
			e.RequestContext.DomainName = "a1b2.execute-api.eu-west-1.amazonaws.com"
			doc, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := f.Handler().Invoke(t.Context(), doc)
			if err == nil {
				err = json.Unmarshal(answer, &got)
			}
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := ask("/ui"); got.StatusCode != want || (want == http.StatusOK) != strings.Contains(got.Body, "<title>Instances") {
			t.Errorf("PERDURE_UI=%q: status %d, %.80s", value, got.StatusCode, got.Body)
		}
		if got := ask("/ui/"); got.StatusCode != http.StatusNotFound {
			t.Errorf("PERDURE_UI=%q: /ui/ has status %d", value, got.StatusCode)
		}
	}
	_, err := NewAPI(t.Context(), WithEnvironment(func(name string) string {
		if name == "PERDURE_UI_ORIGINS" {
			return "https://shop.example.com, shop.example.com"
		}
		return apiEnvironment(name)
	}))
	if err == nil || !strings.Contains(err.Error(), `PERDURE_UI_ORIGINS has "shop.example.com"`) {
		t.Errorf("PERDURE_UI_ORIGINS: %v", err)
	}
	_, err = NewAPI(t.Context(), WithEnvironment(func(name string) string {
		if name == "PERDURE_UI" {
			return "yes"
		}
		return apiEnvironment(name)
	}))
	if err == nil || !strings.Contains(err.Error(), "PERDURE_UI") {
		t.Errorf("PERDURE_UI=yes: %v", err)
	}
}

// Beside the page, a page of another origin changes nothing, and another name of this machine leads nowhere.
func TestThePageIsNoDoorForOtherPages(t *testing.T) {
	t.Parallel()
	e := &environment{getenv: func(string) string { return "https://shop.example.com" }}
	api := withPage(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), e.pageGuard())
	h := ownName(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, api)
	if err := e.err(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method, host, site, origin string
		want                       int
	}{
		"a change of another site": {http.MethodPost, "127.0.0.1:8080", "cross-site", "https://evil.example", http.StatusForbidden},
		"without saying which":     {http.MethodPost, "127.0.0.1:8080", "", "https://evil.example", http.StatusForbidden},
		"of the neighbour":         {http.MethodDelete, "localhost:8080", "same-site", "http://localhost:3000", http.StatusForbidden},
		"of an origin that may":    {http.MethodPost, "127.0.0.1:8080", "cross-site", "https://shop.example.com", http.StatusOK},
		"of the page":              {http.MethodPost, "127.0.0.1:8080", "same-origin", "http://127.0.0.1:8080", http.StatusOK},
		"of a program":             {http.MethodPost, "127.0.0.1:8080", "", "", http.StatusOK},
		"by a rebound name":        {http.MethodGet, "evil.example:8080", "same-origin", "", http.StatusMisdirectedRequest},
	} {
		r := httptest.NewRequest(c.method, "/v1/jobs", http.NoBody)
		r.Host = c.host
		for header, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/v1/jobs", http.NoBody)
	w := httptest.NewRecorder()
	ownName(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 8080}, api).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("where it listens for other machines: status %d", w.Code)
	}
}

// Also without the page a browser could be led to ask for changes, with the rights of the API.
func TestOtherPagesChangeNothingWhereTheAPIListens(t *testing.T) {
	t.Parallel()
	e := &environment{getenv: func(string) string { return "https://shop.example.com" }}
	h := overHTTP(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), false, e.pageGuard())
	for name, c := range map[string]struct {
		method, site, origin string
		want                 int
	}{
		"a change of another site": {http.MethodPost, "cross-site", "https://evil.example", http.StatusForbidden},
		"without saying which":     {http.MethodPost, "", "https://evil.example", http.StatusForbidden},
		"of the neighbour":         {http.MethodDelete, "same-site", "http://127.0.0.1:3000", http.StatusForbidden},
		"of an origin that may":    {http.MethodPost, "cross-site", "https://shop.example.com", http.StatusOK},
		"of a program":             {http.MethodPost, "", "", http.StatusOK},
		"a look of another site":   {http.MethodGet, "cross-site", "", http.StatusOK},
	} {
		r := httptest.NewRequest(c.method, "/v1/instances/a/cancel", http.NoBody)
		for header, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.want)
		}
	}
}
