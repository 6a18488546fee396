// Package inline has an activity that runs in the turn: its body is an activity's, and may do what an orchestration must not.
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

// price asks a service, by the clock and the settings of the process.
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

// Register adds both.
func Register(r *perdure.Registry) {
	perdure.AddActivity(r, "price", price, perdure.Inline())
	perdure.AddOrchestration(r, "offer", offer)
}
