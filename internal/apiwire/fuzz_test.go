package apiwire_test

import (
	"regexp"
	"testing"

	"github.com/perdure/perdure/internal/apiwire"
)

// anotherCall matches the method and the beginning of another call within a path.
var anotherCall = regexp.MustCompile("(?s)(?:^|/)(GET|HEAD|POST|PUT|DELETE)/v1/")

// FuzzImpersonates checks that the result is the method of another call in the path, and that an escaped ID never
// results in one.
func FuzzImpersonates(f *testing.F) {
	for _, path := range []string{"/v1/instances/GET/v1/x", "/GET/v1", "POST/v1/a", "/v1/instances/a", "", "/DELETE//v1/"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		want := ""
		if found := anotherCall.FindStringSubmatch(path); found != nil {
			want = found[1]
		}
		if got := apiwire.Impersonates(path); got != want {
			t.Errorf("%q impersonates %q, want %q", path, got, want)
		}
		if got := apiwire.Impersonates("/v1/instances/" + apiwire.EscapeID(path) + "/v1/x"); got != "" {
			t.Errorf("the instance ID %q impersonates %q", path, got)
		}
	})
}
