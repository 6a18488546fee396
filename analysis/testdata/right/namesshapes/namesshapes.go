// Command namesshapes calls functions by name with other Go types of the same JSON type.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/perdure/perdure"
)

func count(_ context.Context, parcels []string) (int, error) { return len(parcels), nil }
func sign(_ context.Context, digest []byte) (string, error)  { return string(digest), nil }

// size has its own marshaling, so a list of sizes is a list.
type size uint8

func (s size) MarshalText() ([]byte, error) { return []byte{byte('a' + s)}, nil }

func (s *size) UnmarshalText(text []byte) error { *s = size(text[0] - 'a'); return nil }

func pack(_ context.Context, sizes []size) (int, error) { return len(sizes), nil }

func weigh(_ context.Context, grams int) (int, error) { return grams, nil }

func deliver(ctx *perdure.OrchestrationContext, parcels []string) (string, error) {
	n, err := perdure.CallActivityByName[json.Number](ctx, "count", parcels).Await(ctx)
	if err != nil {
		return "", err
	}
	if _, err := perdure.CallActivityByName[int](ctx, "weigh", n).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallActivityByName[int](ctx, "pack", []string{"a", "b"}).Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivityByName[string](ctx, "sign", sha256.Sum256([]byte(parcels[0]))).Await(ctx)
}

func registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "count", count)
	perdure.AddActivity(r, "pack", pack)
	perdure.AddActivity(r, "sign", sign)
	perdure.AddActivity(r, "weigh", weigh)
	perdure.AddOrchestration(r, "deliver", deliver)
	return r
}

type endless *endless

func neverEnds(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	_, err := perdure.CallActivityByName[endless](ctx, "weigh", nil).Await(ctx)
	return "", err
}
