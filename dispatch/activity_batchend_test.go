package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simaws"
)

// At the end of a batch, running activities are cancelled at once, even while a call that sends other results hangs.
func TestBatch_endsWhileResultsAreSent_activitiesAreCancelledAtOnce(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: time.Second}, forever)
		inbox := f.Provider.Config().InboxURL
		f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok && *in.QueueUrl == inbox {
				time.Sleep(time.Minute)
			}
			return next()
		})
		ctx, stop := context.WithCancel(ctx)
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(10 * time.Second)
		at := time.Now()
		stop()
		<-over
		f.wantCause(4, perdure.ReasonShutdown)
		if seen, _ := f.cause(4); !seen.Equal(at) {
			t.Errorf("the activity observed the end of the batch after %v, want at once", seen.Sub(at))
		}
	})
}
