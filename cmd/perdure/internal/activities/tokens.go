// Package activities has the commands of workers and of the holders of completion tokens.
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

// maxTokenBytes limits what is read from stdin as a token.
const maxTokenBytes = 16 << 10

const aboutHolders = `

TOKEN is the completion token of the attempt, or - to read it from stdin. Keep it secret: its holder can
complete, fail and extend the attempt, and other users of the machine can see command-line arguments. The
command fails if the token is invalid, belongs to another hub or an earlier attempt, or the activity has
ended.`

// TokenCommands returns the commands of the holder of a completion token.
func TokenCommands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{completeCommand(env), failCommand(env), heartbeatCommand(env)}
}

// printEnded prints that an attempt has ended, or the body of the call that ended it.
func printEnded(env *cli.Env, how string) error {
	return env.PrintResult(struct{}{}, how+"\n")
}

// readToken reads a token from an argument or from stdin, which a flag cannot use at the same time.
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
