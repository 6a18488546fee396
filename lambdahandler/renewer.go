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

// renewerEvent has the fields that distinguish the renewer's events: records of the timers queue, the tick of the
// watch's rule, a request of the HTTP API, and leases in a direct invocation of the function.
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

// kinds returns the kinds that an event may be; only an event of exactly one kind is valid.
func (e *renewerEvent) kinds() (kinds []eventKind) {
	for kind, is := range map[eventKind]bool{
		ofQueue: len(e.Records) > 0, ofRule: e.Source == sourceOfTicks, ofAPI: e.RequestContext.HTTP.Method != "", ofLeases: len(e.Leases) > 0,
	} {
		if is {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

type eventKind int

const (
	ofQueue eventKind = iota
	ofRule
	ofAPI
	ofLeases
)

// sourceOfTicks is the source of the events of an EventBridge rule.
const sourceOfTicks = "aws.events"

// renewer is the renewer function: it keeps time, keeps watch, and renews locks for processes that have no worker of
// this module.
type renewer struct {
	timekeeper *dispatch.Renewer
	client     *client.Client
	declared   *declared
	http       func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
	log        *slog.Logger
}

func newRenewer(k *dispatch.Renewer, c *client.Client, schedules string, log *slog.Logger) *renewer {
	return &renewer{timekeeper: k, client: c, declared: declaredSchedules(c, schedules), http: httpHandler(httpapi.NewRenewHandler(c, httpapi.WithLogger(log)), authorizedByNobody), log: log}
}

// handle dispatches an event by its kind. It refuses unknown events, and those that may be of two kinds, rather than
// taking them for a tick.
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
	case ofQueue:
		return failures(r.timekeeper.HandleRecords(ctx, recordsOf(e.SQSEvent))), nil
	case ofRule:
		woken, err := r.watch(ctx)
		return map[string]int{"woken": woken}, err
	case ofAPI:
		var request events.APIGatewayV2HTTPRequest
		if err := json.Unmarshal(raw, &request); err != nil {
			return nil, fmt.Errorf("lambdahandler: renewer: decode request: %w", err)
		}
		return r.http(ctx, request)
	default:
		answer, err := httpapi.RenewLeases(ctx, r.client, r.log, raw)
		if err != nil {
			r.log.WarnContext(ctx, "lease renewal request failed", "event", logevent.LeaseRequestFailed, "error", err)
			return nil, err
		}
		return answer, nil
	}
}

// watch is a look of the watch, and at the schedules that the stack declares.
func (r *renewer) watch(ctx context.Context) (woken int, err error) {
	declared := r.declared.see(ctx)
	woken, err = r.timekeeper.Sweep(ctx)
	return woken, errors.Join(err, declared)
}
