package provider

import "context"

type requesterKey struct{}

// WithRequester returns a context of calls that somebody asks for: an IAM identity as a rule, and empty where it is known that nobody knows. The
// deletions of a context keep it; messages and starts name theirs themselves.
func WithRequester(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, requesterKey{}, name)
}

// RequesterOf is who asks for the calls of a context; known is false where nobody has said.
func RequesterOf(ctx context.Context) (name string, known bool) {
	name, known = ctx.Value(requesterKey{}).(string)
	return name, known
}
