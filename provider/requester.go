package provider

import "context"

type requesterKey struct{}

// WithRequester returns a context for calls made on behalf of name: an IAM identity as a rule; empty where it is
// certain that the caller is not known. Deletions made with the context record it; messages and starts have a field of
// their own for it.
func WithRequester(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, requesterKey{}, name)
}

// RequesterOf returns on whose behalf the calls of a context are made; known is false where WithRequester was not used.
func RequesterOf(ctx context.Context) (name string, known bool) {
	name, known = ctx.Value(requesterKey{}).(string)
	return name, known
}
