package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

// The commands of a token holder.

const (
	argToken   = "TOKEN"
	mostTokens = 16 << 10 // bytes that are read as one
)

const aboutHolders = `

TOKEN is the completion token of the attempt, or - to read it from stdin. Keep it secret: its holder can
complete, fail and extend the attempt, and other users of the machine can see command-line arguments. The
command fails if the token is invalid, belongs to another hub or an earlier attempt, or the activity has
ended.`

func tokenVerbs(c *command) []*cobra.Command {
	return []*cobra.Command{completeVerb(c), failVerb(c), heartbeatVerb(c)}
}

func completeVerb(c *command) *cobra.Command {
	result := noInput
	cmd := c.verb("complete TOKEN", "Complete a pending attempt", argToken,
		func(ctx context.Context, cl *client.Client, from string) error {
			token, err := readToken(c, from, "--result", result)
			if err != nil {
				return err
			}
			doc, err := readInput(c, result)
			if err != nil {
				return err
			}
			if err := cl.CompleteActivity(ctx, token, doc); err != nil {
				return err
			}
			return printEnded(c, "completed")
		})
	cmd.Flags().StringVar(&result, "result", "null", "result of the activity: JSON, @FILE, or - for stdin")
	cmd.Long = cmd.Short + "." + aboutHolders
	cmd.Example = `  perdure complete - --result '{"approved": true}' < token`
	return cmd
}

func failVerb(c *command) *cobra.Command {
	var why httpapi.ExternalError
	details := ""
	cmd := c.verb("fail TOKEN", "Fail a pending attempt", argToken,
		func(ctx context.Context, cl *client.Client, from string) error {
			if why.Message == "" {
				return errors.New("--message is required")
			}
			token, err := readToken(c, from, "--details", details)
			if err != nil {
				return err
			}
			if details != "" {
				if why.Details, err = readInput(c, details); err != nil {
					return err
				}
			}
			if err := cl.FailActivity(ctx, token, &why); err != nil {
				return err
			}
			return printEnded(c, "failed")
		})
	flags := cmd.Flags()
	flags.StringVar(&why.Message, "message", "", "error message (required)")
	flags.StringVar(&why.Type, "type", "", "error type, for orchestrations and retry policies")
	flags.BoolVar(&why.Permanent, "non-retryable", false, "error without further attempts")
	flags.StringVar(&details, "details", "", "error details, up to 4 KiB: JSON, @FILE, or - for stdin")
	completeWith[string](cmd, "message")
	completeWith[string](cmd, "type")
	cmd.Long = cmd.Short + `.

The retry policy of the activity decides whether another attempt follows. That attempt has a new token.` + aboutHolders
	cmd.Example = `  perdure fail - --type Declined --message 'no funds' --details '{"code": 51}' --non-retryable < token`
	return cmd
}

func heartbeatVerb(c *command) *cobra.Command {
	details := ""
	cmd := c.verb("heartbeat TOKEN", "Send a heartbeat for an attempt", argToken,
		func(ctx context.Context, cl *client.Client, from string) error {
			token, err := readToken(c, from, "--details", details)
			if err != nil {
				return err
			}
			var given any
			if details != "" {
				if given, err = readInput(c, details); err != nil {
					return err
				}
			}
			cancel, err := cl.HeartbeatActivity(ctx, token, given)
			switch {
			case err != nil:
				return err
			case c.json:
				return c.printJSON(httpapi.NewHeartbeatResponse(cancel))
			case cancel.Requested:
				return c.print(fmt.Sprintf("cancelled: %s\n", clean(strings.TrimSpace(cancel.Reason+" "+cancel.Message))))
			default:
				return c.print("continue\n")
			}
		})
	cmd.Flags().StringVar(&details, "details", "",
		"progress for the next attempt: JSON, @FILE, or - for stdin (default: last details)")
	cmd.Long = cmd.Short + `.

The command prints "continue", or "cancelled" and the reason. After a cancellation, stop the work and complete
or fail the attempt.` + aboutHolders
	cmd.Example = `  perdure heartbeat - --details '{"page": 7}' < token`
	return cmd
}

// printEnded prints that an attempt has ended, or the body of the call that ended it.
func printEnded(c *command, how string) error {
	if c.json {
		return c.printJSON(struct{}{})
	}
	return c.print(how + "\n")
}

// readToken reads a token from an argument or from stdin, which a flag cannot use at the same time.
func readToken(c *command, from, flag, value string) (string, error) {
	switch {
	case from != "-":
		return from, nil
	case value == "-":
		return "", &provider.FieldError{Field: flag, Problem: "and TOKEN cannot both be read from stdin"}
	}
	doc, err := io.ReadAll(io.LimitReader(c.in, mostTokens))
	if err != nil {
		return "", fmt.Errorf("%s: %w", argToken, err)
	}
	return strings.TrimSpace(string(doc)), nil
}
