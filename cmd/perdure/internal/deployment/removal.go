package deployment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
)

// BucketAPI is the part of S3 that a removal needs.
type BucketAPI interface {
	// ListBuckets returns the names of the account's buckets that begin with a prefix.
	ListBuckets(ctx context.Context, prefix string) ([]string, error)
	// EmptyBucket deletes all objects of a bucket with all versions. It succeeds if the bucket does not exist.
	EmptyBucket(ctx context.Context, name string) error
	// DeleteBucket deletes an empty bucket. It succeeds if the bucket does not exist.
	DeleteBucket(ctx context.Context, name string) error
}

// Remover deletes stacks with all their data.
type Remover struct {
	*Deployer

	Buckets BucketAPI
	// Check returns an error if a stack must not be removed. It may be nil.
	Check func(s *Stack) error
}

const (
	// removalAttempts limits the deletions of a stack. A function can write an object between the emptying of a bucket
	// and the deletion of the bucket.
	removalAttempts = 4
	// staleReads limits the reads of a status that is older than an accepted deletion, to half a minute.
	staleReads = 15

	bucketType          = "AWS::S3::Bucket"
	statusDeleted       = "DELETE_COMPLETE"
	statusDeleteRunning = "DELETE_IN_PROGRESS"
)

// RemoveStack empties the buckets of a stack, deletes the stack and follows the deletion. It succeeds if the stack does
// not exist. The stack must delete all its resources, like that of a template from Disposable.
func (r *Remover) RemoveStack(ctx context.Context, name string) error {
	stack, err := r.Stacks.DescribeStack(ctx, name)
	if err != nil {
		return err
	}
	if stack == nil {
		return nil
	}
	if r.Check != nil {
		if err := r.Check(stack); err != nil {
			return err
		}
	}
	run := &deployment{Deployer: r.Deployer, Request: &Request{Stack: name}, id: rand.Text()}
	f := &follower{deployment: run, stackID: stack.ID}
	if f.newest, err = run.newestEvent(ctx, stack.ID); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		r.emptyBuckets(ctx, run, stack.ID)
		f.status = ""
		refused := r.Stacks.DeleteStack(ctx, stack.ID, fmt.Sprintf("remove-%s-%d", run.id, attempt))
		if e, ok := errors.AsType[*APIError](refused); refused != nil && (!ok || e.Code != codeValidation) {
			return refused
		}
		// CloudFormation refuses to delete a stack in some states, from which it moves to another one.
		status, err := f.untilSettled(ctx, refused == nil)
		switch {
		case err != nil:
			return err
		case status == statusDeleted:
			return nil
		case attempt == removalAttempts:
			return errors.Join(fmt.Errorf("delete stack %s: it is %s%s", name, status, f.reason()), refused)
		}
	}
}

// emptyBuckets empties the buckets of a stack. If that fails, the deletion of the stack fails with a better message.
func (r *Remover) emptyBuckets(ctx context.Context, run *deployment, stackID string) {
	resources, err := r.Stacks.StackResources(ctx, stackID)
	for i := range resources {
		if b := &resources[i]; b.Type == bucketType && b.Physical != "" && b.Status != statusDeleted {
			err = errors.Join(err, r.Buckets.EmptyBucket(ctx, b.Physical))
		}
	}
	if err != nil {
		run.printf("%v", err)
	}
}

// RemoveBucket deletes a bucket with its objects. It succeeds if the bucket does not exist.
func (r *Remover) RemoveBucket(ctx context.Context, name string) (err error) {
	for range removalAttempts {
		if err = r.Buckets.EmptyBucket(ctx, name); err == nil {
			err = r.Buckets.DeleteBucket(ctx, name)
		}
		if !hasCode(err, "BucketNotEmpty") {
			return err
		}
	}
	return err
}

// newestEvent returns the newest event of a stack.
func (d *deployment) newestEvent(ctx context.Context, stackID string) (newest string, err error) {
	_, err = d.Stacks.StackEvents(ctx, stackID, func(e *Event) bool {
		newest = e.ID
		return true
	})
	return newest, err
}

// untilSettled prints events until CloudFormation does not change the stack, and returns its status. If a deletion was
// accepted, the status can be older than it.
func (f *follower) untilSettled(ctx context.Context, accepted bool) (status string, err error) {
	for reads := 1; ; reads++ {
		stack, err := f.Stacks.DescribeStack(ctx, f.stackID)
		if err != nil && (!isTransient(err) || ctx.Err() != nil) {
			return "", err
		}
		if err == nil && stack == nil {
			return statusDeleted, nil
		}
		if err := f.read(ctx); err != nil && !isMissing(err) {
			return "", err
		}
		if err == nil && f.isSettled(stack.Status, accepted && reads <= staleReads) {
			return stack.Status, nil
		}
		if err := f.Sleep(ctx, pollInterval); err != nil {
			return "", err
		}
	}
}

// isSettled reports whether CloudFormation does not change a stack with this status. If the status can be stale, the
// events decide.
func (f *follower) isSettled(status string, canBeStale bool) bool {
	stale := canBeStale && (f.status == "" || isRunning(f.status))
	return status == statusDeleted || !stale && !isRunning(status)
}

// reason returns the first failure as a part of an error.
func (f *follower) reason() string {
	if f.cause == nil {
		return ""
	}
	return ": " + strings.TrimSpace(f.cause.Resource+" ("+f.cause.Type+"): "+f.cause.Reason)
}
