package lambdahandler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/logevent"
)

// renewerEvent contains the fields that distinguish the kinds of events. They are records of the timers queue, a tick
// of the sweeper's rule, a request of the HTTP API, and leases in a direct invocation of the function.
type renewerEvent struct {
	events.SQSEvent

	Source         string `json:"source"`
	RequestContext struct {
		HTTP struct {
			Method string `json:"method"`
		} `json:"http"`
	} `json:"requestContext"`
	Leases json.RawMessage `json:"leases"`
}

// kinds returns the kinds that match the event. Only an event of exactly one kind is valid.
func (e *renewerEvent) kinds() (kinds []eventKind) {
	for kind, is := range map[eventKind]bool{
		queueEvent: len(e.Records) > 0, ruleEvent: e.Source == ruleSource,
		apiEvent: e.RequestContext.HTTP.Method != "", leasesEvent: len(e.Leases) > 0,
	} {
		if is {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

type eventKind int

const (
	queueEvent eventKind = iota
	ruleEvent
	apiEvent
	leasesEvent
)

// ruleSource is the source of the events of an EventBridge rule.
const ruleSource = "aws.events"

// renewer is the renewer function. It fires timers, runs the sweeper, and renews locks for workers in other languages.
type renewer struct {
	renewer  *dispatch.Renewer
	client   *client.Client
	declared *declaredSchedules
	http     httpFunction
	log      *slog.Logger
}

func newRenewer(k *dispatch.Renewer, c *client.Client, schedules string, log *slog.Logger) *renewer {
	return &renewer{
		renewer: k, client: c, declared: newDeclaredSchedules(c, schedules), log: log,
		http: httpHandler(httpapi.NewRenewHandler(c, httpapi.WithLogger(log)), notAuthorized),
	}
}

// handle dispatches an event by its kind. It rejects unknown events, and events that match two kinds.
func (r *renewer) handle(ctx context.Context, raw json.RawMessage) (any, error) {
	var e renewerEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, fmt.Errorf("lambdahandler: renewer: decode event: %w", err)
	}

	kinds := e.kinds()
	if len(kinds) != 1 {
		return nil, errors.New(
			"lambdahandler: renewer: unknown event; expected SQS records, a rule event, an API request or leases",
		)
	}
	switch kinds[0] {
	case queueEvent:
		return failures(r.renewer.HandleRecords(ctx, recordsOf(e.SQSEvent))), nil
	case ruleEvent:
		woken, err := r.sweep(ctx)
		return map[string]int{"woken": woken}, err
	case apiEvent:
		var request events.APIGatewayV2HTTPRequest
		if err := json.Unmarshal(raw, &request); err != nil {
			return nil, fmt.Errorf("lambdahandler: renewer: decode request: %w", err)
		}
		return r.http(ctx, request)
	default:
		result, err := httpapi.RenewLeases(ctx, r.client, r.log, raw)
		if err != nil {
			r.log.WarnContext(ctx, "lease renewal request failed", "event", logevent.LeaseRequestFailed, "error", err)
			return nil, err
		}
		return result, nil
	}
}

// sweep puts the declared schedules and runs the sweeper.
func (r *renewer) sweep(ctx context.Context) (woken int, err error) {
	declared := r.declared.putAll(ctx)
	woken, err = r.renewer.Sweep(ctx)
	return woken, errors.Join(err, declared)
}
