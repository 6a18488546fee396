package dispatch_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider/wire"
)

// inlineMonitor checks R20 for inline activities. No activity starts from a state that its invocation has not verified
// or committed, or uses an uncommitted result. No started activity is cancelled by the turn that scheduled it. No
// activity that was sent to a queue has an outcome of the same invocation.
type inlineMonitor struct {
	w *monitor

	mu sync.Mutex
	// known is the last event that an invocation has read from or committed to history, by its name and the execution.
	// begun contains the steps that it has started since.
	known map[[2]string]known
	begun map[[2]string]map[int64]string // with their inputs
	// sent contains the steps that an invocation has sent to a queue. settled contains the steps whose outcomes it has
	// committed, and own contains the steps that it has scheduled.
	sent, settled, own map[[2]string]map[int64]bool
	began              int
	// stopped returns whether the context of a started step has ended.
	stopped map[[2]string]map[int64]func() error
}

type known struct {
	last  int64
	ended bool
}

func newInlineMonitor(w *monitor) *inlineMonitor {
	return &inlineMonitor{
		w: w, known: map[[2]string]known{}, begun: map[[2]string]map[int64]string{},
		sent: map[[2]string]map[int64]bool{}, settled: map[[2]string]map[int64]bool{},
		own:     map[[2]string]map[int64]bool{},
		stopped: map[[2]string]map[int64]func() error{},
	}
}

// history returns the committed events of an execution.
func (i *inlineMonitor) history(id string) (events []history.Event) {
	i.w.mu.Lock()
	instance := i.w.instances["x#"+id]
	i.w.mu.Unlock()
	for e, err := range i.w.h.Provider.ReadHistory(context.Background(), instance, id, 0) {
		if err != nil {
			return events
		}
		events = append(events, e)
	}
	return events
}

// begins is called before the code of a step starts.
func (i *inlineMonitor) begins(ctx context.Context, input json.RawMessage) {
	name, died := simhub.Process(ctx)
	if died || ctx.Err() != nil {
		return // the process is dead, or its context has ended
	}
	a := perdure.ActivityInfoFrom(ctx)
	by := [2]string{name, a.ExecutionID}
	committed := i.history(a.ExecutionID)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.began++
	switch k, looked := i.known[by]; {
	case a.Attempt > 1:
		return
	case !looked:
		i.w.wrongf("R20: step #%d of %s started without a read of the head", a.ActivityID, a.ExecutionID)
	case k.ended:
		i.w.wrongf("R20: step #%d of %s started after its invocation had read the end", a.ActivityID, a.ExecutionID)
	case a.ActivityID <= k.last && !i.own[by][a.ActivityID]: // its own steps may run during the commit, and start late
		i.w.wrongf("R20: step #%d of %s started in a state before #%d, which its invocation had read",
			a.ActivityID, a.ExecutionID, k.last)
	}
	for id, before := range i.begun[by] {
		if a.Name == "link" && next(before) == string(input) && !hasResult(committed, string(input)) {
			i.w.wrongf("R20: step #%d of %s started with %s, the uncommitted result of #%d",
				a.ActivityID, a.ExecutionID, input, id)
		}
	}
	if i.begun[by] == nil {
		i.begun[by] = map[int64]string{}
	}
	i.begun[by][a.ActivityID] = string(input)
	if i.stopped[by] == nil {
		i.stopped[by] = map[int64]func() error{}
	}
	i.stopped[by][a.ActivityID] = ctx.Err
}

// next returns the result of a link.
func next(input string) string {
	n, _ := strconv.Atoi(input)
	return strconv.Itoa(n + 1)
}

func add(to map[[2]string]map[int64]bool, by [2]string, id int64) {
	if to[by] == nil {
		to[by] = map[int64]bool{}
	}
	to[by][id] = true
}

func hasResult(events []history.Event, want string) bool {
	for i := range events {
		if e := &events[i]; e.Kind == history.ActivityCompleted && string(e.Result) == want {
			return true
		}
	}
	return false
}

// see observes a call after it was made.
func (i *inlineMonitor) see(ctx context.Context, c simaws.Call) {
	name, died := simhub.Process(ctx)
	if name == "" || died {
		return
	}
	switch in := c.Input.(type) {
	case *dynamodb.QueryInput:
		if id, ok := strings.CutPrefix(text(in.ExpressionAttributeValues, ":pk"), "x#"); ok &&
			in.ConsistentRead != nil && *in.ConsistentRead && readsSegments(in) && !isStatusRefresh() {
			i.knows([2]string{name, id})
		}
	case *dynamodb.PutItemInput:
		i.commits(name, in.Item)
	case *dynamodb.TransactWriteItemsInput:
		for n := range in.TransactItems {
			if put := in.TransactItems[n].Put; put != nil {
				i.commits(name, put.Item)
			}
		}
	case *sqs.SendMessageBatchInput:
		for n := range in.Entries {
			if item, err := wire.DecodeWorkItem(*in.Entries[n].MessageBody); err == nil && item.ActivityID > 0 &&
				!strings.Contains(*in.QueueUrl, "dead") {
				i.sends([2]string{name, item.ExecutionID}, item.ActivityID)
			}
		}
	default:
	}
}

// isStatusRefresh reports whether a read refreshes a status. No turn uses such a read.
func isStatusRefresh() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for f, more := frames.Next(); more; f, more = frames.Next() {
		if strings.HasSuffix(f.Function, ".RefreshStatus") {
			return true
		}
	}
	return false
}

func readsSegments(in *dynamodb.QueryInput) bool {
	for name := range in.ExpressionAttributeValues {
		if strings.HasPrefix(text(in.ExpressionAttributeValues, name), "h#") {
			return true
		}
	}
	return false
}

// knows records the events that an invocation has read from history.
func (i *inlineMonitor) knows(by [2]string) {
	events := i.history(by[1])
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[by] = lastKnown(events)
}

func lastKnown(events []history.Event) (k known) {
	if n := len(events); n > 0 {
		k = known{events[n-1].ID, events[n-1].Kind.Terminal()}
	}
	return k
}

// commits observes a segment that an invocation has committed.
func (i *inlineMonitor) commits(name string, it map[string]ddbtypes.AttributeValue) {
	id, ofExecution := strings.CutPrefix(text(it, "pk"), "x#")
	if !ofExecution || !strings.HasPrefix(text(it, "sk"), "h#") {
		return
	}
	by := [2]string{name, id}
	events := i.history(id)
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.known[by]
	i.known[by] = lastKnown(events)
	for n := range events {
		e := &events[n]
		switch {
		case e.ID <= before.last:
		case e.Kind == history.ActivityScheduled:
			add(i.own, by, e.ID)
		case e.IsInlineOutcome():
			if add(i.settled, by, e.SourceEventID); i.sent[by][e.SourceEventID] {
				i.w.wrongf("R20: step #%d of %s is completed by the invocation that sent it", e.SourceEventID, id)
			}
		case e.Kind == history.ActivityCancelRequested:
			for _, of := range e.Sources() {
				if _, ran := i.begun[by][of]; ran && of > before.last {
					i.w.wrongf("R20: step #%d of %s ran although the turn that scheduled it cancelled it", of, id)
				}
				if stopped := i.stopped[by][of]; stopped != nil && stopped() == nil {
					i.w.wrongf("R20: step #%d of %s still runs after its invocation has cancelled it", of, id)
				}
			}
		}
	}
	delete(i.begun, by)
}

// sends observes a work item that an invocation has sent.
func (i *inlineMonitor) sends(by [2]string, id int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if add(i.sent, by, id); i.settled[by][id] {
		i.w.wrongf("R20: step #%d of %s is sent by the invocation that has its outcome", id, by[1])
	}
}
