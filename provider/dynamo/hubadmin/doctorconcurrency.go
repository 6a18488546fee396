package hubadmin

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// AccountAPI contains the Lambda operation with which Check reads the account's quota. *lambda.Client implements it.
type AccountAPI interface {
	GetAccountSettings(
		ctx context.Context, in *lambda.GetAccountSettingsInput, opts ...func(*lambda.Options),
	) (*lambda.GetAccountSettingsOutput, error)
}

// enoughConcurrency is the unreserved concurrency that Lambda guarantees in an account with the default quota of
// 1,000 concurrent executions. A new account can have a quota of 10 ("Lambda quotas").
const enoughConcurrency = 100

// concurrency compares the account's quota of concurrent executions with the concurrency of the hub's mappings.
func (x *examination) concurrency(ctx context.Context, mappings []Mapping) {
	const of = "account"
	if x.Account == nil || len(mappings) == 0 {
		return
	}
	out, err := x.Account.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	switch {
	case err != nil:
		x.reportUnread(of+", its concurrency", err)
		return
	case out.AccountLimit == nil || out.AccountLimit.UnreservedConcurrentExecutions == nil:
		return
	}
	available := int(*out.AccountLimit.UnreservedConcurrentExecutions)
	used, bounded := usedBy(mappings)
	if available >= enoughConcurrency || bounded && used < available {
		return
	}
	uses := fmt.Sprintf("can use %d", used)
	if !bounded {
		uses = "can use all of them, because at least one has no MaximumConcurrency"
	}
	x.report(of,
		fmt.Sprintf("the account has %d unreserved concurrent executions (quota %d), and the hub's mappings %s",
			available, out.AccountLimit.ConcurrentExecutions, uses),
		"the hub's functions throttle each other, so that messages wait and the HTTP API returns server errors",
		"request a higher Lambda quota for concurrent executions, "+
			"or lower InboxConcurrency, TimersConcurrency and WorkConcurrency")
}

// usedBy returns the maximum concurrency of all mappings together. bounded is false if one of them has no maximum.
func usedBy(mappings []Mapping) (used int, bounded bool) {
	bounded = true
	for i := range mappings {
		m := &mappings[i]
		if m.Queue == "" {
			continue
		}
		used += int(m.concurrency)
		bounded = bounded && m.concurrency > 0
	}
	return used, bounded
}
