// Package subscriptions charges customers month by month, until they end their subscription. It is an application in a module of its own: its
// functions are in functions/, and infra/ deploys them in the team's own stack.
package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// EventEnded is the external event by which a customer ends a subscription. It needs no data.
const EventEnded = "ended"

// QueuePayments is the work queue of what touches money: a worker of its own has the rights to it.
const QueuePayments = "payments"

// month is how long a payment lasts.
const month = 30 * 24 * time.Hour

// Subscription is what a customer pays for.
type Subscription struct {
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
	// Paid is how many months were charged.
	Paid int `json:"paid"`
}

// Charge is one month's payment. A key makes its repetition harmless.
type Charge struct {
	Key   string `json:"key"`
	Cents int64  `json:"cents"`
}

// Message is what a customer is told.
type Message struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// The activities, by reference: Subscribe needs their names and types alone.
var (
	chargeCard  = perdure.DefineActivity[Charge, string]("charge-card", perdure.OnQueue(QueuePayments))
	sendMessage = perdure.DefineActivity[Message, struct{}]("send-message")
)

// patiently tries for a few days before it gives up on a card.
var patiently = perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 8, InitialInterval: time.Minute, BackoffCoefficient: 4, MaxInterval: 24 * time.Hour})

// Bank is the processor of cards.
type Bank interface {
	// Charge charges cents once for a key, however often it is asked, and returns the number of the payment.
	Charge(ctx context.Context, key string, cents int64) (string, error)
}

// Mail delivers messages.
type Mail interface {
	Send(ctx context.Context, to, text string) error
}

// Registry has the orchestration and the activities. The functions give it what the activities talk to.
func Registry(bank Bank, mail Mail) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "subscribe", Subscribe)
	chargeCard.Register(r, func(ctx context.Context, c Charge) (string, error) { return bank.Charge(ctx, c.Key, c.Cents) })
	sendMessage.Register(r, func(ctx context.Context, m Message) (struct{}, error) {
		return struct{}{}, mail.Send(ctx, m.To, m.Text)
	})
	return r
}

// Subscribe charges a month, and waits for its end or for the customer's. Each month is an execution of its own, so that history stays short
// however long somebody subscribes.
func Subscribe(ctx *perdure.OrchestrationContext, s Subscription) (Subscription, error) {
	charge := Charge{Key: fmt.Sprintf("%s/%d", ctx.InstanceID(), s.Paid), Cents: s.Cents}
	if _, err := chargeCard.Call(ctx, charge, patiently).Await(ctx); err != nil {
		return s, errors.Join(err, tell(ctx, s, "we could not charge your card"))
	}
	s.Paid++

	ended := perdure.WaitForExternalEvent[struct{}](ctx, EventEnded)
	first, err := perdure.Select(ctx, ended, perdure.CreateTimer(ctx, month))
	if err != nil {
		return s, err
	}
	if first == 0 {
		return s, tell(ctx, s, fmt.Sprintf("goodbye after %d months", s.Paid))
	}
	return perdure.ContinueAsNew[Subscription](ctx, s)
}

func tell(ctx *perdure.OrchestrationContext, s Subscription, text string) error {
	_, err := sendMessage.Call(ctx, Message{To: s.Customer, Text: text}, patiently).Await(ctx)
	return err
}
