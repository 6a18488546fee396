package client

import "github.com/perdure/perdure"

// WithInterceptors adds interceptors whose ClientCall functions run around the calls that perdure.ClientCall names. The
// first interceptor is the outermost one. Interceptors of earlier options run outside interceptors of later options. A
// panic of an interceptor is logged to slog.Default.
func WithInterceptors(interceptors ...perdure.Interceptor) Option {
	return func(o *options) { o.interceptors = append(o.interceptors, interceptors...) }
}
