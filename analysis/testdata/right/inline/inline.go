// Package inline has an inline activity. Its function is an activity, which may have side effects.
package inline

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/perdure/perdure"
)

// price calls a service, and uses the clock and the environment of the process.
func price(ctx context.Context, sku string) (int64, error) {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	began := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv("PRICES")+sku, nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return int64(len(body)) + rand.Int64N(10) + time.Since(began).Milliseconds(), err
}

func offer(ctx *perdure.OrchestrationContext, sku string) (int64, error) {
	return perdure.CallActivity(ctx, price, sku, perdure.Inline()).Await(ctx)
}

// Register adds the orchestration and the activity.
func Register(r *perdure.Registry) {
	perdure.AddActivity(r, "price", price, perdure.Inline())
	perdure.AddOrchestration(r, "offer", offer)
}
