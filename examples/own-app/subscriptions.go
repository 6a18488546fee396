// Package subscriptions charges customers monthly until they end their subscription. It is an example of an application
// in its own module: functions has its Lambda functions, and infra deploys them in the team's CDK stack.
package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// EventEnded is the external event that ends a subscription. It has no data.
const EventEnded = "ended"

// QueuePayments is the work queue of payment activities. Its worker has its own permissions.
const QueuePayments = "payments"

// month is the period that a payment covers.
const month = 30 * 24 * time.Hour

// Subscription is a monthly subscription of a customer.
type Subscription struct {
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
	// Paid is the number of months that were charged.
	Paid int `json:"paid"`
}

// Charge is the payment of one month. Key is its idempotency key.
type Charge struct {
	Key   string `json:"key"`
	Cents int64  `json:"cents"`
}

// Message is a message to a customer.
type Message struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// References to the activities. Subscribe needs only their names and types.
var (
	chargeCard  = perdure.DefineActivity[Charge, string]("charge-card", perdure.OnQueue(QueuePayments))
	sendMessage = perdure.DefineActivity[Message, struct{}]("send-message")
)

// patiently retries for a few days.
var patiently = perdure.WithRetry(perdure.RetryPolicy{
	MaxAttempts: 8, InitialInterval: time.Minute, BackoffCoefficient: 4, MaxInterval: 24 * time.Hour,
})

// Bank charges cards.
type Bank interface {
	// Charge charges an amount in cents and returns the payment number. Repeated calls with the same key charge once.
	Charge(ctx context.Context, key string, cents int64) (string, error)
}

// Mail delivers messages.
type Mail interface {
	Send(ctx context.Context, to, text string) error
}

// Registry returns a registry with the orchestration and its activities, which call bank and mail.
func Registry(bank Bank, mail Mail) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "subscribe", Subscribe)
	chargeCard.Register(r, func(ctx context.Context, c Charge) (string, error) {
		return bank.Charge(ctx, c.Key, c.Cents)
	})
	sendMessage.Register(r, func(ctx context.Context, m Message) (struct{}, error) {
		return struct{}{}, mail.Send(ctx, m.To, m.Text)
	})
	return r
}

// Subscribe charges one month and waits until the month or the subscription ends. It then continues as new, so each
// month is an execution with a short history.
func Subscribe(ctx *perdure.OrchestrationContext, s Subscription) (Subscription, error) {
	charge := Charge{Key: fmt.Sprintf("%s/%d", ctx.InstanceID(), s.Paid), Cents: s.Cents}
	if _, err := chargeCard.Call(ctx, charge, patiently).Await(ctx); err != nil {
		return s, errors.Join(err, notify(ctx, s, "we could not charge your card"))
	}
	s.Paid++

	ended := perdure.WaitForExternalEvent[struct{}](ctx, EventEnded)
	first, err := perdure.Select(ctx, ended, perdure.CreateTimer(ctx, month))
	if err != nil {
		return s, err
	}
	if first == 0 {
		return s, notify(ctx, s, fmt.Sprintf("goodbye after %d months", s.Paid))
	}
	return perdure.ContinueAsNew[Subscription](ctx, s)
}

func notify(ctx *perdure.OrchestrationContext, s Subscription, text string) error {
	_, err := sendMessage.Call(ctx, Message{To: s.Customer, Text: text}, patiently).Await(ctx)
	return err
}
