package cli

import (
	"cmp"
	"strings"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// commandLine returns a perdure command for a shell, with the hub if the shell does not select the same one.
func (c *Env) CommandLine(args []string) string {
	words := []string{"perdure"}
	for _, arg := range args {
		words = append(words, term.ShellQuote(arg))
	}
	if c.HubName != cmp.Or(c.Getenv("PERDURE_HUB"), DefaultHub) {
		words = append(words, "--hub", term.ShellQuote(c.HubName))
	}
	return strings.Join(words, " ")
}
