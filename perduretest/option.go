package perduretest

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// options are the options of an Env.
type options struct {
	simhub.Options

	hangTimeout time.Duration
	crash       crash
	// network are the activities of WithNetwork.
	network    []string
	allNetwork bool
	// unchecked are the faults of WithoutFaultCheck.
	unchecked []Fault
	// tables are the tables of WithTable.
	tables []simaws.TableConfig
}

// Option is an option of New and NewDeployed. The With functions of this package return options.
type Option interface{ apply(o *options) }

type option func(*options)

func (f option) apply(o *options) { f(o) }

// WithLogger sets the logger of the engine and of the orchestrations. By default, log records are discarded.
func WithLogger(l *slog.Logger) Option {
	return option(func(o *options) { o.Logger = l })
}

// WithCache keeps instances warm between turns, so that only lost instances are replayed. Use it to compare warm and
// cold instances, and for large histories, because a replay in each of n turns takes time proportional to n².
func WithCache() Option { return option(func(o *options) { o.CacheBytes = 0 }) }

// WithJitter enables the jitter of retry policies. By default, each wait is exactly the interval of its policy.
func WithJitter() Option { return option(func(o *options) { o.Jitter = true }) }

// WithInterceptors adds interceptors that run around turns, activities and calls of Env.Client, as in a deployed hub.
func WithInterceptors(interceptors ...perdure.Interceptor) Option {
	return option(func(o *options) { o.Interceptors = append(o.Interceptors, interceptors...) })
}

// WithCodec sets the codec of the hub's functions and of Env.Client, like lambdahandler.WithCodec and client.WithCodec.
func WithCodec(codec perdure.Codec, others ...perdure.Codec) Option {
	return option(func(o *options) { o.Codecs = append([]perdure.Codec{codec}, others...) })
}

// WithLargePayloads gives the hub a payload store, like LargePayloads of the CDK construct. Without a payload store,
// payloads of more than 200 KiB fail.
func WithLargePayloads() Option { return option(func(o *options) { o.Bucket = true }) }

// clientOptions returns the options of Env.Client.
func (o *options) clientOptions() []client.Option {
	all := []client.Option{client.WithInterceptors(o.Interceptors...)}
	if len(o.Codecs) > 0 {
		all = append(all, client.WithCodec(o.Codecs[0], o.Codecs[1:]...))
	}
	return all
}

// adminOptions returns the options of Env.Admin.
func (o *options) adminOptions() []admin.Option {
	return []admin.Option{admin.WithInterceptors(o.Interceptors...)}
}

// WithHangTimeout sets the real time after which the test fails because code hangs. It limits the time for which code
// computes or waits for the network, the duration of one instant of virtual time, and a wait without progress. The
// default is a minute. The limit for code that waits for a mutex or a channel is a twelfth of d. Code that makes
// progress is not limited. With NewDeployed, d limits each wait, and the default is five minutes.
func WithHangTimeout(d time.Duration) Option { return option(func(o *options) { o.hangTimeout = d }) }
