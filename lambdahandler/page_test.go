package lambdahandler

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// The web UI is served if it is enabled, and API paths are not changed.
func TestNewAPI_webUI_isServedIfEnabled(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{
		"": http.StatusNotFound, "false": http.StatusNotFound, "true": http.StatusOK,
	} {
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
		send := func(path string) (got events.APIGatewayV2HTTPResponse) {
			e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path}
			e.RequestContext.HTTP.Method = http.MethodGet
			e.RequestContext.DomainName = "a1b2.execute-api.eu-west-1.amazonaws.com"
			doc, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			result, err := f.Handler().Invoke(t.Context(), doc)
			if err == nil {
				err = json.Unmarshal(result, &got)
			}
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := send("/ui"); got.StatusCode != want ||
			(want == http.StatusOK) != strings.Contains(got.Body, "<title>Instances") {
			t.Errorf("PERDURE_UI=%q: got status %d, %.80s", value, got.StatusCode, got.Body)
		}
		if got := send("/ui/"); got.StatusCode != http.StatusNotFound {
			t.Errorf("PERDURE_UI=%q: /ui/: got status %d", value, got.StatusCode)
		}
	}
	_, err := NewAPI(t.Context(), WithEnvironment(func(name string) string {
		if name == "PERDURE_UI_ORIGINS" {
			return "https://shop.example.com, shop.example.com"
		}
		return apiEnvironment(name)
	}))
	if err == nil || !strings.Contains(err.Error(), `PERDURE_UI_ORIGINS has the invalid origin "shop.example.com"`) {
		t.Errorf("PERDURE_UI_ORIGINS: got error %v", err)
	}
	_, err = NewAPI(t.Context(), WithEnvironment(func(name string) string {
		if name == "PERDURE_UI" {
			return "yes"
		}
		return apiEnvironment(name)
	}))
	if err == nil || !strings.Contains(err.Error(), "PERDURE_UI") {
		t.Errorf("PERDURE_UI=yes: got error %v", err)
	}
}
