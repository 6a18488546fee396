// Package matrix has a mistake in the use of each feature for which the linter has a rule. A function has the name of
// its feature.
package matrix

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure"
)

type lossy struct{ amount int }

func charge(context.Context, string) (string, error) { return "", nil }

func restart(ctx *perdure.OrchestrationContext, round int) (string, error) {
	perdure.ContinueAsNew[string](ctx, round+1)
	return "", nil
}

func updates(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	return "", perdure.SetUpdateHandler(ctx, "address", func(*perdure.OrchestrationContext, string) (string, error) {
		return "", nil
	}, perdure.WithValidator(func(string) error { return perdure.Sleep(ctx, time.Second) }))
}

func versions(ctx *perdure.OrchestrationContext, change string) (string, error) {
	perdure.Version(ctx, "change "+change, perdure.DefaultVersion, 1)
	return "", nil
}

func entities(r *perdure.Registry) {
	perdure.AddEntity(r, "stock", perdure.Operation("refill",
		func(_ *perdure.OrchestrationContext, l *lossy, _ int) (int, error) {
			return int(time.Now().Unix()), nil
		}))
}

func cancellation(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	defer perdure.Sleep(ctx, time.Second)
	return "", nil
}

func queries(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	return "", perdure.SetQueryHandler(ctx, "count", func(string) (string, error) {
		return perdure.CallActivity(ctx, charge, "").Await(ctx)
	})
}

func details(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	return "", perdure.WithErrorDetails(errors.New("declined"), lossy{51})
}

func compensation(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	var err error
	defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error { return nil })
	return "", err
}
