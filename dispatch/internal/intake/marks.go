package intake

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// DeliveriesTogether is the number of deliveries of a record without a crash marker. Each marker costs a write.
const DeliveriesTogether = 2

// NeedsMarker reports whether a delivery needs a crash marker. A record that was recovered from a dead-letter queue
// needs a marker in its first delivery, because the original record was delivered often.
func NeedsMarker(r *provider.Record, p *provider.Redrive) bool {
	return r.ReceiveCount > DeliveriesTogether || p != nil
}

const (
	// markLimit is the time limit for writing a marker, so that a call that hangs does not stop the process.
	markLimit = 5 * time.Second
	// unmarkTries is the number of attempts to delete a marker. A remaining marker would count as a crash of a process
	// that is alive.
	unmarkTries = 4
	// UnmarkLimit is the time limit of Unmark. It is part of Reserve.
	UnmarkLimit = Reserve * 3 / 4
)

// Mark writes a crash marker and returns the number of earlier ones. The marker may exist even if Mark returns an
// error.
func Mark(ctx context.Context, b *Base, a provider.Delivery) (crashCount int, err error) {
	limited, stop := context.WithTimeout(ctx, markLimit)
	defer stop()
	if crashCount, err = b.Provider.PutCrashMarker(limited, a); err != nil {
		_ = Unmark(ctx, b, a) // a remaining marker is only one of the several that make a record poison
	}
	return crashCount, err
}

// Unmark deletes a crash marker, even if ctx has ended.
func Unmark(ctx context.Context, b *Base, a provider.Delivery) (err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), UnmarkLimit)
	defer stop()
	for range unmarkTries {
		if err = b.Provider.DeleteCrashMarker(ctx, a); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// ReasonFor returns a failure as the reason of a dead letter.
func ReasonFor(f *history.Failure) error {
	return errors.New(f.Type + ": " + f.Message) //nolint:err113 // a text for people
}
