package features

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// Letters are what a reader has subscribed to.
type Letters struct {
	Reader string `json:"reader"`
	Count  int    `json:"count"`
	// EverySeconds is the time between two letters.
	EverySeconds int `json:"everySeconds"`
}

// Subscribe starts the letters and is done: they go on without it. Its result is the instance that sends them.
func Subscribe(ctx *perdure.OrchestrationContext, l Letters) (string, error) {
	return perdure.StartOrchestration(ctx, "send-letters", l, perdure.WithInstanceID("letters/"+ctx.InstanceID()))
}

// SendLetters sends one letter after the other, each by an activity that is tried again when the mail is down, and shows how
// many went out.
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

// sendLetter finds the mail down at its first attempt.
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
