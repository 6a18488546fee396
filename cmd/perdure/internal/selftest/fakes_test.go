package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/deployment"
)

// fakeAccount is an AWS account with stacks and buckets. It implements StackAPI and BucketAPI. Changes of a stack take
// two reads of its events.
type fakeAccount struct {
	stacks  map[string]*stack
	buckets map[string]map[string]bool // objects by bucket
	calls   []string
	// before is called before each call, and after when it took effect. An error of after is a lost response.
	before, after func(call string) error
	// failed lets the creation of the next stack fail.
	failed bool
}

type stack struct {
	deployment.Stack
	sets   map[string]*deployment.ChangeSetRequest
	events []deployment.Event // the oldest first
	reads  int                // of events, until the change ends
}

const (
	number = "123456789012"
	region = "eu-west-1"
	// payloads is the bucket of each stack.
	payloads = "payloads-"
)

func newAccount() *fakeAccount {
	return &fakeAccount{stacks: map[string]*stack{}, buckets: map[string]map[string]bool{}}
}

// do records a call and runs its effect.
func (a *fakeAccount) do(ctx context.Context, call string, effect func() error) error {
	a.calls = append(a.calls, call)
	if a.before != nil {
		if err := a.before(call); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := effect(); err != nil {
		return err
	}
	if a.after != nil {
		return a.after(call)
	}
	return nil
}

// find returns a stack by its name or ID, or nil. A deleted stack has only its ID.
func (a *fakeAccount) find(name string) *stack {
	s := a.stacks[strings.TrimPrefix(name, "id:")]
	if s != nil && s.Status == "DELETE_COMPLETE" && !strings.HasPrefix(name, "id:") {
		return nil
	}
	return s
}

func (s *stack) set(status, reason string) {
	s.Status = status
	s.events = append(s.events, deployment.Event{
		ID: fmt.Sprint(len(s.events)), Resource: s.Name, Physical: s.ID, Type: "AWS::CloudFormation::Stack",
		Status: status, Reason: reason,
	})
	s.reads = 0
}

// settle ends a change of a stack.
func (a *fakeAccount) settle(s *stack) {
	bucket := payloads + s.Name
	switch s.Status {
	case "CREATE_IN_PROGRESS":
		a.buckets[bucket] = map[string]bool{"payload": true}
		if a.failed {
			delete(a.buckets, bucket)
			a.failed = false
			s.set("ROLLBACK_COMPLETE", "the memory exceeds the quota")
			return
		}
		s.set("CREATE_COMPLETE", "")
	case "DELETE_IN_PROGRESS":
		if len(a.buckets[bucket]) > 0 {
			s.set("DELETE_FAILED", "the bucket is not empty")
			return
		}
		delete(a.buckets, bucket)
		s.set("DELETE_COMPLETE", "")
	}
}

func (a *fakeAccount) DescribeStack(ctx context.Context, name string) (found *deployment.Stack, err error) {
	err = a.do(ctx, "DescribeStack", func() error {
		if s := a.find(name); s != nil {
			current := s.Stack
			found = &current
		}
		return nil
	})
	return found, err
}

func (a *fakeAccount) ListStacks(ctx context.Context) (all []deployment.Stack, err error) {
	err = a.do(ctx, "ListStacks", func() error {
		for _, s := range a.stacks {
			if s.Status != "DELETE_COMPLETE" {
				all = append(all, s.Stack)
			}
		}
		return nil
	})
	return all, err
}

func (a *fakeAccount) StackResources(ctx context.Context, name string) (all []deployment.Resource, err error) {
	err = a.do(ctx, "StackResources", func() error {
		if s := a.find(name); s != nil && a.buckets[payloads+s.Name] != nil {
			all = append(all, deployment.Resource{ID: "Payloads", Type: "AWS::S3::Bucket", Physical: payloads + s.Name})
		}
		return nil
	})
	return all, err
}

func (a *fakeAccount) DeleteStack(ctx context.Context, name, _ string) error {
	return a.do(ctx, "DeleteStack", func() error {
		if s := a.find(name); s != nil {
			s.set("DELETE_IN_PROGRESS", "")
		}
		return nil
	})
}

func (a *fakeAccount) CreateChangeSet(ctx context.Context, r *deployment.ChangeSetRequest) error {
	return a.do(ctx, "CreateChangeSet", func() error {
		s := a.find(r.Stack)
		if s == nil {
			s = &stack{sets: map[string]*deployment.ChangeSetRequest{}}
			s.ID, s.Name = "id:"+r.Stack, r.Stack
			a.stacks[r.Stack] = s
			s.set("REVIEW_IN_PROGRESS", "")
		}
		s.sets[r.Name] = r
		return nil
	})
}

func (a *fakeAccount) DescribeChangeSet(ctx context.Context, _, _ string) (c *deployment.ChangeSet, err error) {
	err = a.do(ctx, "DescribeChangeSet", func() error {
		c = &deployment.ChangeSet{
			Status: "CREATE_COMPLETE", Changes: []deployment.Change{{Action: "Add", Resource: "Table"}},
		}
		return nil
	})
	return c, err
}

func (a *fakeAccount) DeleteChangeSet(ctx context.Context, name, set string) error {
	return a.do(ctx, "DeleteChangeSet", func() error {
		if s := a.find(name); s != nil {
			delete(s.sets, set)
		}
		return nil
	})
}

func (a *fakeAccount) ExecuteChangeSet(ctx context.Context, name, set, _ string) error {
	return a.do(ctx, "ExecuteChangeSet", func() error {
		s := a.find(name)
		s.Tags = s.sets[set].Tags // the stack has none before
		s.set("CREATE_IN_PROGRESS", "")
		return nil
	})
}

func (a *fakeAccount) StackEvents(
	ctx context.Context, name string, stop func(e *deployment.Event) bool,
) (events []deployment.Event, err error) {
	err = a.do(ctx, "StackEvents", func() error {
		s := a.find(name)
		if s.reads++; s.reads > 1 {
			a.settle(s)
		}
		for _, e := range slices.Backward(s.events) {
			if stop(&e) {
				return nil
			}
			events = append(events, e)
		}
		return nil
	})
	return events, err
}

func (a *fakeAccount) ListBuckets(ctx context.Context, prefix string) (names []string, err error) {
	err = a.do(ctx, "ListBuckets", func() error {
		for name := range a.buckets {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, err
}

func (a *fakeAccount) EmptyBucket(ctx context.Context, name string) error {
	return a.do(ctx, "EmptyBucket", func() error {
		clear(a.buckets[name])
		return nil
	})
}

func (a *fakeAccount) DeleteBucket(ctx context.Context, name string) error {
	return a.do(ctx, "DeleteBucket", func() error {
		if len(a.buckets[name]) > 0 {
			return &deployment.APIError{Operation: "delete bucket", Code: "BucketNotEmpty"}
		}
		delete(a.buckets, name)
		return nil
	})
}

// code is a bucket for code. It implements CodeStore.
type code struct {
	*fakeAccount

	name string
}

func (c *code) Ensure(ctx context.Context) error {
	return c.do(ctx, "Ensure", func() error {
		if c.buckets[c.name] == nil {
			c.buckets[c.name] = map[string]bool{}
		}
		return nil
	})
}

func (c *code) Has(ctx context.Context, key string) (exists bool, err error) {
	err = c.do(ctx, "Has", func() error {
		exists = c.buckets[c.name][key]
		return nil
	})
	return exists, err
}

func (c *code) Put(ctx context.Context, key, _ string, _ []byte) error {
	return c.do(ctx, "Put", func() error {
		c.buckets[c.name][key] = true
		return nil
	})
}

func (c *code) Bucket() string        { return c.name }
func (c *code) URL(key string) string { return "https://" + c.name + "/" + key }

// left returns the resources of the account.
func (a *fakeAccount) left() (all []string) {
	for name, s := range a.stacks {
		if s.Status != "DELETE_COMPLETE" {
			all = append(all, "stack "+name+" "+s.Status)
		}
	}
	for name := range a.buckets {
		all = append(all, "bucket "+name)
	}
	return all
}

// world has a runner in an account.
type world struct {
	*runner
	*fakeAccount

	out     bytes.Buffer
	clock   time.Time
	tested  *deployed
	signals chan os.Signal
}

// safeWriter is a buffer for concurrent writes.
type safeWriter struct {
	mu sync.Mutex
	*bytes.Buffer
}

func (s *safeWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(p)
}

// startOfTest is the time of the clock.
var startOfTest = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// disposable is the template of all runs.
var disposable = sync.OnceValues(func() (*deployment.Template, error) {
	return deployment.Disposable(probeAdditions())
})

func newWorld(t *testing.T) *world {
	t.Helper()
	template, err := disposable()
	if err != nil {
		t.Fatal(err)
	}
	a := newAccount()
	w := &world{fakeAccount: a, clock: startOfTest, signals: make(chan os.Signal, 1)}
	w.runner = &runner{
		account: number, region: region, stacks: a, buckets: a, template: template,
		code: func(bucket string) deployment.CodeStore { return &code{a, bucket} },
		build: func(context.Context, string) (all []deployment.Function, err error) {
			for _, name := range []string{"orchestrator", "worker", "renewer", "api"} {
				all = append(all, deployment.Function{Name: name, Binary: []byte("code of " + name)})
			}
			return all, a.do(t.Context(), "build", func() error { return nil })
		},
		test: func(ctx context.Context, d *deployed, _ *Report) error {
			w.tested = d
			return a.do(ctx, "test", func() error { return nil })
		},
		progress: &safeWriter{Buffer: &w.out}, now: func() time.Time { return w.clock },
		sleep: func(ctx context.Context, _ time.Duration) error {
			w.clock = w.clock.Add(time.Second)
			return context.Cause(ctx)
		},
		signals: func() (<-chan os.Signal, func()) {
			select {
			case <-w.signals: // it arrived before
			default:
			}
			return w.signals, func() {}
		},
	}
	return w
}

// next removes the leftovers of earlier runs, as the next run of the command does after their time limit.
func (w *world) next(t *testing.T) {
	t.Helper()
	w.before, w.after = nil, nil
	w.clock = w.clock.Add(runLimit + time.Second)
	p, err := w.plan(t.Context(), newRunID(w.clock))
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range p.leftovers {
		if err := w.remove(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
}

var errFault = errors.New("fault")
