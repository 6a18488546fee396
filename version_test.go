package perdure_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

// An invalid name of a change panics at the call, so the first test that reaches the call finds it.
func TestVersion_invalidChangeName_panics(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"", strings.Repeat("x", 257), "\xff"} {
		func() {
			defer func() {
				if why, _ := recover().(string); !strings.Contains(why, "use 1 to 256 bytes of UTF-8") {
					t.Errorf("%.10q: got panic %q", change, why)
				}
			}()
			perdure.Version(nil, change, 1, 2)
		}()
	}
}
