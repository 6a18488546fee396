package operations

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// The printed flags of the next command select the remaining instances in a shell.
func TestInstanceFlags_specialCharacters_areQuotedForShell(t *testing.T) {
	t.Parallel()
	env := &cli.Env{HubName: cli.DefaultHub, Getenv: func(string) string { return "" }}
	for _, id := range []string{"order-7", "order 7", "$(echo x)", "a;b", "it's", "~", "*", "#1", `a\b`, "été"} {
		printed := strings.TrimPrefix(env.CommandLine(instanceFlags([]string{id})), "perdure ")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+printed).Output()
		if err != nil || string(out) != "--instance\n"+id+"\n" {
			t.Errorf("%q is printed as %q, which a shell reads as %q, %v", id, printed, out, err)
		}
	}
}
