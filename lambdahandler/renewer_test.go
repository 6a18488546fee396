package lambdahandler

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func aRenewer(t *testing.T, r *perdure.Registry) (*renewer, *simhub.Hub) {
	t.Helper()
	hub, err := simhub.New(simhub.Options{Registry: r})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	return newRenewer(hub.Renewer, client.New(hub.Provider), "", slog.New(slog.DiscardHandler)), hub
}

// An event that matches two kinds is rejected. Otherwise an API request could fire a timer.
func TestRenewer_distinguishesEvents(t *testing.T) {
	t.Parallel()
	const (
		neither = "unknown event; expected SQS records, a rule event, an API request or leases"
		records = `"Records":[{"messageId":"m-1","body":"{}"}]`
		tick    = `"source":"aws.events","detail-type":"Scheduled Event"`
		request = `"version":"2.0","rawPath":"/v1/work-items/renew","headers":{"content-type":"application/json"},` +
			`"requestContext":{"domainName":"x","http":{"method":"POST"}},"body":"{\"Records\":[1],\"source\":\"aws.events\"}"`
		renewing = `"visibilityTimeout":60,"leases":[{"token":"w1.1.x","receiptHandle":"r"}]`
		noToken  = `{"leases":[{"error":{"code":"invalid_token","detail":"token was not issued by this hub, or its key was deleted","retryable":false}}]}`
	)
	h, _ := aRenewer(t, perdure.NewRegistry())
	for name, c := range map[string]struct{ event, result, err string }{
		"records": {
			`{` + records + `}`, `{"batchItemFailures":[]}`, "",
		}, // an unreadable record moves to the dead-letter queue
		"tick":   {`{` + tick + `}`, `{"woken":0}`, ""},
		"leases": {`{` + renewing + `}`, noToken, ""},
		"leases without a duration": {
			`{"leases":[]}`, "null",
			"invalid_request: visibilityTimeout must be a whole number of seconds from 1 to 43200",
		},
		"invalid leases": {
			`{"visibilityTimeout":60,"leases":[1]}`, "null", "invalid_request: leases[0] must be a JSON object",
		},
		"leases and records":    {`{` + renewing + `,` + records + `}`, "null", neither},
		"leases and a tick":     {`{` + renewing + `,` + tick + `}`, "null", neither},
		"leases and a request":  {`{` + renewing + `,` + request + `}`, "null", neither},
		"a request and records": {`{` + request + `,` + records + `}`, "null", neither},
		"a tick and records":    {`{` + tick + `,` + records + `}`, "null", neither},
		"misspelled leases": {
			`{"visibilityTimeout":60,"Leases":[{"token":"w1.1.x","receiptHandle":"r"}]}`, "null",
			"invalid_request: Leases is not a field of this call",
		},
		"nothing":        {`{}`, "null", neither},
		"another source": {`{"source":"aws.s3"}`, "null", neither},
		"not JSON":       {`nonsense`, "null", "lambdahandler: renewer: decode event"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := h.handle(t.Context(), json.RawMessage(c.event))
			if b, _ := json.Marshal(result); string(b) != c.result {
				t.Errorf("got %s", b)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
		})
	}
	t.Run("request", func(t *testing.T) {
		t.Parallel()
		result, err := h.handle(t.Context(), json.RawMessage(`{`+request+`}`))
		if a, ok := result.(events.APIGatewayV2HTTPResponse); !ok || err != nil ||
			a.StatusCode != http.StatusBadRequest || !strings.Contains(a.Body, `"field":"Records"`) {
			t.Errorf("got %+v, error %v", result, err)
		}
	})
}

// A worker in another language receives a message with an SQS client, and renews it through the gateway or by invoking
// the function. No other consumer receives the message in that time. The responses report the cancellation of the
// activity with its reason.
func TestRenewer_otherLanguageWorker_renewsLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := greetings()
		perdure.AddOrchestration(r, "race", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			return perdure.WhenAny(
				ctx, perdure.CallActivityByName[int](ctx, "greet", n), perdure.WaitForExternalEvent[int](ctx, "enough"),
			)
		})
		h, hub := aRenewer(t, r)
		c := client.New(hub.Provider)
		turn := func() {
			t.Helper()
			url := hub.Provider.Config().InboxURL
			records := received(t, hub, url)
			if failed := hub.Orchestrators[0].HandleRecords(t.Context(), records); len(failed) > 0 ||
				len(records) == 0 {
				t.Fatalf("got %d failed records of %d", len(failed), len(records))
			}
			if err := hub.Provider.DeleteRecords(t.Context(), "inbox", records...); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Start(t.Context(), "race", 1, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		turn()
		queue := hub.Provider.Config().WorkQueues["default"]
		held := received(t, hub, queue)
		if len(held) != 1 {
			t.Fatalf("got %d messages, want 1", len(held))
		}
		var item struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(held[0].Body), &item); err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(
			`{"visibilityTimeout":60,"leases":[{"token":%q,"receiptHandle":%q}]}`, item.Token, held[0].ReceiptHandle,
		)
		byGateway := func() string {
			t.Helper()
			event, err := json.Marshal(events.APIGatewayV2HTTPRequest{
				Version: "2.0", RouteKey: "POST /v1/work-items/renew", RawPath: "/v1/work-items/renew", Body: body,
				Headers: map[string]string{
					"content-type": "application/json",
				},
				RequestContext: events.APIGatewayV2HTTPRequestContext{
					DomainName: "x.execute-api.us-east-1.amazonaws.com",
					HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
						Method: http.MethodPost,
					},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			result, err := h.handle(t.Context(), event)
			a, ok := result.(events.APIGatewayV2HTTPResponse)
			if err != nil || !ok || a.StatusCode != http.StatusOK {
				t.Fatalf("got %+v, error %v", result, err)
			}
			return strings.TrimSpace(a.Body)
		}
		invoked := func() string {
			t.Helper()
			result, err := h.handle(t.Context(), json.RawMessage(body))
			b, _ := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		for n := range 60 { // 45 minutes, three times the visibility timeout
			until := time.Now().UTC().Add(time.Minute).Format(time.RFC3339Nano)
			got := byGateway()
			if n%2 == 1 {
				got = invoked()
			}
			if got != fmt.Sprintf(`{"leases":[{"expiresAt":%q}]}`, until) {
				t.Fatalf("renewal %d: got %s, want %s", n, got, until)
			}
			time.Sleep(45 * time.Second)
			if others := received(t, hub, queue); len(others) > 0 {
				t.Fatalf("after %d renewals: the message is visible to others", n+1)
			}
		}
		if err := c.RaiseEvent(t.Context(), "i", "enough", 7); err != nil {
			t.Fatal(err)
		}
		turn()
		for _, got := range []string{byGateway(), invoked()} {
			if !strings.Contains(got, `"cancel":{"reason":"orchestration_terminal_completed","requestedAt":`) &&
				!strings.Contains(got, `"cancel":{"reason":"select_loser","requestedAt":`) ||
				!strings.Contains(got, "expiresAt") {
				t.Errorf("after the race: got %s", got)
			}
		}
		time.Sleep(2 * time.Minute) // the lock has expired, and another consumer receives the message
		if others := received(t, hub, queue); len(others) != 1 {
			t.Fatalf("got %d messages, want 1", len(others))
		}
		if got := invoked(); !strings.Contains(got, `"code":"lock_lost"`) || strings.Contains(got, "expiresAt") {
			t.Errorf("message of another receiver: got %s", got)
		}
	})
}

// received returns the messages that a queue delivers.
func received(t *testing.T, hub *simhub.Hub, url string) []provider.Record {
	t.Helper()
	out, err := hub.Cloud.Queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return simhub.Records(out.Messages)
}
