package flagvalue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// asFlag names the flag in an error about the field that the flag sets. It returns other errors unchanged.
func AsFlag(err error, field, flag string) error {
	if e, is := errors.AsType[*provider.FieldError](err); is && e.Field == field {
		return &provider.FieldError{Field: flag, Problem: e.Problem}
	}
	return err
}

// The usage texts of flags that several commands have.
const (
	StartedAfterUsage  = "earliest start time (inclusive), RFC 3339, such as 2006-01-02T15:04:05Z"
	StartedBeforeUsage = "latest start time (exclusive), RFC 3339"
	YesUsage           = "no confirmation prompt"
)

// noneEmpty rejects a filter with an empty value, such as an unset variable of a script. Ignoring it would select more
// instances than intended.
func RejectEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		flag := cmd.Flags().Lookup(name)
		if value := flag.Value.String(); flag.Changed && (value == "" || value == "[]") {
			return &provider.FieldError{Field: "--" + name, Problem: "must not be empty; set a value or omit the flag"}
		}
	}
	return nil
}

// onlyOfOne rejects a flag that applies to a single instance if a filter is used.
func RequireID(cmd *cobra.Command, flag, instead string) {
	args := cmd.Args
	cmd.Args = func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s requires an instance ID%s", flag, instead)
		}
		return args(cmd, given)
	}
}

// parseStarted reads the times of --started-after and --started-before; those that are not given stay.
func ParseStarted(after, before string, intoAfter, intoBefore *time.Time) error {
	return ParseTimes(TimeFlag{"--started-after", after, intoAfter}, TimeFlag{"--started-before", before, intoBefore})
}

// timeFlag is a flag that is a time, where it is given.
type TimeFlag struct {
	Name, Value string
	Into        *time.Time
}

func ParseTimes(flags ...TimeFlag) error {
	for _, at := range flags {
		if at.Value == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, at.Value)
		if err != nil {
			problem := "must be an RFC 3339 time such as 2006-01-02T15:04:05Z"
			return &provider.FieldError{Field: at.Name, Problem: problem}
		}
		*at.Into = t
	}
	return nil
}

// statuses returns all statuses of instances.
func Statuses() []client.RuntimeStatus {
	return []client.RuntimeStatus{
		client.StatusPending, client.StatusRunning, client.StatusCompleted, client.StatusFailed,
		client.StatusCancelling, client.StatusCancelled, client.StatusTerminated, client.StatusBlocked,
		client.StatusPaused, client.StatusDeleting,
	}
}

// parseStatus returns the status with this name in any case. It returns other names unchanged.
func ParseStatus(name string) client.RuntimeStatus {
	for _, s := range Statuses() {
		if strings.EqualFold(name, string(s)) {
			return s
		}
	}
	return client.RuntimeStatus(name)
}

// limitUsage describes the --limit flag of a list.
const LimitUsage = "maximum number of rows, 1 to 1000"

// cursorUsage describes the --cursor flag of a list.
const CursorUsage = "position at which the previous page with the same flags ended"

// checkLimit rejects 0, which the client treats as no limit.
func CheckLimit(limit int) error {
	if limit < 1 {
		return &provider.FieldError{Field: "--limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", client.MaxPageSize, limit)}
	}
	return nil
}

// The usage texts of flags that several commands have.
const (
	DelayUsage   = "delay before the first turn, such as 90s or 24h"
	TimeoutUsage = "maximum wait, such as 30s (default: none)"
	WaitUsage    = "wait for the end, with the exit codes of perdure wait"
)

func ParseTags(tags []string) (map[string]string, error) {
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

// withTimeout returns ctx, with a timeout if there is one.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return ctx, func() {}
}
