// Package payloadkinds sends only values that JSON can encode.
package payloadkinds

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

type order struct {
	ID    string
	Due   time.Time
	Price *big.Int
	Sizes map[size]map[int]string
	cache map[string]int `json:"-"`
}

// secret has its own encoding.
type secret struct{ text string }

func (s secret) MarshalJSON() ([]byte, error)     { return json.Marshal(s.text) }
func (s *secret) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &s.text) }

type size struct{ w, h int }

func (s size) MarshalText() ([]byte, error)     { return []byte{byte(s.w), byte(s.h)}, nil }
func (s *size) UnmarshalText(text []byte) error { s.w, s.h = int(text[0]), int(text[1]); return nil }

// progress is not sent outside the execution.
type progress struct{ done int }

func fulfil(ctx *perdure.OrchestrationContext, in any) (any, error) {
	o := perdure.SideEffect(ctx, func() order { return order{cache: map[string]int{}} })
	s := perdure.SideEffect(ctx, func() secret { return secret{} })
	if err := perdure.SetUpdateHandler(ctx, "add", func(*perdure.OrchestrationContext, order) (any, error) { return in, nil }); err != nil {
		return "", err
	}
	if err := perdure.SetQueryHandler(ctx, "all", func(struct{}) ([]order, error) { return []order{o}, nil }); err != nil {
		return "", err
	}
	perdure.RaiseEvent(ctx, "other", "done", nil)
	perdure.RaiseEvent(ctx, "other", "done", in)
	perdure.CallEntity[struct{}](ctx, "cart", "7", "add", s)
	if _, err := perdure.StartOrchestration(ctx, "settle", &o); err != nil {
		return "", err
	}
	p, err := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (progress, error) { return progress{1}, nil }).Await(ctx)
	if err != nil {
		return "", err
	}
	p, err = perdure.WaitForCondition(ctx, p, func(_ *perdure.OrchestrationContext, p progress) (progress, error) {
		p.done++
		return p, nil
	}, func(p progress) bool { return p.done > 3 }, perdure.PollPolicy{})
	return p.done, perdure.WithErrorDetails(errors.Join(err), o)
}

// typed sends a value of its caller.
func typed[T any](ctx *perdure.OrchestrationContext, v T) *perdure.Future[struct{}] {
	return perdure.RaiseEvent(ctx, "other", "done", v)
}

func start(ctx context.Context, c *client.Client) error {
	_, err := c.Start(ctx, "order", order{}, client.WithInstanceID("7"))
	return err
}

// cents has a MarshalJSON method with a pointer receiver.
type cents struct{ N int }

func (c *cents) MarshalJSON() ([]byte, error) { return json.Marshal(c.N) }

type line struct {
	Price cents
	Each  map[string][]cents
	By    map[string]*cents
}

func prices(ctx *perdure.OrchestrationContext, in cents) (map[string][]line, error) {
	return perdure.SideEffect(ctx, func() map[string][]line { return map[string][]line{"a": {{Price: in}}} }), nil
}
