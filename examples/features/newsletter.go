package features

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// Letters is a subscription to a series of letters.
type Letters struct {
	Reader string `json:"reader"`
	Count  int    `json:"count"`
	// EverySeconds is the time between two letters, in seconds.
	EverySeconds int `json:"everySeconds"`
}

// Subscribe starts SendLetters as a detached orchestration and completes without waiting for it. It returns the
// instance ID of SendLetters.
func Subscribe(ctx *perdure.OrchestrationContext, l Letters) (string, error) {
	return perdure.StartOrchestration(ctx, "send-letters", l, perdure.WithInstanceID("letters/"+ctx.InstanceID()))
}

// SendLetters sends the letters one by one with a retried activity, sleeps between them, and returns their number.
func SendLetters(ctx *perdure.OrchestrationContext, l Letters) (int, error) {
	for n := range l.Count {
		letter := fmt.Sprintf("Letter %d, %s", n+1, l.Reader)
		if _, err := perdure.CallActivity(ctx, sendLetter, letter, retriedSoon).Await(ctx); err != nil {
			return n, err
		}
		if err := perdure.Sleep(ctx, time.Duration(l.EverySeconds)*time.Second); err != nil {
			return n, err
		}
	}
	return l.Count, nil
}

var retriedSoon = perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 5, InitialInterval: 200 * time.Millisecond})

// sendLetter fails in its first attempt, to show a retry.
func sendLetter(ctx context.Context, _ string) (struct{}, error) {
	if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
		return struct{}{}, errors.New("the mail is down")
	}
	return struct{}{}, nil
}

func registerNewsletter(r *perdure.Registry) {
	perdure.AddOrchestration(r, "subscribe", Subscribe)
	perdure.AddOrchestration(r, "send-letters", SendLetters)
	perdure.AddActivity(r, "send-letter", sendLetter)
}
