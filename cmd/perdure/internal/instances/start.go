// Package instances has the commands that start, read and change instances.
package instances

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
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

// Start returns the command start.
func Start(env *cli.Env) *cobra.Command {
	var f startFlags
	var cmd *cobra.Command
	cmd = env.ClientCommand("start NAME", "Start an instance", cli.ArgName,
		func(ctx context.Context, cl *client.Client, name string) error {
			return startInstance(ctx, env, cl, name, f, cmd.Flags().Changed)
		})
	cmd.Long = cmd.Short + ` of an orchestration.

The command prints the ID of the instance. With --wait, it also waits for the end and exits like perdure wait.
With --event or --update, it starts the instance only if --id does not exist, and then sends the event or the
update. With --update, it prints the result of the update. If --timeout expires first, the command exits with
code 4 and the update continues.`
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
	cmd.Flags().DurationVar(&f.delay, "delay", 0, flagvalue.DelayUsage)
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "tag as KEY=VALUE; repeatable")
	cmd.Flags().BoolVar(&f.wait, "wait", false, flagvalue.WaitUsage)
	return cmd
}

func startInstance(
	ctx context.Context, env *cli.Env, cl *client.Client, name string, f startFlags, given func(flag string) bool,
) error {
	if err := checkSendFlags(f, given); err != nil {
		return err
	}
	input, err := env.ReadInput(f.input)
	if err != nil {
		return err
	}
	tags, err := flagvalue.ParseTags(f.tags)
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

	if !given(flagEvent) && !given(flagUpdate) {
		id, err := cl.Start(ctx, name, input, opts...)
		if err != nil {
			return err
		}
		return started(ctx, env, cl, httpapi.NewStartResponse(id), f.wait)
	}
	data, err := env.ReadInput(f.data)
	if err != nil {
		return err
	}
	if given(flagEvent) {
		return startOrRaise(ctx, env, cl, name, input, data, f, opts)
	}
	return startOrUpdate(ctx, env, cl, name, input, data, f, opts)
}

const (
	flagEvent  = "event"
	flagUpdate = "update"
)

// checkSendFlags checks the flags for the event or update that follows the start.
func checkSendFlags(f startFlags, given func(flag string) bool) error {
	sends := given(flagEvent) || given(flagUpdate)
	switch {
	case given(flagEvent) && given(flagUpdate):
		return &provider.FieldError{Field: "--update", Problem: "and --event are mutually exclusive"}
	case given("data") && !sends:
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
func startOrUpdate(
	ctx context.Context, env *cli.Env, cl *client.Client, name string, input, data json.RawMessage, f startFlags,
	opts []client.StartOption,
) error {
	limited, cancel := flagvalue.WithTimeout(ctx, f.timeout)
	defer cancel()
	result, created, err := cl.StartOrUpdate(limited, name, input, f.update, data, opts...)
	u := httpapi.NewPendingUpdateResponse(f.id, f.update, f.key, created)
	u.Result = result
	if err == nil && !created && !env.JSON {
		fmt.Fprintln(env.Stderr, "instance already exists; sent the update and ignored the input")
	}
	return printUpdated(env, u, err)
}

func startOrRaise(
	ctx context.Context, env *cli.Env, cl *client.Client, name string, input, data json.RawMessage, f startFlags,
	opts []client.StartOption,
) error {
	created, err := cl.StartOrRaiseEvent(ctx, name, input, f.event, data, opts...)
	if err != nil {
		return err
	}
	if !created && !env.JSON {
		fmt.Fprintln(env.Stderr, "instance already exists; sent the event and ignored the input")
	}
	response := httpapi.NewStartResponse(f.id)
	response.Started = &created
	return started(ctx, env, cl, response, f.wait)
}

// started prints the ID of a started instance, and waits for its end if wait is set.
func started(ctx context.Context, env *cli.Env, cl *client.Client, response httpapi.StartResponse, wait bool) error {
	if wait {
		return startedAndWait(ctx, env, cl, response.InstanceID)
	}
	return env.PrintResult(response, term.Clean(response.InstanceID)+"\n")
}

// startedAndWait prints the ID and waits for the end. A user who interrupts the wait needs the ID. With --json, it
// prints the ID on stderr, because stdout has only the result.
func startedAndWait(ctx context.Context, env *cli.Env, cl *client.Client, id string) error {
	if env.JSON {
		fmt.Fprintln(env.Stderr, term.Clean(id))
	} else if err := env.Print(term.Clean(id) + "\n"); err != nil {
		return err
	}
	return waitForEnd(ctx, env, cl, id, 0)
}
