package intake

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// DeliveriesTogether is the number of deliveries of a record without a crash marker, which costs a write.
const DeliveriesTogether = 2

// Doubtful reports whether a delivery needs a crash marker. A record that was recovered from a dead-letter queue needs
// one in its first delivery, because the original record was delivered often.
func Doubtful(r *provider.Record, p *provider.Redrive) bool {
	return r.ReceiveCount > DeliveriesTogether || p != nil
}

const (
	// markLimit is how long a mark may take: calls that hang must not take the process along.
	markLimit = 5 * time.Second
	// unmarkTries is how often a mark is tried to be taken away. One that stays would count as a death of a process that lives.
	unmarkTries = 4
	// UnmarkLimit is the time limit of Unmark. It is part of Reserve.
	UnmarkLimit = Reserve * 3 / 4
)

// Mark writes a crash marker and returns the number of earlier ones. After an error the marker may exist nevertheless.
func Mark(ctx context.Context, b *Base, a provider.Attempt) (died int, err error) {
	limited, stop := context.WithTimeout(ctx, markLimit)
	defer stop()
	if died, err = b.Provider.PutCrashMarker(limited, a); err != nil {
		_ = Unmark(ctx, b, a) // what stays is one of several that it takes
	}
	return died, err
}

// Unmark deletes a crash marker, even if ctx has ended.
func Unmark(ctx context.Context, b *Base, a provider.Attempt) (err error) {
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
