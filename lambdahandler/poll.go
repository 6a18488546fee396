package lambdahandler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// onLambda reports whether Lambda has started the process.
func onLambda(getenv func(string) string) bool { return getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// byName reports whether the hub is found by its name. Outside Lambda, only PERDURE_HUB is required.
func byName(getenv func(string) string) bool {
	return !onLambda(getenv) && getenv("PERDURE_TABLE") == ""
}

// serveQueue polls a queue of the hub until ctx ends.
func (b *binary) serveQueue(
	ctx context.Context, p *dynamo.Provider, queue string, h recordHandler, names []string, opts dispatch.PollOptions,
) error {
	b.log.InfoContext(ctx, "serving a queue", "event", logevent.ServingQueue, "hub", p.Config().Name, "queue", queue,
		"serves", strings.Join(names, ", "))
	opts.Logger = b.log
	b.logStop(dispatch.Poll(ctx, p, queue, h.HandleRecords, opts))
	return nil
}

// serveWork polls a work queue, and logs activities that still run at the end. Received records are first locked for
// the queue's visibility timeout, which is the timeout for functions. The first renewal, after a third of LockTimeout,
// locks them for LockTimeout. The death of this process is then detected within that time.
func (b *binary) serveWork(
	ctx context.Context, p *dynamo.Provider, w *workers, r *perdure.Registry, o *dispatch.WorkerOptions,
) error {
	names := activityNames(r, o.Queue)
	serve := func(queue string, w *dispatch.Worker) error {
		poll := dispatch.PollOptions{
			LockTimeout: o.LockTimeout, Renew: w.RenewRecords,
			UnwindTimeout: max(o.CancellationGracePeriod, 0) + 2*time.Second,
		}
		err := b.serveQueue(ctx, p, queue, w, names, poll)
		if n := w.AbandonedActivities(); n > 0 {
			b.log.WarnContext(ctx, "activities abandoned by this worker", "event", logevent.WorkerActivitiesAbandoned,
				"leaked", n)
		}
		return err
	}
	if w.exclusive == nil {
		return serve(o.Queue, w.shared)
	}
	var serving sync.WaitGroup
	var exclusiveErr error
	serving.Go(func() { exclusiveErr = serve(history.ExclusiveQueue(o.Queue), w.exclusive) })
	sharedErr := serve(o.Queue, w.shared)
	serving.Wait()
	return errors.Join(sharedErr, exclusiveErr)
}

// logStop logs the end of the process. Records that were released are not an error of the process, because they are
// redelivered.
func (b *binary) logStop(err error) {
	if err != nil {
		b.log.Warn("stopped with an error", "event", logevent.ProcessStoppedUnfinished, "error", err)
		return
	}
	b.log.Info("stopped", "event", logevent.ProcessStopped)
}

// checkQueue records an error if the hub does not have a work queue.
func (e *environment) checkQueue(queue string, hub dynamo.HubConfig) {
	if _, ok := hub.WorkQueues[queue]; !ok {
		e.failf("PERDURE_QUEUE", "has the value %q, but hub %q has the queues %s",
			queue, hub.Name, strings.Join(slices.Sorted(maps.Keys(hub.WorkQueues)), ", "))
	}
}

// activityNames returns the names of the registered activities of a queue.
func activityNames(r *perdure.Registry, queue string) []string {
	code := (*registry.Registry)(r)
	return slices.DeleteFunc(code.Names().Activities, func(name string) bool {
		a, ok := code.Activity(name)
		return !ok || a.Queue != queue
	})
}

// sweepInterval is the interval of sweeps in a polling renewer. The rule of the stack has the same interval.
const sweepInterval = 2 * time.Minute

// serveTimers polls the timers queue and runs the sweeper until ctx ends.
func serveTimers(ctx context.Context, p provider.Poller, r *renewer) error {
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		tick := time.NewTicker(sweepInterval)
		defer tick.Stop()
		for {
			if woken, err := r.sweep(ctx); err != nil && ctx.Err() == nil {
				r.log.Error("sweep failed, retrying on the next tick", "event", logevent.SweepFailed, "woken", woken,
					"error", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	defer sweeps.Wait()
	return dispatch.Poll(ctx, p, provider.QueueTimers, r.renewer.HandleRecords, dispatch.PollOptions{Logger: r.log})
}

const (
	readTimeout     = 10 * time.Second // time to read the headers and the body of a request
	writeTimeout    = time.Minute      // longer than a wait for a result, and enough for 6 MB on a slow line
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 30 * time.Second // longer than a wait for a result
)

// endStreams ends streams when ctx ends, so that they do not delay the end of the process. A POST to their path raises
// an event named stream.
func endStreams(ctx context.Context, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/events/stream") {
			limited, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			r = r.WithContext(limited)
		}
		h.ServeHTTP(w, r)
	})
}

// serveHTTP serves until ctx ends, and then finishes running requests.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler: endStreams(ctx, h), ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		DisableGeneralOptionsHandler: true,
	}

	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("lambdahandler: serve HTTP: %w", err)
	case <-ctx.Done():
	}

	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	if err := s.Shutdown(ctx); err != nil {
		return fmt.Errorf("lambdahandler: shut down HTTP: %w", errors.Join(err, s.Close()))
	}
	return nil
}
