package hubadmin

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// AccountAPI is what Examine asks of the account. *lambda.Client implements it.
type AccountAPI interface {
	GetAccountSettings(ctx context.Context, in *lambda.GetAccountSettingsInput, opts ...func(*lambda.Options)) (*lambda.GetAccountSettingsOutput, error)
}

// enoughConcurrency is how many concurrent executions Lambda keeps for functions without a reservation in an account
// with the default quota of 1,000. A new account may have 10 in all ("Lambda quotas").
const enoughConcurrency = 100

// concurrency compares the concurrent executions of the account with those that the hub's mappings use.
func (x *examination) concurrency(ctx context.Context, mappings []Mapping) {
	const of = "account"
	if x.Account == nil || len(mappings) == 0 {
		return
	}
	out, err := x.Account.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	switch {
	case err != nil:
		x.unread(of+", its concurrency", err)
		return
	case out.AccountLimit == nil || out.AccountLimit.UnreservedConcurrentExecutions == nil:
		return
	}
	available := int(*out.AccountLimit.UnreservedConcurrentExecutions)
	used, bounded := usedBy(mappings)
	if available >= enoughConcurrency || bounded && used < available {
		return
	}
	uses := fmt.Sprintf("may use %d", used)
	if !bounded {
		uses = "may use all, since one has no MaximumConcurrency"
	}
	x.wrong(of, fmt.Sprintf("it permits %d concurrent executions of functions without a reservation (%d in all), and the hub's mappings %s",
		available, out.AccountLimit.ConcurrentExecutions, uses),
		"the functions of the hub throttle each other: messages wait, and the API responds with server errors",
		"request a higher quota of concurrent executions (Service Quotas, AWS Lambda), or set InboxConcurrency, TimersConcurrency and WorkConcurrency to less in sum")
}

// usedBy returns how many concurrent executions mappings use at most; bounded is false if one of them is not capped.
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
