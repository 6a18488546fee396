package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// ErrorText returns the message of an error, followed by the fix.
func (env *Env) ErrorText(err error) string {
	hub := env.Place()
	var (
		unopened *OpenError
		field    *provider.FieldError
		failed   *provider.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &unopened) && errors.Is(err, provider.ErrNotFound):
		return fmt.Sprintf("%s not found in this account and region; set --hub or PERDURE_HUB, "+
			"and check AWS_PROFILE and AWS_REGION", hub)
	case errors.As(err, &unopened):
		return fmt.Sprintf("open %s: %v; "+
			"check AWS credentials, AWS_PROFILE, AWS_REGION and AWS_ENDPOINT_URL", hub, err)
	case errors.As(err, &field):
		return field.Error()
	case errors.Is(err, client.ErrUnknownOrchestration):
		return fmt.Sprintf("no build deployed to %s has this orchestration and version; check the spelling, "+
			"or deploy it and retry after a moment", hub)
	case errors.Is(err, client.ErrAlreadyExists):
		return alreadyExistsText(err, hub)
	case statusErrorText(err) != "":
		return statusErrorText(err)
	case errors.Is(err, client.ErrActivityNotFound):
		return "activity not found in the current execution; perdure history lists the event IDs of its activities"
	case errors.Is(err, client.ErrNotFound):
		return fmt.Sprintf("instance not found in %s; run perdure list to see its instances", hub)
	case errors.Is(err, provider.ErrCorrupt):
		return err.Error() + "; deploy a newer build, restore the item from a backup, " +
			"or delete the instance with perdure purge --force"
	case errors.As(err, &failed) && failed.Retryable:
		return err.Error() + "; try again"
	default:
		return reportedError(err).Error()
	}
}

// reportedError returns the error of a query, an update or a token without the operation that wraps it. It returns
// other errors unchanged.
func reportedError(err error) error {
	if e, is := errors.AsType[*client.QueryError](err); is {
		return e
	}
	if e, is := errors.AsType[*client.UpdateError](err); is {
		return e
	}
	if e, is := errors.AsType[*client.TokenError](err); is {
		return e
	}
	return err
}

// alreadyExistsText returns the message for a start whose instance ID or idempotency key is in use.
func alreadyExistsText(err error, hub string) string {
	if errors.Is(err, client.ErrPurged) {
		return "idempotency key already used by an instance that was purged; set another --idempotency-key"
	}
	what := ""
	if e, ok := errors.AsType[*client.AlreadyExistsError](err); ok && e.Holder() != "" {
		what = " by " + e.Holder()
	}
	return fmt.Sprintf("instance ID already in use in %s%s; "+
		"check it with perdure status, or set another --id or --if-exists", hub, what)
}

// statusErrorText returns the message for an operation that the current status does not permit, or "" for other errors.
func statusErrorText(err error) string {
	switch {
	case errors.Is(err, client.ErrEnded):
		return "instance has ended; see perdure status"
	case errors.Is(err, client.ErrNotEnded):
		return "instance has not ended; cancel or terminate it first, or purge it with --force"
	case errors.Is(err, client.ErrNotCancellable):
		return "activity is not pending or running; see perdure history"
	default:
		return ""
	}
}
