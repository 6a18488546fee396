package deployment

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/infra/template"
)

// fakeAWS has one stack and one bucket for code. The stack has a bucket for payloads. It implements StackAPI, CodeStore
// and BucketAPI.
type fakeAWS struct {
	// payloads is the number of objects in the bucket of the stack, and added has the objects that functions write
	// after each deletion of them.
	payloads int
	added    []int
	stack    *Stack
	events   []Event // the oldest first
	sets     map[string]*fakeChangeSet
	objects  map[string][]byte
	calls    []string
	// before is called before each call, and after when it took effect. An error of after is a lost response.
	before, after func(call string) error
	// script has the events of the next execution, for each read of events.
	script [][]Event
	// unchanged makes change sets fail, because there are no changes.
	unchanged bool
	created   int // change sets
	executed  int
	last      *ChangeSetRequest
	// unseen is the number of the newest events that reads do not return yet.
	unseen int
	// described is the status in descriptions of the stack, if it is older than the events.
	described string
	// tokens are those of deletions. A deletion with a token of an earlier one has no effect.
	tokens map[string]bool
}

type fakeChangeSet struct {
	id      string
	request *ChangeSetRequest
	polls   int // until it is created
}

func newFakeAWS() *fakeAWS {
	return &fakeAWS{sets: map[string]*fakeChangeSet{}, objects: map[string][]byte{}, tokens: map[string]bool{}}
}

const fakeStackID = "arn:aws:cloudformation:eu-west-1:123456789012:stack/perdure-orders/1"

// do records a call and runs its effect.
func (f *fakeAWS) do(ctx context.Context, call string, effect func() error) error {
	f.calls = append(f.calls, call)
	if f.before != nil {
		if err := f.before(call); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := effect(); err != nil {
		return err
	}
	if f.after != nil {
		return f.after(call)
	}
	return nil
}

func (f *fakeAWS) DescribeStack(ctx context.Context, stack string) (s *Stack, err error) {
	err = f.do(ctx, "DescribeStack", func() error {
		if f.stack != nil && (f.stack.Status != statusDeleted || stack == f.stack.ID) {
			found := *f.stack
			found.Status = cmp.Or(f.described, found.Status)
			s = &found
		}
		return nil
	})
	return s, err
}

func (f *fakeAWS) CreateChangeSet(ctx context.Context, r *ChangeSetRequest) error {
	return f.do(ctx, "CreateChangeSet", func() error {
		switch {
		case f.sets[r.Name] != nil:
			return &APIError{Operation: "create change set", Code: codeAlreadyExists, Message: "ChangeSet exists"}
		case r.Create && f.stack != nil && f.stack.Status != statusReview:
			return &APIError{Operation: "create change set", Code: codeAlreadyExists, Message: "Stack exists"}
		case r.Create && f.stack == nil:
			f.stack = &Stack{ID: fakeStackID, Name: r.Stack, Status: statusReview}
			f.event(r.Stack, "AWS::CloudFormation::Stack", statusReview, "")
		}
		f.created++
		f.sets[r.Name], f.last = &fakeChangeSet{id: fmt.Sprint("id:", f.created), request: r, polls: 1}, r
		return nil
	})
}

// find returns a change set by its name or ID, or nil.
func (f *fakeAWS) find(name string) *fakeChangeSet {
	for _, set := range f.sets {
		if name == set.id || name == set.request.Name {
			return set
		}
	}
	return nil
}

func (f *fakeAWS) DescribeChangeSet(ctx context.Context, _, name string) (c *ChangeSet, err error) {
	err = f.do(ctx, "DescribeChangeSet", func() error {
		set := f.sets[name]
		switch {
		case set == nil:
			return &APIError{Operation: "describe change set", Code: codeNoChangeSet, Status: 404}
		case set.polls > 0:
			set.polls--
			c = &ChangeSet{Status: "CREATE_IN_PROGRESS"}
		case f.unchanged:
			c = &ChangeSet{Status: "FAILED", Reason: "The submitted information didn't contain changes. Submit different …"}
		default:
			c = &ChangeSet{Status: "CREATE_COMPLETE", Changes: []Change{{"Add", "Table", "AWS::DynamoDB::Table", ""}}}
		}
		c.ID = set.id
		return nil
	})
	return c, err
}

func (f *fakeAWS) DeleteChangeSet(ctx context.Context, _, name string) error {
	return f.do(ctx, "DeleteChangeSet", func() error {
		if set := f.find(name); set != nil {
			delete(f.sets, set.request.Name)
		}
		return nil
	})
}

func (f *fakeAWS) ExecuteChangeSet(ctx context.Context, _, name, _ string) error {
	return f.do(ctx, "ExecuteChangeSet", func() error {
		set := f.find(name)
		if set == nil {
			return &APIError{Operation: "execute change set", Code: codeNoChangeSet, Status: 404}
		}
		clear(f.sets)
		f.executed++
		parameters := map[string]string{}
		for _, kept := range set.request.Kept {
			parameters[kept] = f.stack.Parameters[kept]
		}
		maps.Copy(parameters, set.request.Parameters)
		f.stack.Parameters = parameters
		status := "UPDATE_IN_PROGRESS"
		if set.request.Create {
			status = "CREATE_IN_PROGRESS"
		}
		f.stack.Status = status
		f.event(f.stack.Name, "AWS::CloudFormation::Stack", status, "User Initiated")
		return nil
	})
}

func (f *fakeAWS) StackEvents(ctx context.Context, _ string, stop func(e *Event) bool) (events []Event, err error) {
	err = f.do(ctx, "StackEvents", func() error {
		if isRunning(f.stack.Status) {
			f.step()
		}
		for _, e := range slices.Backward(f.events[:len(f.events)-f.unseen]) {
			if stop(&e) {
				return nil
			}
			events = append(events, e)
		}
		return nil
	})
	return events, err
}

// step adds the next events of the script. After the script, the change completes.
func (f *fakeAWS) step() {
	if len(f.script) > 0 {
		for _, e := range f.script[0] {
			f.event(e.Resource, e.Type, e.Status, e.Reason)
		}
		f.script = f.script[1:]
		return
	}
	if f.stack.Status == statusDeleteRunning && f.payloads > 0 {
		f.event(payloadBucket, bucketType, "DELETE_FAILED", "The bucket you tried to delete is not empty")
		f.event(f.stack.Name, "AWS::CloudFormation::Stack", "DELETE_FAILED", "")
		return
	}
	status := strings.TrimSuffix(f.stack.Status, "_IN_PROGRESS") + "_COMPLETE"
	f.event("Table", "AWS::DynamoDB::Table", status, "")
	f.event(f.stack.Name, "AWS::CloudFormation::Stack", status, "")
	f.stack.Outputs = map[string]string{"TableName": "orders"}
}

// event adds an event. An event of the stack changes its status.
func (f *fakeAWS) event(resource, kind, status, reason string) {
	physical := "physical-" + resource
	if kind == "AWS::CloudFormation::Stack" {
		physical = fakeStackID
		f.stack.Status = status
	}
	f.events = append(f.events, Event{
		ID: fmt.Sprint(len(f.events) + 1), Resource: resource, Physical: physical, Type: kind, Status: status,
		Reason: reason,
	})
}

const payloadBucket = "Payloads"

func (f *fakeAWS) DeleteStack(ctx context.Context, _, token string) error {
	return f.do(ctx, "DeleteStack", func() error {
		repeated := f.tokens[token]
		f.tokens[token] = true
		if f.stack != nil && f.stack.Status != statusDeleted && !repeated {
			f.script = nil // of the change that the deletion ends
			f.event(f.stack.Name, "AWS::CloudFormation::Stack", statusDeleteRunning, "User Initiated")
		}
		return nil
	})
}

func (f *fakeAWS) ListStacks(ctx context.Context) (all []Stack, err error) {
	err = f.do(ctx, "ListStacks", func() error {
		if f.stack != nil && f.stack.Status != statusDeleted {
			all = append(all, *f.stack)
		}
		return nil
	})
	return all, err
}

func (f *fakeAWS) StackResources(ctx context.Context, _ string) (all []Resource, err error) {
	err = f.do(ctx, "StackResources", func() error {
		all = []Resource{
			{ID: "Table", Type: "AWS::DynamoDB::Table", Physical: "table", Status: "CREATE_COMPLETE"},
			{ID: payloadBucket, Type: bucketType, Physical: "payloads", Status: "CREATE_COMPLETE"},
		}
		return nil
	})
	return all, err
}

func (f *fakeAWS) ListBuckets(ctx context.Context, _ string) (names []string, err error) {
	err = f.do(ctx, "ListBuckets", func() error {
		if f.objects != nil {
			names = []string{"code"}
		}
		return nil
	})
	return names, err
}

func (f *fakeAWS) EmptyBucket(ctx context.Context, name string) error {
	return f.do(ctx, "EmptyBucket", func() error {
		switch {
		case name == "code":
			clear(f.objects)
		case len(f.added) > 0:
			f.payloads, f.added = f.added[0], f.added[1:]
		default:
			f.payloads = 0
		}
		return nil
	})
}

func (f *fakeAWS) DeleteBucket(ctx context.Context, _ string) error {
	return f.do(ctx, "DeleteBucket", func() error {
		if len(f.objects) > 0 {
			return &APIError{Operation: "delete bucket", Code: "BucketNotEmpty", Status: 409}
		}
		f.objects = nil
		return nil
	})
}

func (f *fakeAWS) Ensure(ctx context.Context) error {
	return f.do(ctx, "Ensure", func() error { return nil })
}

func (f *fakeAWS) Has(ctx context.Context, key string) (exists bool, err error) {
	err = f.do(ctx, "Has", func() error {
		_, exists = f.objects[key]
		return nil
	})
	return exists, err
}

func (f *fakeAWS) Put(ctx context.Context, key, _ string, body []byte) error {
	return f.do(ctx, "Put", func() error {
		f.objects[key] = body
		return nil
	})
}

func (f *fakeAWS) Bucket() string        { return "code" }
func (f *fakeAWS) URL(key string) string { return "https://code/" + key }

// count returns the number of calls.
func (f *fakeAWS) count(call string) int {
	n := 0
	for _, c := range f.calls {
		if c == call {
			n++
		}
	}
	return n
}

// embedded returns the template of the tool.
func embedded(t *testing.T) *Template {
	t.Helper()
	parsed, err := ParseTemplate(template.JSON)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// run deploys with small functions. The progress is in out.
type run struct {
	*Request

	out          bytes.Buffer
	architecture string // of the last build
}

func newRun(t *testing.T) *run {
	t.Helper()
	r := &run{}
	r.Request = &Request{
		Stack: "perdure-orders", Hub: "orders", Template: embedded(t), Parameters: map[string]string{},
		Functions: func(_ context.Context, architecture string) ([]Function, error) {
			r.architecture = architecture
			return someFunctions(), nil
		},
		Confirm: func(context.Context, *ChangeSet) error { return nil },
	}
	return r
}

// someFunctions returns functions with little code.
func someFunctions() []Function {
	all := make([]Function, len(functionNames))
	for i, f := range functionNames {
		all[i] = Function{Name: f.name, Binary: []byte("code of " + f.name)}
	}
	return all
}

func (r *run) deploy(ctx context.Context, aws *fakeAWS) (*Result, error) {
	r.out.Reset()
	d := &Deployer{
		Stacks: aws, Code: aws, Progress: &r.out,
		Sleep: func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) },
	}
	return d.Deploy(ctx, r.Request)
}

// mustDeploy deploys, and fails the test on an error.
func (r *run) mustDeploy(t *testing.T, aws *fakeAWS) *Result {
	t.Helper()
	result, err := r.deploy(t.Context(), aws)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.out.String())
	}
	return result
}
