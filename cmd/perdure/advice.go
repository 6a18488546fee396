package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// openError reports that the hub itself could not be opened.
type openError struct{ cause error }

// Error implements error.
func (e *openError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *openError) Unwrap() error { return e.cause }

// advise returns an error in one sentence, with what to do next.
func advise(err error, hub string) string {
	var (
		unopened *openError
		field    *provider.FieldError
		failed   *provider.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &unopened) && errors.Is(err, provider.ErrNotFound):
		return fmt.Sprintf("no hub %q in this account and region: name yours with --hub or PERDURE_HUB, and check AWS_PROFILE and AWS_REGION", hub)
	case errors.As(err, &unopened):
		return fmt.Sprintf("hub %q cannot be opened (%v): check AWS credentials, AWS_PROFILE, AWS_REGION and AWS_ENDPOINT_URL", hub, err)
	case errors.As(err, &field):
		return field.Error()
	case errors.Is(err, client.ErrUnknownOrchestration):
		return fmt.Sprintf("no build deployed to hub %q knows this orchestration in this version: check the spelling, or deploy it; one deployed just now is known within moments", hub)
	case errors.Is(err, client.ErrAlreadyExists):
		return taken(err, hub)
	case notNow(err) != "":
		return notNow(err)
	case errors.Is(err, client.ErrActivityNotFound):
		return "the current execution has no such activity: perdure history shows those it has, each by the number of the event that scheduled it"
	case errors.Is(err, client.ErrNotFound):
		return fmt.Sprintf("no such instance in hub %q: perdure list shows those there are", hub)
	case errors.Is(err, provider.ErrCorrupt):
		return err.Error() + ": a later build may read it, or the item is restored from a backup; perdure purge --force ends and deletes the instance without it"
	case errors.As(err, &failed) && failed.Retryable:
		return err.Error() + ": try again"
	default:
		return answered(err).Error()
	}
}

// answered returns what a question, an update or a token was answered, without the call that has the answer; other errors as they are.
func answered(err error) error {
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

// taken returns the sentence for a start whose id is in use.
func taken(err error, hub string) string {
	if errors.Is(err, client.ErrPurged) {
		return "a start with this idempotency key has been made before, and its instance was purged since: another start takes another --idempotency-key"
	}
	what := ""
	if e, ok := errors.AsType[*client.AlreadyExistsError](err); ok && e.Holder() != "" {
		what = " by " + e.Holder()
	}
	return fmt.Sprintf("the instance id is in use in hub %q%s: see what it is with perdure status, or choose another --id, or --if-exists", hub, what)
}

// notNow returns the sentence for an operation that the present state does not permit; empty for other errors.
func notNow(err error) string {
	switch {
	case errors.Is(err, client.ErrTerminal):
		return "the instance is over: see how it ended with perdure status"
	case errors.Is(err, client.ErrNotTerminal):
		return "the instance is not over: end it with perdure cancel or perdure terminate; a purge takes --force"
	case errors.Is(err, client.ErrNotCancellable):
		return "the activity is neither pending nor running: see how it ended with perdure history"
	default:
		return ""
	}
}

func oneLine(s string) string { return clean(strings.Join(strings.Fields(s), " ")) }
