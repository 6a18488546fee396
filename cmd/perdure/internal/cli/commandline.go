package cli

import (
	"cmp"
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// CommandLine returns a perdure command for a shell, with --hub or --api if the shell selects
// another hub.
func (env *Env) CommandLine(args []string) string {
	words := []string{"perdure"}
	for _, arg := range args {
		words = append(words, term.ShellQuote(arg))
	}
	if endpoint := env.API(); endpoint != "" {
		if endpoint != env.Getenv(client.EndpointVariable) {
			words = append(words, "--api", term.ShellQuote(endpoint))
		}
		return strings.Join(words, " ")
	}
	if env.HubName != cmp.Or(env.Getenv("PERDURE_HUB"), DefaultHub) || env.Getenv(client.EndpointVariable) != "" {
		words = append(words, "--hub", term.ShellQuote(env.HubName))
	}
	return strings.Join(words, " ")
}
