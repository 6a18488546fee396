package perdure_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

// A change without a name that history can hold fails where it is asked for, in the first test that comes there.
func TestAChangeNeedsAName(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"", strings.Repeat("x", 257), "\xff"} {
		func() {
			defer func() {
				if why, _ := recover().(string); !strings.Contains(why, "use 1 to 256 bytes of UTF-8") {
					t.Errorf("%.10q: %q", change, why)
				}
			}()
			perdure.Version(nil, change, 1, 2)
		}()
	}
}
