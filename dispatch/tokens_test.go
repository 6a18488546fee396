package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// readsKeys: the call that reads the keys which work items are signed with.
func readsKeys(c simaws.Call) bool {
	in, ok := c.Input.(*dynamodb.QueryInput)
	return ok && text(in.ExpressionAttributeValues, ":sk") == "key#"
}

// tokensOf are the tokens of the activities whose work items a call sends.
func tokensOf(t *testing.T, c simaws.Call) (tokens []string) {
	t.Helper()
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	if !ok || *in.QueueUrl != "sim://default" {
		return nil
	}
	for i := range in.Entries {
		var body struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(*in.Entries[i].MessageBody), &body); err != nil {
			t.Error(err)
		}
		tokens = append(tokens, body.Token)
	}
	return tokens
}

// The key cannot be read, from before the first function starts, for half an hour: nothing that turns have committed is lost, no work item goes without its
// token, and from then on no turn reads the key.
func TestR9WorkItemsWaitForTheirKey(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	began, sent, reads := time.Time{}, 0, 0
	seen := func(c simaws.Call) error {
		mu.Lock()
		defer mu.Unlock()
		if began.IsZero() {
			began = time.Now()
		}
		away := time.Since(began) < 30*time.Minute
		if readsKeys(c) {
			if away {
				return errors.New("refused")
			}
			reads++
		}
		for _, token := range tokensOf(t, c) {
			if sent++; away || token == "" {
				t.Errorf("after %v a work item is sent with the token %q", time.Since(began), token)
			}
		}
		return nil
	}
	intercept := func(_ context.Context, c simaws.Call, next func() error) error {
		if err := seen(c); err != nil {
			return err
		}
		return next()
	}
	inBubble(t, simhub.Options{Intercept: intercept}, func(_ context.Context, h *hub) {
		in := h.start("fan", 300)
		if end := h.finish(in); string(end.Output) != "45150" {
			t.Errorf("ended with %s", end.String())
		}
		h.checkRest()
		if reads == 0 || reads > 4 || sent < 300 {
			t.Errorf("the keys were read %d times, %d work items were sent", reads, sent)
		}
		t.Logf("%d activities: the keys were read %d times, %d work items were sent", 300, reads, sent)
		mu.Lock()
		reads = 0
		mu.Unlock()
		h.Cloud.ResetCounts()
		second := h.startAs("i-2", "chain", 10)
		h.serveFor(time.Hour)
		if end, err := h.Provider.ReadTerminalEvent(t.Context(), second.ExecutionID); err != nil || string(end.Output) != "10" || reads != 0 {
			t.Errorf("%+v, %v, %d reads of the keys", end, err, reads)
		}
	})
}
