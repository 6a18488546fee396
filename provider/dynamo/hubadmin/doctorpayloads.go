package hubadmin

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/provider"
)

// leastMailDays is how long what messages bring must be kept: a message is in its queue for 14 days, and for as long in the dead letters, and who redrives it
// begins again. The construct's own rule has as many.
const leastMailDays = 60

// payloads looks at what the bucket for large payloads forgets: what messages have brought is to expire, and what histories refer to must not.
func (x *examination) payloads(ctx context.Context) {
	const of = "bucket for large payloads"
	bucket := x.Where.PayloadBucket
	if bucket == "" || x.ExpiryRules == nil {
		return
	}
	rules, err := x.ExpiryRules(ctx, bucket)
	if err != nil {
		x.unread(of, err)
		return
	}
	kept, mailed := x.Where.Name+"/"+provider.PayloadsOfExecutions, x.Where.Name+"/"+provider.PayloadsMailed
	forgets := false
	for _, r := range rules {
		if strings.HasPrefix(kept, r.Prefix) || strings.HasPrefix(r.Prefix, kept) {
			x.wrong(of, fmt.Sprintf("a rule of its lifecycle deletes what begins with %q, and so what histories refer to below %s", r.Prefix, kept),
				"instances that take it are blocked, for good", "limit the rule to what is below "+mailed)
		}
		switch {
		case !strings.HasPrefix(mailed, r.Prefix) && !strings.HasPrefix(r.Prefix, mailed):
		case r.Days < leastMailDays:
			x.wrong(of, fmt.Sprintf("a rule of its lifecycle deletes what messages bring, below %s, before it is %d days old", mailed, leastMailDays),
				"a message that waits, or is redriven from the dead letters, has lost its payload", fmt.Sprintf("have the rule wait for %d days", leastMailDays))
			forgets = true
		default:
			forgets = forgets || !r.Some && strings.HasPrefix(mailed, r.Prefix)
		}
	}
	if !forgets {
		x.wrong(of, "nothing below "+mailed+" expires", "a copy of each large payload that a message has brought stays, and costs",
			fmt.Sprintf("give bucket %s a rule that expires what is below %s after %d days", bucket, mailed, leastMailDays))
	}
}
