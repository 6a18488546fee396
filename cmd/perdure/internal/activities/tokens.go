// Package activities contains the worker command and the commands that take a completion token.
package activities

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/provider"
)

const argToken = "TOKEN"

// maxTokenBytes is the maximum number of bytes that readToken reads from stdin.
const maxTokenBytes = 16 << 10

const aboutHolders = `

TOKEN is the completion token of the attempt, or - to read the token from stdin. Keep the token secret,
because its holder can complete, fail and extend the attempt. Other users of the machine can see
command-line arguments. The command fails if the token is invalid or belongs to another hub or an earlier
attempt, or if the activity has ended.`

// TokenCommands returns the commands that take a completion token: complete, fail and heartbeat.
func TokenCommands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{completeCommand(env), failCommand(env), heartbeatCommand(env)}
}

// printEnded prints how an attempt ended. With --json, it prints an empty object, as returned by the HTTP API.
func printEnded(env *cli.Env, how string) error {
	return env.PrintResult(struct{}{}, how+"\n")
}

// readToken returns the token in an argument. If the argument is -, it reads the token from stdin, unless a flag has
// the value - as well.
func readToken(env *cli.Env, from, flag, value string) (string, error) {
	switch {
	case from != "-":
		return from, nil
	case value == "-":
		return "", &provider.FieldError{Field: flag, Problem: "and TOKEN cannot both be read from stdin"}
	}
	doc, err := io.ReadAll(io.LimitReader(env.Stdin, maxTokenBytes))
	if err != nil {
		return "", fmt.Errorf("%s: %w", argToken, err)
	}
	return strings.TrimSpace(string(doc)), nil
}
