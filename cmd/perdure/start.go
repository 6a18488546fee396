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
	cmd = c.verb("start NAME", "Start an instance", argName,
		func(ctx context.Context, cl *client.Client, name string) error {
			return c.start(ctx, cl, name, f, cmd.Flags().Changed)
		})
	cmd.Long = cmd.Short + ` of an orchestration.

The command prints the ID of the instance. With --wait, it also waits for the end and exits like perdure wait.
With --event or --update, it starts the instance with --id only if it does not exist, and sends it the event
or the update. With --update, it prints the result of the update. If --timeout expires first, the command exits
with code 4 and the update continues.`
	cmd.Example = `  perdure start fulfil --input '{"order": 7}'
  perdure start fulfil --id order-7 --input @order.json --wait
  perdure start remind --delay 72h --tag team=billing --tag order=7
  perdure start fulfil --id order-7 --if-exists replace
  perdure start cart --id cart-ann --event added --data '"tea"' --idempotency-key add-99
  perdure start cart --id cart-ann --update add --data '"tea"' --idempotency-key add-99 --timeout 30s
  perdure start charge --idempotency-key invoice-2026-07 --version 1.2.0`
	cmd.Flags().StringVar(&f.input, "input", "null", "input: JSON, @FILE, or - for stdin")
	cmd.Flags().StringVar(&f.id, "id", "", "instance ID (default: a new ULID)")
	cmd.Flags().StringVar(&f.version, "version", "", "orchestration version (default: the highest)")
	cmd.Flags().StringVar(&f.ifExists, "if-exists", "",
		"policy if --id is in use: ignore (keep it), replace (terminate and delete it) (default: error)")
	cmd.Flags().StringVar(&f.event, flagEvent, "",
		"event for the instance with --id; --idempotency-key is also the event ID")
	cmd.Flags().StringVar(&f.update, flagUpdate, "",
		"update for the instance with --id; --idempotency-key is also the update ID")
	cmd.Flags().StringVar(&f.data, "data", "null", "data of the event or update: JSON, @FILE, or - for stdin")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "maximum wait for the update, such as 30s (default: none)")
	cmd.Flags().StringVar(&f.key, "idempotency-key", "", "key for deduplication of starts of this orchestration")
	cmd.Flags().DurationVar(&f.delay, "delay", 0, delayUsage)
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "tag as KEY=VALUE; repeatable")
	cmd.Flags().BoolVar(&f.wait, "wait", false, waitUsage)
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
		opts = append(opts, client.IfExists(client.IDConflictPolicy(f.ifExists)))
	}

	switch {
	case given(flagEvent):
		return startOrRaise(ctx, c, cl, name, input, f, opts)
	case given(flagUpdate):
		return startOrUpdate(ctx, c, cl, name, input, f, opts)
	}
	id, err := cl.Start(ctx, name, input, opts...)
	if err != nil {
		return err
	}
	return started(ctx, c, cl, httpapi.NewStartResponse(id), f.wait)
}

const (
	flagEvent  = "event"
	flagUpdate = "update"
)

// The usage texts of flags that several commands have.
const (
	delayUsage   = "delay before the first turn, such as 90s or 24h"
	timeoutUsage = "maximum wait, such as 30s (default: none)"
	waitUsage    = "wait for the end, with the exit codes of perdure wait"
)

// checkTold checks the flags for the event or update that follows the start.
func checkTold(f startFlags, given func(flag string) bool) error {
	told := given(flagEvent) || given(flagUpdate)
	switch {
	case given(flagEvent) && given(flagUpdate):
		return &provider.FieldError{Field: "--update", Problem: "and --event are mutually exclusive"}
	case given("data") && !told:
		return &provider.FieldError{Field: "--data", Problem: "requires --event or --update"}
	case f.data == "-" && f.input == "-":
		return &provider.FieldError{Field: "--data", Problem: "cannot be read from stdin together with --input"}
	case f.wait && given(flagUpdate):
		return &provider.FieldError{
			Field:   "--wait",
			Problem: "and --update are mutually exclusive; run perdure wait after the update",
		}
	case given("timeout") && !given(flagUpdate):
		return &provider.FieldError{Field: "--timeout", Problem: "requires --update"}
	default:
		return nil
	}
}

// startOrUpdate prints the result of the update, like perdure update.
func startOrUpdate(ctx context.Context, c *command, cl *client.Client, name string, input json.RawMessage, f startFlags, opts []client.StartOption) error {
	data, err := readInput(c, f.data)
	if err != nil {
		return err
	}
	limited, cancel := withTimeout(ctx, f.timeout)
	defer cancel()
	result, began, err := cl.StartOrUpdate(limited, name, input, f.update, data, opts...)
	u := httpapi.NewPendingUpdateResponse(f.id, f.update, f.key, began)
	u.Result = result
	if err == nil && !began && !c.json {
		fmt.Fprintln(c.err, "instance already exists; sent the update and ignored the input")
	}
	return printUpdated(c, u, err)
}

func startOrRaise(ctx context.Context, c *command, cl *client.Client, name string, input json.RawMessage, f startFlags, opts []client.StartOption) error {
	data, err := readInput(c, f.data)
	if err != nil {
		return err
	}
	began, err := cl.StartOrRaiseEvent(ctx, name, input, f.event, data, opts...)
	if err != nil {
		return err
	}
	if !began && !c.json {
		fmt.Fprintln(c.err, "instance already exists; sent the event and ignored the input")
	}
	answer := httpapi.NewStartResponse(f.id)
	answer.Started = &began
	return started(ctx, c, cl, answer, f.wait)
}

// started prints the ID of a started instance, and waits for its end if wait is set.
func started(ctx context.Context, c *command, cl *client.Client, answer httpapi.StartResponse, wait bool) error {
	if wait {
		return c.startedAndWait(ctx, cl, answer.InstanceID)
	}
	if c.json {
		return c.printJSON(answer)
	}
	return c.print(clean(answer.InstanceID) + "\n")
}

// startedAndWait prints the ID before it waits, because a user who interrupts the command needs it. With --json, the ID
// goes to stderr, because stdout has only the result.
func (c *command) startedAndWait(ctx context.Context, cl *client.Client, id string) error {
	if c.json {
		fmt.Fprintln(c.err, clean(id))
	} else if err := c.print(clean(id) + "\n"); err != nil {
		return err
	}
	return c.wait(ctx, cl, id, 0)
}

// readInput reads one byte more than any hub allows, so that the client can reject an input that is too large.
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
			return nil, &provider.FieldError{Field: "--tag", Problem: fmt.Sprintf("%q is set more than once", key)}
		}
		parsed[key] = value
	}
	return parsed, nil
}
