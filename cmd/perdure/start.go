package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

type startFlags struct {
	input   string
	id      string
	version string
	key     string
	delay   time.Duration
	tags    []string
	wait    bool

	ifExists string
	event    string
	update   string
	data     string
	timeout  time.Duration
}

func startVerb(c *command) *cobra.Command {
	var f startFlags
	var cmd *cobra.Command
	cmd = c.verb("start NAME", "Start an instance of an orchestration and print its id", argName,
		func(ctx context.Context, cl *client.Client, name string) error {
			return c.start(ctx, cl, name, f, cmd.Flags().Changed)
		})
	cmd.Example = `  perdure start fulfil --input '{"order": 7}'
  perdure start fulfil --id order-7 --input @order.json --wait
  perdure start remind --delay 72h --tag team=billing --tag order=7
  perdure start fulfil --id order-7 --if-exists replace
  perdure start cart --id cart-ann --raise added --data '"tea"' --idempotency-key add-99
  perdure start cart --id cart-ann --update add --data '"tea"' --idempotency-key add-99 --timeout 30s
  perdure start charge --idempotency-key invoice-2026-07 --version 1.2.0`
	cmd.Flags().StringVar(&f.input, "input", "null", "the input: JSON, @FILE, or - for stdin")
	cmd.Flags().StringVar(&f.id, "id", "", "the instance id (default: a new ULID)")
	cmd.Flags().StringVar(&f.version, "version", "", "the orchestration's version (default: the highest)")
	cmd.Flags().StringVar(&f.ifExists, "if-exists", "", "where --id is in use: ignore leaves alone what has it, replace ends and deletes it before (default: an error)")
	cmd.Flags().StringVar(&f.event, flagRaise, "", "raise this event in the instance with --id, which is started only if there is none; --idempotency-key is the event's id, too")
	cmd.Flags().StringVar(&f.update, flagUpdate, "", "send this update to the instance with --id, which is started only if there is none, and print its answer; --idempotency-key is the update's id, too")
	cmd.Flags().StringVar(&f.data, "data", "null", "the data of the event or the update: JSON, @FILE, or - for stdin")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "with --update, give up after this long, such as 30s (default: never)")
	cmd.Flags().StringVar(&f.key, "idempotency-key", "", "starts of this orchestration with the same key are one start")
	cmd.Flags().DurationVar(&f.delay, "delay", 0, "wait this long before the first turn, such as 90s or 24h")
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "a tag as KEY=VALUE; may be repeated")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait for the end, and exit as perdure wait does")
	return cmd
}

func (c *command) start(ctx context.Context, cl *client.Client, name string, f startFlags, given func(flag string) bool) error {
	if err := checkTold(f, given); err != nil {
		return err
	}
	input, err := readInput(c, f.input)
	if err != nil {
		return err
	}
	tags, err := parseTags(f.tags)
	if err != nil {
		return err
	}

	opts := []client.StartOption{client.WithVersion(f.version), client.WithTags(tags), client.WithDelay(f.delay)}
	if given("id") {
		opts = append(opts, client.WithInstanceID(f.id))
	}
	if given("idempotency-key") {
		opts = append(opts, client.WithIdempotencyKey(f.key))
	}
	if given("if-exists") {
		opts = append(opts, client.IfExists(client.ExistsPolicy(f.ifExists)))
	}

	switch {
	case given(flagRaise):
		return startOrRaise(ctx, c, cl, name, input, f, opts)
	case given(flagUpdate):
		return startOrUpdate(ctx, c, cl, name, input, f, opts)
	}
	id, err := cl.Start(ctx, name, input, opts...)
	if err != nil {
		return err
	}
	return started(ctx, c, cl, httpapi.NewStarted(id), f.wait)
}

const (
	flagRaise  = "raise"
	flagUpdate = "update"
)

// checkTold returns what is wrong with the flags of what the instance is told once it is there.
func checkTold(f startFlags, given func(flag string) bool) error {
	told := given(flagRaise) || given(flagUpdate)
	switch {
	case given(flagRaise) && given(flagUpdate):
		return &provider.FieldError{Field: "--update", Problem: "is given beside --raise: a start has one of them"}
	case given("data") && !told:
		return &provider.FieldError{Field: "--data", Problem: "is that of an event or an update: name it with --raise or --update"}
	case f.data == "-" && f.input == "-":
		return &provider.FieldError{Field: "--data", Problem: "cannot be read from stdin: --input is"}
	case f.wait && given(flagUpdate):
		return &provider.FieldError{Field: "--wait", Problem: "is for the end of the instance, and --update waits for its answer: perdure wait follows it"}
	case given("timeout") && !given(flagUpdate):
		return &provider.FieldError{Field: "--timeout", Problem: "is that of an update: name it with --update"}
	default:
		return nil
	}
}

// startOrUpdate prints the answer of the update, as perdure update does.
func startOrUpdate(ctx context.Context, c *command, cl *client.Client, name string, input json.RawMessage, f startFlags, opts []client.StartOption) error {
	data, err := readInput(c, f.data)
	if err != nil {
		return err
	}
	limited, cancel := withTimeout(ctx, f.timeout)
	defer cancel()
	result, began, err := cl.StartOrUpdate(limited, name, input, f.update, data, opts...)
	u := httpapi.NewPutUpdate(f.id, f.update, f.key, began)
	u.Result = result
	if err == nil && !began && !c.json {
		fmt.Fprintln(c.err, "it was there: the update is sent to it, and the input is not used")
	}
	return printUpdated(c, u, err)
}

func startOrRaise(ctx context.Context, c *command, cl *client.Client, name string, input json.RawMessage, f startFlags, opts []client.StartOption) error {
	data, err := readInput(c, f.data)
	if err != nil {
		return err
	}
	began, err := cl.StartOrRaise(ctx, name, input, f.event, data, opts...)
	if err != nil {
		return err
	}
	if !began && !c.json {
		fmt.Fprintln(c.err, "it was there: the event is raised in it, and the input is not used")
	}
	answer := httpapi.NewStarted(f.id)
	answer.Started = &began
	return started(ctx, c, cl, answer, f.wait)
}

// started prints what was started, and waits for its end where that is asked for.
func started(ctx context.Context, c *command, cl *client.Client, answer httpapi.Started, wait bool) error {
	if wait {
		return c.startedAndWait(ctx, cl, answer.InstanceID)
	}
	if c.json {
		return c.printJSON(answer)
	}
	return c.print(clean(answer.InstanceID) + "\n")
}

// startedAndWait prints the id at once, since a user who stops waiting needs it. With --json, stdout is for the result
// alone.
func (c *command) startedAndWait(ctx context.Context, cl *client.Client, id string) error {
	if c.json {
		fmt.Fprintln(c.err, clean(id))
	} else if err := c.print(clean(id) + "\n"); err != nil {
		return err
	}
	return c.wait(ctx, cl, id, 0)
}

// readInput reads one byte more than any hub allows, so that an input that is too large is recognised: which limit holds, the client knows.
func readInput(c *command, from string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(from, "@")
	source := c.in
	switch {
	case isFile:
		f, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return nil, fmt.Errorf("read JSON: %w", err)
		}
		defer f.Close() //nolint:errcheck // nothing was written
		source = f
	case from != "-":
		return json.RawMessage(from), nil
	}
	doc, err := io.ReadAll(io.LimitReader(source, perdure.MaxLargePayloadBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return doc, nil
}

func parseTags(tags []string) (map[string]string, error) {
	parsed := map[string]string{}
	for _, tag := range tags {
		key, value, ok := strings.Cut(tag, "=")
		if !ok {
			return nil, &provider.FieldError{Field: "--tag", Problem: fmt.Sprintf("%q is not KEY=VALUE", tag)}
		}
		if _, twice := parsed[key]; twice {
			return nil, &provider.FieldError{Field: "--tag", Problem: fmt.Sprintf("%q is given more than once", key)}
		}
		parsed[key] = value
	}
	return parsed, nil
}
