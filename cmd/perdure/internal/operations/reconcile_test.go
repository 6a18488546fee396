package operations

import (
	"os/exec"
	"testing"
)

// The printed flags of the next command select the remaining instances in a shell.
func TestWhatIsLeftCanBePasted(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"order-7", "order 7", "$(echo x)", "a;b", "it's", "~", "*", "#1", `a\b`, "été"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+instanceFlags([]string{id})).Output()
		if err != nil || string(out) != "--instance\n"+id+"\n" {
			t.Errorf("%q is printed as %q, which a shell reads as %q, %v", id, instanceFlags([]string{id}), out, err)
		}
	}
}
