package simhub

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simaws"
)

// lambda is the service of calls that a mapping makes.
const lambda = "Lambda"

// interceptor parks the calls of invocations and clients. inner, if not nil, runs around the call itself.
func (s *Scheduler) interceptor(inner simaws.Interceptor) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		if inner != nil {
			do := next
			next = func() error { return inner(ctx, c, do) }
		}
		inv, _ := ctx.Value(invocationKey{}).(*invocation)
		switch {
		case inv == nil && c.Service == lambda:
			return s.call(ctx, &invocation{name: nameOf(c.Input)}, c, next)
		case inv == nil: // a call of the test
			return next()
		case c.Operation == abandoning:
			if inv.crashed.Load() {
				return ErrCrashed
			}
			return next()
		default:
			return s.call(ctx, inv, c, next)
		}
	}
}

// abandoning is the only call that does not park, because the records of a batch are released in several calls, in map
// order. They concern different messages, so that their order is irrelevant.
const abandoning = "ChangeMessageVisibilityBatch"

// call parks a call before it is made and before its result is returned.
func (s *Scheduler) call(ctx context.Context, inv *invocation, c simaws.Call, next func() error) error {
	name := inv.name + " " + c.Operation + " " + keyOf(c.Input) + onBehalf(ctx)
	at := func(after bool) error {
		p := &point{who: inv.name, name: name, after: after}
		switch {
		case inv.client:
		case c.Service != lambda:
			p.crash, p.fail, p.repeat, p.freeze = true, true, true, true
		case c.Operation == "Invoke":
			p.crash = true
		default: // the mapping's delete, which no function makes
			p.fail = true
		}
		if after {
			p.name += " <-"
		}
		return s.stop(inv, p)
	}
	if err := at(false); err != nil {
		return err
	}
	err := next()
	for {
		switch stopped := at(true); {
		case stopped == nil:
			return err
		case errors.Is(stopped, errRepeat):
			err = next()
		default:
			return stopped
		}
	}
}

// errRepeat means that the response is lost and the SDK repeats the call.
var errRepeat = errors.New("simhub: the call is repeated")

// onBehalf distinguishes equal concurrent calls by their activity, if they concern only one activity. It also
// distinguishes them by the calling function of the worker, because a worker reads for starting and for running
// activities.
func onBehalf(ctx context.Context) string {
	who := ""
	if a := perdure.ActivityInfoFrom(ctx); a.ActivityID > 0 {
		who = fmt.Sprintf(" for #%d attempt %d", a.ActivityID, a.Attempt)
	}
	var pcs [maxCallers]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for f, more := frames.Next(); more; f, more = frames.Next() {
		_, name, ok := strings.Cut(f.Function, "/perdure/dispatch/internal/")
		if pkg, function, _ := strings.Cut(name, "."); ok && slices.Contains(workerPackages, pkg) {
			return who + " by " + function
		}
	}
	return who
}

// workerPackages are the packages of a worker that start its calls. Its other packages make calls for different
// purposes in one function.
var workerPackages = []string{"activities", "cancelpoll", "workerreport"}

// maxCallers is the maximum number of frames of the SDK and a provider below the frames of a dispatcher.
const maxCallers = 64

// stop parks an invocation and returns the verdict as an error. It also parks a crashed invocation, because its
// remaining code must not race with other code.
func (s *Scheduler) stop(inv *invocation, p *point) error {
	if inv.crashed.Load() {
		p.crash, p.fail, p.repeat, p.freeze = false, false, false, false
		s.park(p)
		return ErrCrashed
	}
	switch s.park(p) {
	case crashes:
		inv.crashed.Store(true)
	case fails:
		return ErrFailed
	case repeats:
		return errRepeat
	case proceeds, freezes: // a frozen goroutine stays parked and continues later
	}
	return inv.err()
}

// Step parks an activity on a hub with a Schedule. On other hubs it does nothing. The hub itself parks every activity
// before its start and before its outcome.
func Step(ctx context.Context) { stepAt(ctx, "in") }

// Idle lets a client of Scheduler.Go wait for n other decisions, so that the seed selects the moment of its next call.
func Idle(ctx context.Context, n int) {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	if inv == nil || inv.schedule == nil {
		return
	}
	for range n {
		if inv.schedule.park(&point{who: inv.name, name: inv.name + " idles"}) != proceeds {
			return // the hub is closed
		}
	}
}

func stepAt(ctx context.Context, where string) {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	if inv == nil || inv.schedule == nil {
		return
	}
	a := perdure.ActivityInfoFrom(ctx)
	name := fmt.Sprintf("%s activity %s %s #%d attempt %d %s", inv.name, a.Name, a.ExecutionID, a.ActivityID, a.Attempt,
		where)
	// the code of a crashed process may continue without effect
	_ = inv.schedule.stop(inv, &point{who: inv.name, name: name, crash: true, freeze: true})
}

// nameOf returns the name of the invocation to which a call of a mapping belongs: the receipt handle of the first
// message of the batch.
func nameOf(input any) string {
	switch in := input.(type) {
	case []sqstypes.Message:
		return *in[0].ReceiptHandle
	case *sqs.DeleteMessageBatchInput:
		return *in.Entries[0].ReceiptHandle
	}
	return ""
}

// keyOf returns a text that identifies a call, without its random parts.
func keyOf(input any) string {
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		return itemKey(in.Key)
	case *dynamodb.PutItemInput:
		return itemKey(in.Item)
	case *dynamodb.UpdateItemInput:
		return itemKey(in.Key)
	case *dynamodb.DeleteItemInput:
		return itemKey(in.Key)
	case *dynamodb.QueryInput:
		return queryKey(in)
	case *sqs.ReceiveMessageInput:
		return *in.QueueUrl
	case *dynamodb.TransactWriteItemsInput:
		return transactionKey(in.TransactItems)
	case *scheduler.CreateScheduleInput:
		return *in.Name
	case *scheduler.UpdateScheduleInput:
		return *in.Name
	case *scheduler.DeleteScheduleInput:
		return *in.Name
	}
	return messagesKey(input)
}

func messagesKey(input any) string {
	var b strings.Builder
	switch in := input.(type) {
	case *sqs.SendMessageBatchInput:
		return sentKey(in)
	case *sqs.DeleteMessageBatchInput:
		for i := range in.Entries {
			b.WriteString(*in.Entries[i].ReceiptHandle + " ")
		}
	case *sqs.ChangeMessageVisibilityBatchInput:
		for i := range in.Entries {
			fmt.Fprintf(&b, "%s in %d s ", *in.Entries[i].ReceiptHandle, in.Entries[i].VisibilityTimeout)
		}
	case []sqstypes.Message:
		for i := range in {
			b.WriteString(*in[i].ReceiptHandle + " ")
		}
	}
	return b.String()
}

// excerpt is the number of bytes of a message in a name.
const excerpt = 160

// sentKey distinguishes batches by their contents and shows the start of the first message. It ignores deduplication
// IDs, which can be random.
func sentKey(in *sqs.SendMessageBatchInput) string {
	h := fnv.New32a()
	for i := range in.Entries {
		fmt.Fprintf(h, "%s %d ", *in.Entries[i].MessageBody, in.Entries[i].DelaySeconds)
	}
	first := *in.Entries[0].MessageBody
	return fmt.Sprintf("%s %d %08x %s", *in.QueueUrl, len(in.Entries), h.Sum32(), first[:min(len(first), excerpt)])
}

func transactionKey(items []ddbtypes.TransactWriteItem) string {
	var b strings.Builder
	for i := range items {
		switch it := &items[i]; {
		case it.Put != nil:
			b.WriteString("put " + itemKey(it.Put.Item) + " ")
		case it.Update != nil:
			b.WriteString("update " + itemKey(it.Update.Key) + " ")
		case it.Delete != nil:
			b.WriteString("delete " + itemKey(it.Delete.Key) + " ")
		case it.ConditionCheck != nil:
			b.WriteString("check " + itemKey(it.ConditionCheck.Key) + " ")
		}
	}
	return b.String()
}

// queryKey distinguishes concurrent queries, such as those of the shards of an index, by their parameters.
func queryKey(in *dynamodb.QueryInput) string {
	var b strings.Builder
	b.WriteString(aws.ToString(in.IndexName))
	for _, name := range slices.Sorted(maps.Keys(in.ExpressionAttributeValues)) {
		b.WriteString(" " + text(in.ExpressionAttributeValues[name]))
	}
	if len(in.ExclusiveStartKey) > 0 {
		b.WriteString(" after " + itemKey(in.ExclusiveStartKey))
	}
	return strings.TrimSpace(b.String())
}

func itemKey(it map[string]ddbtypes.AttributeValue) string {
	return text(it["pk"]) + " " + text(it["sk"])
}

func text(v ddbtypes.AttributeValue) string {
	if s, ok := v.(*ddbtypes.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
