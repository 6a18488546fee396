// Package calls uses functions of perdure correctly, in ways that look wrong.
package calls

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure"
)

type order struct {
	ID    string
	Due   time.Time
	Next  *order
	cache map[string]int `json:"-"`
	base
	Any any
}

type base struct{ Name string }

type secret struct{ text string }

func (s secret) MarshalText() ([]byte, error) { return []byte(s.text), nil }

func charge(context.Context, order) (secret, error) { return secret{}, nil }

func register(r *perdure.Registry) {
	perdure.AddActivity(r, "charge", charge)
	perdure.AddOrchestration(r, "fulfil", fulfil)
	perdure.AddOrchestration(r, "generic", generic[string])
}

func generic[T any](ctx *perdure.OrchestrationContext, in T) (T, error) { return in, nil }

// tried calls the activity in its parameter. The caller passes a registered function.
func tried[In, Out any](ctx *perdure.OrchestrationContext, fn func(context.Context, In) (Out, error), in In) (Out, error) {
	return perdure.CallActivity(ctx, fn, in).Await(ctx)
}

func fulfil(ctx *perdure.OrchestrationContext, o order) (s string, err error) {
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		_, err := tried(ctx, charge, o)
		return err
	})
	safe := perdure.WithoutCancel(ctx)
	defer func() {
		_, failed := perdure.CallActivity(safe, charge, o).Await(safe)
		err = errors.Join(err, failed, perdure.Sleep(perdure.WithoutCancel(ctx), time.Second))
	}()
	limited, stop := perdure.WithTimeout(ctx, time.Minute)
	defer stop()
	done := perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
		if perdure.Sleep(limited, time.Second) == nil && ctx.Err() == nil {
			ctx.SetCustomStatus(o.cache)
		}
	})
	perdure.RaiseEvent(ctx, "audit", "fulfilling", o.ID)
	defer func() { perdure.RaiseEvent(safe, "audit", "done", o.ID) }()
	if ctx.IsReplaying() {
		o.cache = nil
	}
	late := perdure.CreateTimer(ctx, time.Hour)
	for {
		first, err := perdure.Select(ctx, perdure.WaitForExternalEvent[order](ctx, "changed"), late, done)
		if err != nil {
			return "", err
		}
		if first > 0 {
			break
		}
	}
	for o.ID == "" {
		if err := perdure.Sleep(ctx, time.Second); err != nil {
			return "", err
		}
		o.ID = ctx.NewUUID()
	}
	return o.ID, nil
}

func keepsOn(ctx *perdure.OrchestrationContext, n int) (string, error) {
	for {
		if err := perdure.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		if n++; n > 100 {
			return perdure.ContinueAsNew[string](ctx, n)
		}
	}
}
