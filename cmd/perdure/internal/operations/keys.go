package operations

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// keysResult is the --json output of keys.
type keysResult struct {
	Keys []hubadmin.SigningKey `json:"keys"`
}

// Keys returns the command keys.
func Keys(env *cli.Env) *cobra.Command {
	list := func(ctx context.Context, h *hubadmin.Admin) error {
		all, err := h.SigningKeys().List(ctx)
		if err != nil {
			return err
		}
		return env.PrintResult(keysResult{all}, keyTable(all))
	}
	cmd := env.DeploymentCommand("keys", "List or rotate signing keys", list)
	cmd.Long = cmd.Short + `.

The keys sign the tokens of work items and the completion tokens of activities. The newest key signs, and all
keys verify. Secrets are not shown. To replace a key, add one, and remove the old one when it is no longer
used. No deployment is necessary, and no token becomes invalid in between.`
	cmd.Example = "  perdure keys\n  perdure keys add\n  perdure keys remove 1"
	cmd.AddCommand(addKey(env), removeKey(env))
	return cmd
}

func addKey(env *cli.Env) *cobra.Command {
	cmd := env.DeploymentCommand("add", "Add a signing key", func(ctx context.Context, h *hubadmin.Admin) error {
		k, err := h.SigningKeys().Add(ctx)
		if err != nil {
			return err
		}
		from := "from " + term.Time(*k.SignsFrom)
		if k.State == hubadmin.KeySigning {
			from = "at once"
		}
		return env.PrintResult(k, fmt.Sprintf("key %d added; it signs %s\n", k.Number, from))
	})
	cmd.Long = cmd.Short + `.

The key starts to sign after 15 minutes, when all processes that verify tokens have read it. Running processes
sign with it within a day, and processes that start later sign with it at once. The first key of a hub signs
at once.`
	cmd.Example = "  perdure keys add"
	return cmd
}

func removeKey(env *cli.Env) *cobra.Command {
	var force, yes bool
	var number int64
	remove := func(ctx context.Context, h *hubadmin.Admin) error {
		if !yes {
			fmt.Fprintf(env.Stderr, "hub %s: tokens of key %d become invalid, also those of pending asynchronous "+
				"activities\n", term.Clean(env.HubName), number)
			if err := env.Confirm(ctx, "remove key"); err != nil {
				return err
			}
		}
		err := h.SigningKeys().Remove(ctx, number, force)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			return cli.Exitf(cli.CodeError, "key %d not found; run perdure keys to see all keys", number)
		case errors.Is(err, hubadmin.ErrKeyInUse) && !force:
			return fmt.Errorf("%w; --force removes a key that has leaked", err)
		case err != nil:
			return err
		}
		return env.PrintResult(map[string]int64{"removed": number}, fmt.Sprintf("key %d removed\n", number))
	}
	cmd := env.DeploymentCommand("remove NUMBER", "Remove a signing key", remove)
	cmd.Args = func(cmd *cobra.Command, args []string) (err error) {
		if err = cli.CheckArgs(cmd, args, "NUMBER"); err != nil {
			return err
		}
		if number, err = strconv.ParseInt(args[0], 10, 64); err != nil || number < 1 {
			return &provider.FieldError{Field: "NUMBER", Problem: fmt.Sprintf("must be positive, is %q", args[0])}
		}
		return nil
	}
	cmd.Long = cmd.Short + `.

The command rejects the newest key, and a key whose tokens messages can have. That is the case for 29 days after
the next key has started to sign. Tokens of asynchronous activities have no time limit: wait until activities
that started with the key have ended. Processes reject the tokens of a removed key within ten minutes.`
	cmd.Example = "  perdure keys remove 1\n  perdure keys remove 1 --force"
	cmd.Flags().BoolVar(&force, "force", false, "removal of a key that is in use, such as a leaked one")
	cmd.Flags().BoolVar(&yes, "yes", false, flagvalue.YesUsage)
	return cmd
}

func keyTable(all []hubadmin.SigningKey) string {
	if len(all) == 0 {
		return "no keys; the first process that sends a work item creates one\n"
	}
	t := term.Table{Header: []string{">KEY", "STATE", "CREATED", "SIGNS FROM", "USED UNTIL", "PROBLEM"}}
	for i := range all {
		k := &all[i]
		number := strconv.FormatInt(k.Number, 10)
		if k.Number == 0 {
			number = term.Clean(k.Item)
		}
		t.Add(number, k.State, timeText(k.CreatedAt), timeText(k.SignsFrom), timeText(k.UsedUntil),
			term.OneLine(k.Problem))
	}
	return t.String()
}

// timeText returns a time, or an empty text if it is unknown.
func timeText(at *time.Time) string {
	if at == nil {
		return ""
	}
	return term.Time(*at)
}
