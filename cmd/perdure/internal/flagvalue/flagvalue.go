// Package flagvalue parses and checks the values of flags, and defines the flags and usage texts that several commands
// share.
package flagvalue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// AsFlag replaces the name of the field by the name of the flag in an error about the field. It returns other errors
// unchanged.
func AsFlag(err error, field, flag string) error {
	if e, is := errors.AsType[*provider.FieldError](err); is && e.Field == field {
		return &provider.FieldError{Field: flag, Problem: e.Problem}
	}
	return err
}

// Usage texts of flags.
const (
	LimitUsage         = "maximum number of rows, 1 to 1000"
	cursorUsage        = "position at which the previous page with the same flags ended"
	DelayUsage         = "delay before the first turn, such as 90s or 24h"
	TimeoutUsage       = "maximum wait, such as 30s (default: none)"
	WaitUsage          = "wait for the end, with the exit codes of perdure wait"
	StartedAfterUsage  = "earliest start time (inclusive), RFC 3339, such as 2006-01-02T15:04:05Z"
	StartedBeforeUsage = "latest start time (exclusive), RFC 3339"
	YesUsage           = "no confirmation prompt"
)

// RejectEmpty returns an error if a filter has an empty value, such as an unset variable of a script. Such a filter
// would select more instances than intended.
func RejectEmpty(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		flag := cmd.Flags().Lookup(name)
		if value := flag.Value.String(); flag.Changed && (value == "" || value == "[]") {
			return &provider.FieldError{Field: "--" + name, Problem: "must not be empty; set a value or omit the flag"}
		}
	}
	return nil
}

// RequireID makes a flag require an instance ID. hint is appended to the error.
func RequireID(cmd *cobra.Command, flag, hint string) {
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s requires an instance ID%s", flag, hint)
		}
		return check(cmd, args)
	}
}

// ParseStarted parses --started-after and --started-before. An empty flag does not change its time.
func ParseStarted(after, before string, intoAfter, intoBefore *time.Time) error {
	return cmp.Or(ParseTime("--started-after", after, intoAfter), ParseTime("--started-before", before, intoBefore))
}

// ParseTime parses the value of a flag. An empty value does not change the time.
func ParseTime(flag, value string, into *time.Time) error {
	if value == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		problem := "must be an RFC 3339 time such as 2006-01-02T15:04:05Z"
		return &provider.FieldError{Field: flag, Problem: problem}
	}
	*into = t
	return nil
}

// Statuses returns all statuses of instances.
func Statuses() []client.RuntimeStatus {
	return []client.RuntimeStatus{
		client.StatusPending, client.StatusRunning, client.StatusCompleted, client.StatusFailed,
		client.StatusCancelling, client.StatusCancelled, client.StatusTerminated, client.StatusBlocked,
		client.StatusPaused, client.StatusDeleting,
	}
}

// ParseStatus returns the status with this name in any case. It returns other names unchanged.
func ParseStatus(name string) client.RuntimeStatus {
	for _, s := range Statuses() {
		if strings.EqualFold(name, string(s)) {
			return s
		}
	}
	return client.RuntimeStatus(name)
}

// AddPaging adds the flags --limit and --cursor.
func AddPaging(cmd *cobra.Command, p *client.Paging, rows int) {
	cmd.Flags().IntVar(&p.Limit, "limit", rows, LimitUsage)
	cmd.Flags().StringVar(&p.Cursor, "cursor", "", cursorUsage)
}

// CheckLimit returns an error for a limit below 1. The client would use its default for 0.
func CheckLimit(limit int) error {
	if limit < 1 {
		return &provider.FieldError{
			Field: "--limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", client.MaxPageSize, limit),
		}
	}
	return nil
}

// ParseTags parses tags of the form KEY=VALUE.
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

// WithTimeout returns ctx with a timeout, and the function that releases its resources. 0 means no timeout.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return ctx, func() {}
}
