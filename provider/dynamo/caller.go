package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

const (
	// callerTime is how long the one call may hold up another: who called is worth a moment, and no more.
	callerTime = 2 * time.Second
	// callerAgain is after how long it is tried again that has failed.
	callerAgain = 10 * time.Minute
)

// caller finds whose credentials a process has, once.
type caller struct {
	ask   func(ctx context.Context) (string, error) // nil: nobody is to be asked
	turn  chan struct{}                             // who has its one place may look at the rest
	name  string
	again time.Time // not before then
}

// Caller is the ARN of the identity whose credentials the provider calls with, of one that Open has made: STS is asked once, which needs no right
// and is given two seconds. Empty where it is not known; that fails nothing.
func (p *Provider) Caller(ctx context.Context) string {
	c := &p.caller
	if c.ask == nil {
		return ""
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ""
	}
	if c.name != "" || p.now().Before(c.again) {
		return c.name
	}
	limited, stop := context.WithTimeout(ctx, callerTime)
	defer stop()
	name, err := c.ask(limited)
	if err != nil {
		c.again = p.now().Add(callerAgain)
		p.log.DebugContext(ctx, "whose credentials these are is not known", "error", err)
	}
	c.name = name
	return name
}

// askSTS asks whose credentials a configuration has.
func askSTS(cfg aws.Config) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		client := sts.NewFromConfig(cfg, func(o *sts.Options) { o.Retryer = aws.NopRetryer{} })
		out, err := client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", err //nolint:wrapcheck // it is for the log, and names its call
		}
		return aws.ToString(out.Arn), nil
	}
}
