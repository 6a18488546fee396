package provider

import "context"

type requesterKey struct{}

// WithRequester returns a context for calls on behalf of name, usually an IAM identity. An empty name means that the
// caller is not known. Deletions record the name. Messages and starts have a separate field for it.
func WithRequester(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, requesterKey{}, name)
}

// RequesterOf returns the name that WithRequester set. known is false if the context has no name.
func RequesterOf(ctx context.Context) (name string, known bool) {
	name, known = ctx.Value(requesterKey{}).(string)
	return name, known
}
