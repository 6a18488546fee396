package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// Picture is a scanned page that is larger than MaxPayloadBytes.
type Picture struct {
	Page int
	Dots string
}

func scan(_ context.Context, page int) (Picture, error) {
	return Picture{page, strings.Repeat(".", 2<<20)}, nil // 2 MiB
}

func read(_ context.Context, p Picture) (string, error) {
	return fmt.Sprintf("page %d of %d dots", p.Page, len(p.Dots)), nil
}

// digitise passes a large result to the next activity like a small one. The payload store keeps the result until the
// instance is purged.
func digitise(ctx *perdure.OrchestrationContext, page int) (string, error) {
	p, err := perdure.CallActivity(ctx, scan, page).Await(ctx)
	if err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, read, p).Await(ctx)
}

// A hub with a payload store (LargePayloads of the CDK construct) accepts payloads of up to MaxLargePayloadBytes.
// Without a payload store, a payload of more than MaxPayloadBytes results in a PayloadTooLargeError.
func Example_largePayloads() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "scan", scan)
	perdure.AddActivity(r, "read", read)
	perdure.AddOrchestration(r, "digitise", digitise)

	ctx := context.Background()
	for _, bucket := range []bool{true, false} {
		h, stop := serveHub(simhub.Options{Registry: r, Bucket: bucket})
		c := client.New(h.Provider)
		id := must(c.Start(ctx, "digitise", 7))
		text, err := client.Result[string](must(c.Wait(ctx, id)))
		if large, ok := errors.AsType[*perdure.PayloadTooLargeError](err); ok {
			text = large.Error()
		}
		fmt.Println(text)
		stop()
	}
	// Output:
	// page 7 of 2097152 dots
	// payload too large: 2097172 bytes, limit 204800: result of activity "scan"
}
