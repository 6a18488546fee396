package perduretest

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// options are those of an Env.
type options struct {
	simhub.Options

	patience time.Duration
	crash    crash
	// network are the activities of WithNetwork.
	network    []string
	allNetwork bool
	// tables are those of WithTable.
	tables []simaws.TableConfig
}

// Option is an option of New: the functions With… make them.
type Option interface{ apply(o *options) }

type option func(*options)

func (f option) apply(o *options) { f(o) }

// WithLogger makes the engine, and the orchestrations' loggers, log to l. By default nothing is logged.
func WithLogger(l *slog.Logger) Option {
	return option(func(o *options) { o.Logger = l })
}

// WithCache keeps instances warm between their turns, so that only what was lost is replayed. It is for tests of what differs between the two,
// and for large histories: n turns that replay take time in the order of n².
func WithCache() Option { return option(func(o *options) { o.CacheBytes = 0 }) }

// WithJitter leaves retry policies their jitter. By default there is none: every wait is exactly the interval of its policy.
func WithJitter() Option { return option(func(o *options) { o.Jitter = true }) }

// WithInterceptors has interceptors called around turns, activities and the calls of Env.Client, as in a deployed hub.
func WithInterceptors(interceptors ...perdure.Interceptor) Option {
	return option(func(o *options) { o.Interceptors = append(o.Interceptors, interceptors...) })
}

// WithCodec sets the codec of the hub's functions and of Env.Client, as lambdahandler.WithCodec and client.WithCodec do. What an activity or an
// orchestration is given and returns is the same with it.
func WithCodec(codec perdure.Codec, others ...perdure.Codec) Option {
	return option(func(o *options) { o.Codecs = append([]perdure.Codec{codec}, others...) })
}

// WithLargePayloads gives the hub a bucket for payloads that are too large for histories, as LargePayloads of the construct does. Without it they fail, as in a
// hub that has none.
func WithLargePayloads() Option { return option(func(o *options) { o.Bucket = true }) }

// clientOptions are those of Env.Client.
func (o *options) clientOptions() []client.Option {
	all := []client.Option{client.WithInterceptors(o.Interceptors...)}
	if len(o.Codecs) > 0 {
		all = append(all, client.WithCodec(o.Codecs[0], o.Codecs[1:]...))
	}
	return all
}

// WithPatience is how long, in real time, code may compute or wait for the network before the test fails because it hangs, how long one moment of virtual
// time may last, and how long Wait goes on for what goes round without anything new: a minute by default. Code that waits for a mutex or a channel gets a
// twelfth of it. What takes long and gets on is not limited by it.
func WithPatience(d time.Duration) Option { return option(func(o *options) { o.patience = d }) }
