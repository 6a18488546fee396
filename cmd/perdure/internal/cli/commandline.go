package cli

import (
	"cmp"
	"strings"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// CommandLine returns a perdure command for a shell, with --hub if the shell selects another hub.
func (env *Env) CommandLine(args []string) string {
	words := []string{"perdure"}
	for _, arg := range args {
		words = append(words, term.ShellQuote(arg))
	}
	if env.HubName != cmp.Or(env.Getenv("PERDURE_HUB"), DefaultHub) {
		words = append(words, "--hub", term.ShellQuote(env.HubName))
	}
	return strings.Join(words, " ")
}
