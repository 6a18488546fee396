package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/simhub"
)

// secretsOf collects the texts that must not be in a log: tokens and receipt handles in the calls of a hub, and the
// secret of its signing key.
func secretsOf(t *testing.T, h *hub) map[string]string {
	t.Helper()
	secrets := map[string]string{}
	for _, call := range h.made() {
		for _, token := range tokensOf(t, call) {
			secrets["token of a work item"] = token
		}
		if in, ok := call.Input.(*sqs.DeleteMessageBatchInput); ok {
			for i := range in.Entries {
				secrets["receipt handle "+*in.QueueUrl] = *in.Entries[i].ReceiptHandle
			}
		}
		if in, ok := call.Input.(*dynamodb.PutItemInput); ok {
			if key, ok := in.Item["secret"].(*types.AttributeValueMemberS); ok {
				secrets["signing key"] = key.Value
			}
		}
	}
	return secrets
}

// No function logs payloads, details of errors or heartbeats, tokens, receipt handles or keys, even at level debug and
// without a codec. Messages that cannot be decoded and requests that the API rejects are not logged either.
func TestLog_markedSecrets_areNeverLogged(t *testing.T) {
	t.Parallel()
	r := registry()
	addSecretive(r)
	tokens := registerRefusals(r)
	var logged lockedBuffer
	logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	inBubble(t, simhub.Options{
		Registry: r, CacheBytes: -1, CancelPollInterval: time.Millisecond, Logger: logger, MaxReceiveCount: 2,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "secretive", []string{secret}, client.WithInstanceID("i-1"),
			client.WithTags(map[string]string{"card": secret})))
		h.serveFor(time.Minute)
		if err := c.RaiseEvent(ctx, "i-1", "go", secret); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		if got, err := client.Result[string](must(c.Status(ctx, "i-1"))); err != nil ||
			strings.Count(got, secret) != 5 {
			t.Errorf("got %q, error %v", got, err)
		}
		for _, way := range []string{"activity", "inline", "child"} {
			_ = must(c.Start(ctx, "refused", way, client.WithInstanceID("refused-"+way)))
		}
		h.serveFor(time.Hour)

		secrets := map[string]string{"payload": secret}
		_ = must(c.Start(ctx, "refused", "token", client.WithInstanceID("i-2")))
		h.serveFor(time.Minute)
		for n := range 2 { // attempts
			token := <-tokens
			secrets[fmt.Sprint("completion token ", n)] = token
			_ = must(c.HeartbeatActivity(ctx, token, secret))
			if err := c.FailActivity(ctx, token, perdure.WithErrorDetails(errors.New("no"), refusal{secret})); err != nil {
				t.Fatal(err)
			}
			h.serveFor(2 * time.Minute)
			requestWithSecrets(t, httpapi.New(c, nil, httpapi.WithLogger(logger)), token)
		}
		sendUnreadable(ctx, t, h)
		h.serveFor(time.Hour)
		for range 3 {
			_ = must(h.Renewer.Sweep(ctx))
			h.serveFor(10 * time.Minute)
		}

		maps.Copy(secrets, secretsOf(t, h))
		if len(secrets) < 6 {
			t.Errorf("got only these secrets: %v", secrets)
		}
		for name, text := range secrets {
			if i := strings.Index(logged.String(), text); i >= 0 {
				line := logged.String()[strings.LastIndex(logged.String()[:i], "\n")+1:]
				line, _, _ = strings.Cut(line, "\n")
				t.Errorf("the log contains the %s: %s", name, line)
			}
		}
		for _, want := range []string{"level=DEBUG", "level=INFO", "level=ERROR", "route=/v1/activities/complete"} {
			if !strings.Contains(logged.String(), want) {
				t.Errorf("the log has no line with %s, so that the test shows too little", want)
			}
		}
	})
}

// requestWithSecrets sends requests that succeed or fail at different places of the API.
func requestWithSecrets(t *testing.T, h http.Handler, token string) {
	t.Helper()
	quoted := string(must(json.Marshal(secret)))
	for _, request := range [][3]string{
		{"POST", "/v1/activities/complete", `{"token":"` + token + `","result":` + quoted + `}`},
		{"POST", "/v1/activities/heartbeat", `{"token":"` + token + `","` + secret + `":1}`},
		{"POST", "/v1/activities/fail", `{"token":"` + token + `","error":` + quoted + `}`},
		{"POST", "/v1/work-items/renew", `{"visibilityTimeout":60,"leases":[{"token":"` + token +
			`","receiptHandle":` + quoted + `}]}`},
		{"POST", "/v1/orchestrations/unknown", `{"input":` + quoted + `}`},
		{"POST", "/v1/orchestrations/child", `{"input":` + quoted + `,"instanceId":"i-3"}`},
		{"POST", "/v1/instances/i-1/events/note", quoted},
		{"GET", "/v1/instances/i-1?" + secret + "=" + secret, ""},
		{"GET", "/v1/" + secret, ""},
		{"PUT", "/v1/instances/i-4", `{` + secret},
	} {
		r := httptest.NewRequest(request[0], request[1], strings.NewReader(request[2]))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Idempotency-Key", secret)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s %s: got HTTP %d %s", request[0], request[1], w.Code, w.Body)
		}
	}
}

// sendUnreadable sends messages with the secret that no function can decode, to each queue.
func sendUnreadable(ctx context.Context, t *testing.T, h *hub) {
	t.Helper()
	where := h.Provider.Config()
	for _, url := range []string{where.InboxURL, where.TimersURL, where.WorkQueues["default"]} {
		for n, body := range []string{
			secret, `{"v":1,"kind":"start","instanceId":"i-1","input":{` + secret, `{"v":99,"data":"` + secret + `"}`,
		} {
			in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
			if url == where.InboxURL {
				in.MessageGroupId, in.MessageDeduplicationId = aws.String("i-1"), aws.String(fmt.Sprint(n))
			}
			if _, err := h.Cloud.Queues.SendMessage(ctx, in); err != nil {
				t.Fatal(err)
			}
		}
	}
}
