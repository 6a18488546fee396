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

// The verbs of whoever holds the token of an activity's attempt.

const (
	argToken   = "TOKEN"
	mostTokens = 16 << 10 // bytes that are read as one
)

const aboutHolders = `

TOKEN is what the activity has handed over, or - for stdin: other users of the machine can see what a
command is called with. One that does nothing is said to be none of the hub, of another hub, of an
earlier attempt, or of what is over. It is a secret: whoever has it may do this.`

func tokenVerbs(c *command) []*cobra.Command {
	return []*cobra.Command{completeVerb(c), failVerb(c), heartbeatVerb(c)}
}

func completeVerb(c *command) *cobra.Command {
	result := noInput
	cmd := c.verb("complete TOKEN", "Complete an activity that waits for it, by the token that it has handed over", argToken,
		func(ctx context.Context, cl *client.Client, from string) error {
			token, err := readToken(c, from, "--result", result)
			if err != nil {
				return err
			}
			doc, err := readInput(c, result)
			if err != nil {
				return err
			}
			if err := cl.Complete(ctx, token, doc); err != nil {
				return err
			}
			return printEnded(c, "completed")
		})
	cmd.Flags().StringVar(&result, "result", "null", "what the activity comes to: JSON, @FILE, or - for stdin")
	cmd.Long = cmd.Short + "." + aboutHolders
	cmd.Example = `  perdure complete - --result '{"approved": true}' < token`
	return cmd
}

func failVerb(c *command) *cobra.Command {
	var why httpapi.ReportedError
	details := ""
	cmd := c.verb("fail TOKEN", "Fail an attempt of an activity, by the token that it has handed over", argToken,
		func(ctx context.Context, cl *client.Client, from string) error {
			if why.Message == "" {
				return errors.New("--message is missing: it says why the attempt has failed")
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
			if err := cl.Fail(ctx, token, &why); err != nil {
				return err
			}
			return printEnded(c, "failed")
		})
	flags := cmd.Flags()
	flags.StringVar(&why.Message, "message", "", "why it has failed")
	flags.StringVar(&why.Type, "type", "", "what orchestrations and retry policies know the error by")
	flags.BoolVar(&why.Final, "non-retryable", false, "no policy tries it again")
	flags.StringVar(&details, "details", "", "what travels with the error: JSON of 4 KiB at most, @FILE, or - for stdin")
	completeWith[string](cmd, "message")
	completeWith[string](cmd, "type")
	cmd.Long = cmd.Short + `.

The activity's retry policy decides whether another attempt follows, which hands over another token.` + aboutHolders
	cmd.Example = `  perdure fail - --type Declined --message 'no funds' --details '{"code": 51}' --non-retryable < token`
	return cmd
}

func heartbeatVerb(c *command) *cobra.Command {
	details := ""
	cmd := c.verb("heartbeat TOKEN", "Say that an attempt of an activity is alive, by the token that it has handed over", argToken,
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
			cancel, err := cl.Heartbeat(ctx, token, given)
			switch {
			case err != nil:
				return err
			case c.json:
				return c.printJSON(httpapi.NewBeaten(cancel))
			case cancel.Requested:
				return c.print(fmt.Sprintf("cancelled: %s\n", clean(strings.TrimSpace(cancel.Reason+" "+cancel.Message))))
			default:
				return c.print("go on\n")
			}
		})
	cmd.Flags().StringVar(&details, "details", "", "what the next attempt is to go on from: JSON, @FILE, or - for stdin (default: what was given before)")
	cmd.Long = cmd.Short + `.

It prints whether to go on, or that the activity is cancelled, and why: then come to an end, and complete
or fail it.` + aboutHolders
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

// readToken reads a token from an argument, or from stdin, of which a flag cannot be as well.
func readToken(c *command, from, flag, value string) (string, error) {
	switch {
	case from != "-":
		return from, nil
	case value == "-":
		return "", &provider.FieldError{Field: flag, Problem: "and TOKEN cannot both be of stdin"}
	}
	doc, err := io.ReadAll(io.LimitReader(c.in, mostTokens))
	if err != nil {
		return "", fmt.Errorf("%s: %w", argToken, err)
	}
	return strings.TrimSpace(string(doc)), nil
}
