package intake

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// DeliveriesTogether is how often a record is delivered without a mark: it costs a write.
const DeliveriesTogether = 2

// Doubtful reports whether a delivery leaves a mark. A record that was picked up from the dead letters has been delivered often.
func Doubtful(r *provider.Record, p *provider.Redrive) bool {
	return r.ReceiveCount > DeliveriesTogether || p != nil
}

const (
	// markLimit is how long a mark may take: calls that hang must not take the process along.
	markLimit = 5 * time.Second
	// unmarkTries is how often a mark is tried to be taken away. One that stays would count as a death of a process that lives.
	unmarkTries = 4
	// UnmarkLimit is how long that may take of what an invocation keeps of its time.
	UnmarkLimit = Reserve * 3 / 4
)

// Mark leaves a mark. Of a call that failed it is not known whether it did.
func Mark(ctx context.Context, b *Base, a provider.Attempt) (died int, err error) {
	limited, stop := context.WithTimeout(ctx, markLimit)
	defer stop()
	if died, err = b.Provider.PutCrashMarker(limited, a); err != nil {
		_ = Unmark(ctx, b, a) // what stays is one of several that it takes
	}
	return died, err
}

// Unmark takes a mark away, also when ctx has ended.
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

// ReasonFor is a failure as the reason of a dead letter.
func ReasonFor(f *history.Failure) error {
	return errors.New(f.Type + ": " + f.Message) //nolint:err113 // a text for people
}
