package hubadmin

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/provider"
)

// leastMessageDays is the minimum age at which payloads of messages may expire. A message can wait 14 days in its queue
// and 14 days in the dead-letter queue, and again after a redrive. The lifecycle rule of the CDK construct has the same
// age.
const leastMessageDays = 60

// payloads checks the lifecycle rules of the payload store. Payloads of messages must expire, and payloads of histories
// must not.
func (x *examination) payloads(ctx context.Context) {
	const of = "payload store"
	bucket := x.Config.PayloadBucket
	if bucket == "" || x.ExpiryRules == nil {
		return
	}
	rules, err := x.ExpiryRules(ctx, bucket)
	if err != nil {
		x.reportUnread(of, err)
		return
	}
	kept, mailed := x.Config.Name+"/"+provider.ExecutionPayloadPrefix, x.Config.Name+"/"+provider.MessagePayloadPrefix
	forgets := false
	for _, r := range rules {
		if strings.HasPrefix(kept, r.Prefix) || strings.HasPrefix(r.Prefix, kept) {
			x.report(of,
				fmt.Sprintf("a lifecycle rule deletes objects with the prefix %q, "+
					"including payloads of histories under %s",
					r.Prefix, kept),
				"instances whose payloads are deleted are blocked permanently", "limit the rule to the prefix "+mailed)
		}
		switch {
		case !strings.HasPrefix(mailed, r.Prefix) && !strings.HasPrefix(r.Prefix, mailed):
		case r.Days < leastMessageDays:
			x.report(of,
				fmt.Sprintf("a lifecycle rule deletes payloads of messages under %s before they are %d days old",
					mailed, leastMessageDays),
				"messages that wait or are redriven lose their payloads",
				fmt.Sprintf("set the expiration of the rule to %d days", leastMessageDays))
			forgets = true
		default:
			forgets = forgets || !r.Filtered && strings.HasPrefix(mailed, r.Prefix)
		}
	}
	if !forgets {
		x.report(of, "no lifecycle rule expires objects under "+mailed,
			"copies of large payloads of messages are never deleted, and cost storage",
			fmt.Sprintf("add a lifecycle rule to bucket %s that expires the prefix %s after %d days", bucket, mailed,
				leastMessageDays))
	}
}
