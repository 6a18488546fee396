package deployment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// removal removes the stack of a fake.
type removal struct {
	Remover

	out bytes.Buffer
}

func newRemoval(aws *fakeAWS) *removal {
	r := &removal{}
	r.Remover = Remover{Buckets: aws, Deployer: &Deployer{
		Stacks: aws, Progress: &r.out,
		Sleep: func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) },
	}}
	return r
}

// isRemoved reports whether nothing of the stack is left.
func (f *fakeAWS) isRemoved() bool {
	return (f.stack == nil || f.stack.Status == statusDeleted) && f.payloads == 0
}

func TestRemoveStack_bucketWithObjects_isEmptiedFirst(t *testing.T) {
	t.Parallel()
	aws := newFakeAWS()
	newRun(t).mustDeploy(t, aws)
	aws.payloads = 3
	r := newRemoval(aws)
	if err := r.RemoveStack(t.Context(), "perdure-orders"); err != nil {
		t.Fatal(err)
	}
	if !aws.isRemoved() || aws.count("DeleteStack") != 1 {
		t.Errorf("stack %+v, %d payloads, calls %v", aws.stack, aws.payloads, aws.calls)
	}
	if out := r.out.String(); !strings.Contains(out, "DELETE_COMPLETE          AWS::DynamoDB::Table") ||
		strings.Contains(out, "CREATE_COMPLETE") {
		t.Errorf("progress:\n%s", out)
	}
	if err := r.RemoveStack(t.Context(), "perdure-orders"); err != nil || aws.count("DeleteStack") != 1 {
		t.Errorf("missing stack: got %v", err)
	}
}

// A function writes an object after the bucket was emptied.
func TestRemoveStack_objectWrittenMeanwhile_deletionIsRepeated(t *testing.T) {
	t.Parallel()
	aws := newFakeAWS()
	newRun(t).mustDeploy(t, aws)
	aws.payloads, aws.added = 1, []int{2, 1}
	if err := newRemoval(aws).RemoveStack(t.Context(), "perdure-orders"); err != nil || !aws.isRemoved() {
		t.Errorf("got %v, stack %+v, calls %v", err, aws.stack, aws.calls)
	}
	if n := aws.count("DeleteStack"); n != 3 {
		t.Errorf("%d deletions", n)
	}
}

func TestRemoveStack_resourceRemains_returnsReason(t *testing.T) {
	t.Parallel()
	aws := newFakeAWS()
	newRun(t).mustDeploy(t, aws)
	aws.payloads, aws.added = 1, []int{1, 1, 1, 1, 1, 1}
	err := newRemoval(aws).RemoveStack(t.Context(), "perdure-orders")
	if err == nil || !strings.Contains(err.Error(), "delete stack perdure-orders: it is DELETE_FAILED: "+
		"Payloads (AWS::S3::Bucket): The bucket you tried to delete is not empty") {
		t.Errorf("got %v", err)
	}
	if n := aws.count("DeleteStack"); n != removalAttempts {
		t.Errorf("%d deletions", n)
	}
}

// CloudFormation regards a request with the token of an earlier deletion as that deletion.
func TestRemoveStack_afterFailedRemoval_startsNewDeletion(t *testing.T) {
	t.Parallel()
	aws := newFakeAWS()
	newRun(t).mustDeploy(t, aws)
	aws.payloads, aws.added = 1, []int{1, 1, 1, 1}
	if err := newRemoval(aws).RemoveStack(t.Context(), "perdure-orders"); err == nil {
		t.Fatal("the bucket is never empty, but the removal succeeded")
	}
	if err := newRemoval(aws).RemoveStack(t.Context(), "perdure-orders"); err != nil || !aws.isRemoved() {
		t.Errorf("got %v, stack %+v", err, aws.stack)
	}
}

// The description of the stack is older than the deletion, which takes many reads of events.
func TestRemoveStack_staleStatus_waitsForTheDeletion(t *testing.T) {
	t.Parallel()
	for _, stale := range []string{"CREATE_COMPLETE", "DELETE_FAILED", statusReview} {
		aws := newFakeAWS()
		newRun(t).mustDeploy(t, aws)
		reads := 0
		aws.after = func(call string) error {
			switch call {
			case "DeleteStack":
				aws.script, aws.described = make([][]Event, 12), stale
			case "DescribeStack":
				if reads++; reads > 10 {
					aws.described = ""
				}
			}
			return nil
		}
		err := newRemoval(aws).RemoveStack(t.Context(), "perdure-orders")
		if err != nil || !aws.isRemoved() || aws.count("DeleteStack") != 1 {
			t.Errorf("%s: got %v, stack %s, calls %v", stale, err, aws.stack.Status, aws.calls)
		}
	}
}

// A stack is removed in each state in which an interrupted deployment leaves it.
func TestRemoveStack_anyStatus_isDeleted(t *testing.T) {
	t.Parallel()
	for _, status := range []string{
		statusReview, "CREATE_IN_PROGRESS", "CREATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_FAILED",
		statusDeleteRunning,
	} {
		aws := newFakeAWS()
		aws.stack = &Stack{ID: fakeStackID, Name: "perdure-orders"}
		aws.event("perdure-orders", "AWS::CloudFormation::Stack", status, "")
		if err := newRemoval(aws).RemoveStack(t.Context(), "perdure-orders"); err != nil || !aws.isRemoved() {
			t.Errorf("%s: got %v, stack %+v", status, err, aws.stack)
		}
	}
}

// CloudFormation does not accept a deletion during a rollback.
func TestRemoveStack_refusedDeletion_isRepeatedAfterTheChange(t *testing.T) {
	t.Parallel()
	aws := newFakeAWS()
	aws.stack = &Stack{ID: fakeStackID, Name: "perdure-orders"}
	aws.event("perdure-orders", "AWS::CloudFormation::Stack", "ROLLBACK_IN_PROGRESS", "")
	aws.before = func(call string) error {
		if call == "DeleteStack" && isRunning(aws.stack.Status) {
			return &APIError{Operation: "delete stack", Code: codeValidation, Message: "cannot be deleted", Status: 400}
		}
		return nil
	}
	if err := newRemoval(aws).RemoveStack(t.Context(), "perdure-orders"); err != nil || !aws.isRemoved() {
		t.Errorf("got %v, stack %+v", err, aws.stack)
	}
}

// A removal is interrupted at each of its calls, before or after the call took effect. The next removal completes it.
func TestRemoveStack_interruptedAtAnyCall_canBeRepeated(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		for _, lost := range []bool{false, true} {
			aws := newFakeAWS()
			newRun(t).mustDeploy(t, aws)
			aws.payloads, aws.calls = 2, nil
			ctx, cancel := context.WithCancel(t.Context())
			interrupt := func(string) error {
				if len(aws.calls) == n {
					cancel()
					return context.Cause(ctx)
				}
				return nil
			}
			if aws.before = interrupt; lost {
				aws.before, aws.after = nil, interrupt
			}
			err := newRemoval(aws).RemoveStack(ctx, "perdure-orders")
			cancel()
			if err == nil {
				if n < 6 || !aws.isRemoved() {
					t.Fatalf("stack %+v after %v", aws.stack, aws.calls)
				}
				return
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("call %d: got %v", n, err)
			}
			aws.before, aws.after = nil, nil
			if err := newRemoval(aws).RemoveStack(t.Context(), "perdure-orders"); err != nil || !aws.isRemoved() {
				t.Errorf("call %d, lost %t: got %v, stack %+v", n, lost, err, aws.stack)
			}
		}
	}
}

func TestRemoveBucket_objectWrittenMeanwhile_isEmptiedAgain(t *testing.T) {
	t.Parallel()
	aws := newFakeAWS()
	aws.objects["late"] = nil
	emptied := 0
	aws.after = func(call string) error {
		if emptied++; call == "EmptyBucket" && emptied == 1 {
			aws.objects["later"] = nil
		}
		return nil
	}
	if err := newRemoval(aws).RemoveBucket(t.Context(), "code"); err != nil || aws.objects != nil {
		t.Errorf("got %v, objects %v", err, aws.objects)
	}
}

func TestStacks_list_followsPagesAndReadsTags(t *testing.T) {
	t.Parallel()
	page := func(name, next string) response {
		return response{200, fmt.Sprintf(`<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>%s</StackName>`+
			`<Tags><member><Key>perdure:selftest</Key><Value>%s</Value></member></Tags></member></Stacks>%s`+
			`</DescribeStacksResult></DescribeStacksResponse>`, name, name, next)}
	}
	s, c := newService(t, page("a", "<NextToken>t</NextToken>"), page("b", ""))
	all, err := stacksOf(s, c).ListStacks(t.Context())
	if err != nil || len(all) != 2 || all[0].Tags["perdure:selftest"] != "a" || all[1].Name != "b" {
		t.Errorf("got %+v, %v", all, err)
	}
	if strings.Contains(s.bodies[0], "StackName") || !strings.Contains(s.bodies[1], "NextToken=t") {
		t.Errorf("requests %v", s.bodies)
	}
}

func TestStacks_delete_missingStackSucceeds(t *testing.T) {
	t.Parallel()
	s, c := newService(t, refusal(400, "ValidationError", "Stack with id a does not exist"))
	if err := stacksOf(s, c).DeleteStack(t.Context(), "a", "t"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(s.bodies[0], "Action=DeleteStack&ClientRequestToken=t&StackName=a") {
		t.Errorf("request %s", s.bodies[0])
	}
}

// The first request was accepted, but its response was lost.
func TestStacks_repeatedToken_succeeds(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(c *cloudFormation) error{
		"delete":  func(c *cloudFormation) error { return c.DeleteStack(t.Context(), "a", "t") },
		"execute": func(c *cloudFormation) error { return c.ExecuteChangeSet(t.Context(), "a", "b", "t") },
	} {
		s, c := newService(t, response{}, refusal(400, "TokenAlreadyExistsException", "A client request token already exists."))
		if err := call(stacksOf(s, c)); err != nil || len(s.requests) < 2 {
			t.Errorf("%s: got %v after %d requests", name, err, len(s.requests))
		}
	}
}

func TestStacks_resources_followPages(t *testing.T) {
	t.Parallel()
	page := func(id, next string) response {
		return response{200, `<ListStackResourcesResponse><ListStackResourcesResult><StackResourceSummaries><member>` +
			`<LogicalResourceId>` + id + `</LogicalResourceId><PhysicalResourceId>p</PhysicalResourceId></member>` +
			`</StackResourceSummaries>` + next + `</ListStackResourcesResult></ListStackResourcesResponse>`}
	}
	s, c := newService(t, page("a", "<NextToken>t</NextToken>"), page("b", ""))
	all, err := stacksOf(s, c).StackResources(t.Context(), "x")
	if err != nil || len(all) != 2 || all[0].ID != "a" || all[1].Physical != "p" {
		t.Errorf("got %+v, %v", all, err)
	}
}
