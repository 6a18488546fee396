package guides_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/perduretest"
)

var (
	httpSession = regexp.MustCompile("(?s)```console\n(.*?)```")
	curlCall    = regexp.MustCompile(`^\$ curl -s "?\$API([^" ]+)"?(.*) # (\d+)$`)
	curlHeader  = regexp.MustCompile(`-H '([^:']+): ([^']*)'`)
	curlBody    = regexp.MustCompile(`-d '([^']*)'`)
)

// Guest is the input of Welcome.
type Guest struct {
	Name string `json:"name"`
}

func Welcome(ctx *perdure.OrchestrationContext, g Guest) (string, error) {
	retried := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 5, InitialInterval: time.Second})
	if _, err := perdure.CallActivity(ctx, SendMail, Mail{To: g.Name, Text: "welcome"}, retried).Await(ctx); err != nil {
		return "", err
	}

	answered := perdure.WaitForExternalEvent[struct{}](ctx, "answered")
	late := perdure.CreateTimer(ctx, 24*time.Hour)
	first, err := perdure.Select(ctx, answered, late)
	if err != nil {
		return "", err
	}
	if first == 0 {
		return g.Name + " has answered", nil
	}

	_, err = perdure.CallActivity(ctx, SendMail, Mail{To: g.Name, Text: "are you there?"}, retried).Await(ctx)
	return g.Name + " was reminded", err
}

// Mail is the input of SendMail.
type Mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

func SendMail(_ context.Context, m Mail) (string, error) {
	return fmt.Sprintf("to %s: %s", m.To, m.Text), nil
}

// The example uses the orchestration of the first application. A test of perdure init compares that page with the code
// that init creates.
func TestFirstApplication_orchestration_isOfThisPackage(t *testing.T) {
	t.Parallel()
	block := goBlock.FindStringSubmatch(readPage(t, "../start/first-application.md"))
	if block == nil || !containsBlock(readFiles(t, "*.go"), block[1]) {
		t.Errorf("no test file of this package contains %q", block)
	}
}

// The test sends the requests of the page to the API of a hub, and compares the responses with those of the page.
func TestHTTPReference_example_hasResponses(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "welcome", Welcome)
	perdure.AddActivity(r, "send-mail", SendMail)
	env := perduretest.New(t, r)
	api := httpapi.New(env.Client(), env.Admin(), httpapi.WithLogger(slog.New(slog.DiscardHandler)))

	session := httpSession.FindStringSubmatch(readPage(t, "../reference/http.md"))
	if session == nil {
		t.Fatal("the page has no example")
	}
	lines := strings.Split(strings.TrimSpace(session[1]), "\n")
	calls := 0
	for i, line := range lines {
		if !strings.HasPrefix(line, "$ curl") {
			continue
		}
		call := curlCall.FindStringSubmatch(line)
		if call == nil || i+1 == len(lines) {
			t.Fatalf("cannot parse %s", line)
		}
		calls++
		got := httptest.NewRecorder()
		api.ServeHTTP(got, curlRequest(call[1], call[2]))
		env.RunUntilIdle()
		isAsShown := hasFields(decodeJSON(t, got.Body.String()), decodeJSON(t, lines[i+1]))
		if strconv.Itoa(got.Code) != call[3] || !isAsShown {
			t.Errorf("%s: got %d %s", line, got.Code, got.Body)
		}
	}
	if calls != 5 {
		t.Errorf("%d calls, want 5", calls)
	}
}

// curlRequest returns the request of a path and the options of curl.
func curlRequest(path, options string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	if body := curlBody.FindStringSubmatch(options); body != nil {
		r = httptest.NewRequest(http.MethodPost, path, strings.NewReader(body[1]))
	}
	for _, header := range curlHeader.FindAllStringSubmatch(options, -1) {
		r.Header.Set(header[1], header[2])
	}
	return r
}

func decodeJSON(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// hasFields reports whether a document has all fields of a shortened one. The string "…" matches any value.
func hasFields(got, shortened any) bool {
	switch want := shortened.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && hasFields(object[name], value)
		}
		return ok
	case []any:
		list, ok := got.([]any)
		ok = ok && len(list) == len(want)
		for i := range want {
			ok = ok && hasFields(list[i], want[i])
		}
		return ok
	default:
		return want == "…" || got == want
	}
}
