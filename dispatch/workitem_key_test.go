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

// readsKeys reports whether a call reads the keys that sign work items.
func readsKeys(c simaws.Call) bool {
	in, ok := c.Input.(*dynamodb.QueryInput)
	return ok && text(in.ExpressionAttributeValues, ":sk") == "key#"
}

// tokensOf returns the completion tokens of the work items that a call sends.
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

// The signing key cannot be read for the first half hour. No committed work is lost, and no work item is sent without
// its token. Afterwards no turn reads the key again.
func TestR9_signingKeyUnreadable_workItemsWait(t *testing.T) {
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
				t.Errorf("after %v: work item sent with token %q", time.Since(began), token)
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
			t.Errorf("ended with %s, want output 45150", end.String())
		}
		h.checkRest()
		if reads == 0 || reads > 4 || sent < 300 {
			t.Errorf("got %d reads of the keys, %d sent work items", reads, sent)
		}
		t.Logf("%d activities: %d reads of the keys, %d sent work items", 300, reads, sent)
		mu.Lock()
		reads = 0
		mu.Unlock()
		h.Cloud.ResetCounts()
		second := h.startAs("i-2", "chain", 10)
		h.serveFor(time.Hour)
		if end, err := h.Provider.ReadTerminalEvent(t.Context(), second.ExecutionID); err != nil ||
			string(end.Output) != "10" || reads != 0 {
			t.Errorf("got end %+v, error %v, %d reads of the keys", end, err, reads)
		}
	})
}
