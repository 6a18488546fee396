package lambdahandler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/provider"
)

// onLambda reports whether it is Lambda that has started the process, and hands it its events.
func onLambda(getenv func(string) string) bool { return getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// byName reports whether the hub is to be found by its name: elsewhere than on Lambda, PERDURE_HUB is enough.
func byName(getenv func(string) string) bool {
	return !onLambda(getenv) && getenv("PERDURE_TABLE") == ""
}

// untilStopped ends when the process is told to stop. Being told again changes nothing: what is being handled has its grace.
func (f *function) untilStopped() (ctx context.Context, release func()) {
	ctx, release = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { f.log.Info("stopping: what is being handled is finished first") })
	return ctx, release
}

// poll serves a queue of the hub until the process is told to stop.
func (f *function) poll(queue string, h recordHandler, names []string, opts dispatch.PollOptions) {
	ctx, release := f.untilStopped()
	defer release()
	f.log.Info("serving a queue by polling it", "hub", f.polled.Hub().Name, "queue", queue, "serves", strings.Join(names, ", "))
	opts.Logger = f.log
	f.stopped(dispatch.Poll(ctx, f.polled, queue, h.HandleRecords, opts))
}

// pollWork serves a work queue, and says at the end whether activities were left running. What is fetched is locked for as
// long as the queue says, which is for functions; from the first renewal on, a third of LockTimeout later, it is locked for
// that, so that the death of this process is noticed as soon.
func (f *function) pollWork(o dispatch.Options, w *dispatch.Worker, names []string) {
	f.poll(o.Queue, w, names, dispatch.PollOptions{Lock: o.LockTimeout, Renew: w.RenewRecords, Unwind: max(o.CancellationGracePeriod, 0) + 2*time.Second})
	if n := w.Leaked(); n > 0 {
		f.log.Warn("activities have ignored the end of their contexts", "leaked", n)
	}
}

// stopped tells how it ended. Records that went back are not an error of the process: they are delivered again.
func (f *function) stopped(err error) {
	if err != nil {
		f.log.Warn("stopped", "error", err)
		return
	}
	f.log.Info("stopped")
}

// checkQueue ends the process when the hub has no such work queue: polling it could not do anything, ever.
func (f *function) checkQueue(queue string) {
	queues := f.polled.Hub().WorkQueues
	if _, ok := queues[queue]; !ok {
		f.env.failf("PERDURE_QUEUE", "is %q: hub %q has %s", queue, f.polled.Hub().Name, strings.Join(slices.Sorted(maps.Keys(queues)), ", "))
	}
}

func orchestrationNames(r *perdure.Registry) []string {
	return slices.Sorted(maps.Keys(r.Names().Orchestrations))
}

// activityNames are those that the registry has on a queue.
func activityNames(r *perdure.Registry, queue string) []string {
	return slices.DeleteFunc(slices.Clone(r.Names().Activities), func(name string) bool {
		a, ok := r.Activity(name)
		return !ok || a.Queue != queue
	})
}

// watchEvery is how often a renewer that is polling looks after what got stuck, as the rule of the stack has it.
const watchEvery = 2 * time.Minute

// renew serves the timers queue and keeps watch until ctx ends.
func renew(ctx context.Context, p provider.Polling, k *dispatch.Timekeeper, log *slog.Logger) error {
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			if woken, err := k.Watch(ctx); err != nil && ctx.Err() == nil {
				log.Error("the watch has failed, in part or whole, and will be kept again", "woken", woken, "error", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	defer watch.Wait()
	return dispatch.Poll(ctx, p, provider.QueueTimers, k.HandleRecords, dispatch.PollOptions{Logger: log})
}

// defaultListen is for this machine alone: outside Lambda nothing stands before the API that asks who calls.
const defaultListen = "127.0.0.1:8080"

const (
	requestLimit  = 10 * time.Second // for the headers and the body, not for what is done then
	answerLimit   = time.Minute      // longer than a wait for a result, and for 6 MB on a slow line
	idleLimit     = 2 * time.Minute
	shutdownLimit = 30 * time.Second // longer than a wait for a result
)

// listen serves the API over HTTP until the process is told to stop.
func (f *function) listen(h http.Handler) {
	ctx, release := f.untilStopped()
	defer release()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.env.optional("PERDURE_LISTEN", defaultListen))
	if err != nil {
		f.env.failf("PERDURE_LISTEN", "cannot be listened on: %v", err)
		f.check()
	}
	f.log.Info("serving the HTTP API, to whoever can reach it", "hub", f.polled.Hub().Name, "url", "http://"+l.Addr().String()+"/v1")
	f.stopped(serveHTTP(ctx, l, h))
}

// serveHTTP serves until ctx ends, and then finishes what has begun.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadTimeout: requestLimit, WriteTimeout: answerLimit, IdleTimeout: idleLimit, DisableGeneralOptionsHandler: true}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("lambdahandler: HTTP: %w", err)
	case <-ctx.Done():
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer stop()
	if err := s.Shutdown(ctx); err != nil {
		return fmt.Errorf("lambdahandler: HTTP: %w", errors.Join(err, s.Close()))
	}
	return nil
}
