// Package deployment deploys a task hub with CloudFormation, without the CDK.
//
// A deployment can be interrupted at any call and repeated: objects are named by their content, a change set that was
// not executed is replaced, and a running change of the stack is followed to its end.
package deployment

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// Deployer deploys stacks.
type Deployer struct {
	Stacks StackAPI
	Code   CodeStore
	// Progress receives one line for each step and for each resource.
	Progress io.Writer
	Sleep    func(ctx context.Context, d time.Duration) error
}

// Request describes a deployment.
type Request struct {
	Stack, Hub string
	Template   *Template
	// Parameters has values of template parameters. The stack keeps the values of the others.
	Parameters map[string]string
	// Tags replaces the tags of the stack. If it is empty, the stack keeps its tags.
	Tags map[string]string
	// Functions returns the four functions for a CPU architecture, arm64 or x86_64.
	Functions func(ctx context.Context, architecture string) ([]Function, error)
	// Confirm decides whether the changes are made. A returned error ends the deployment without changes.
	Confirm func(ctx context.Context, c *ChangeSet) error
}

// Result is the result of a deployment, and the --json output of deploy.
type Result struct {
	Stack   string            `json:"stack"`
	Status  string            `json:"status"`
	Changed bool              `json:"changed"`
	Outputs map[string]string `json:"outputs"`
}

// ChangeState is the state of the change of a stack.
type ChangeState int

// The states of a change.
const (
	NotChanged ChangeState = iota // this run has started no change
	Changing                      // CloudFormation may be changing the stack
	Changed
)

// InterruptedError reports that the deployment was interrupted.
type InterruptedError struct {
	Stack string
	State ChangeState
	Cause error
}

// Error implements error.
func (e *InterruptedError) Error() string {
	switch e.State {
	case Changing:
		return fmt.Sprintf("interrupted; CloudFormation continues to change stack %s; "+
			"run the command again to follow it", e.Stack)
	case Changed:
		return fmt.Sprintf("interrupted after the change of stack %s; run the command again for its outputs", e.Stack)
	default:
		return "interrupted; this run has not changed stack " + e.Stack
	}
}

// Unwrap returns the cause.
func (e *InterruptedError) Unwrap() error { return e.Cause }

// Deploy creates or updates a stack. If ctx ends, it returns an InterruptedError, or a FailedError if the change has
// failed by then.
func (d *Deployer) Deploy(ctx context.Context, r *Request) (*Result, error) {
	run := &deployment{Deployer: d, Request: r, id: rand.Text()}
	result, err := run.deploy(ctx)
	if _, failed := errors.AsType[*FailedError](err); err != nil && !failed && ctx.Err() != nil {
		return nil, &InterruptedError{Stack: r.Stack, State: run.state, Cause: context.Cause(ctx)}
	}
	return result, err
}

// deployment is one run.
type deployment struct {
	*Deployer
	*Request

	id    string // a random token
	state ChangeState
}

func (d *deployment) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.Progress, format+"\n", args...) // the deployment does not depend on its messages
}

func (d *deployment) deploy(ctx context.Context) (*Result, error) {
	stack, err := d.settle(ctx)
	if err != nil {
		return nil, err
	}
	given, err := d.checkParameters(stack)
	if err != nil {
		return nil, err
	}
	plan, err := d.Template.resolve(given, parametersOf(stack))
	if err != nil {
		return nil, err
	}
	templateURL, err := d.upload(ctx, plan)
	if err != nil {
		return nil, err
	}
	// The parameters for the code are set now.
	if plan, err = d.Template.resolve(plan.set, parametersOf(stack)); err != nil {
		return nil, err
	}
	return d.change(ctx, &ChangeSetRequest{
		Stack: d.Stack, Create: stack == nil || stack.Status == statusReview, TemplateURL: templateURL,
		Parameters: plan.set, Kept: plan.kept, Tags: d.Tags, Token: "create-" + d.id,
		Name: changeSetName(templateURL, plan.set, d.Tags),
	})
}

// parametersOf returns the parameters of a deployed stack.
func parametersOf(stack *Stack) map[string]string {
	if stack == nil || stack.Status == statusReview {
		return nil
	}
	return stack.Parameters
}

// checkParameters returns the given parameters with the hub. A stack keeps its hub, because another name would replace
// its functions and its configuration.
func (d *deployment) checkParameters(stack *Stack) (map[string]string, error) {
	for _, name := range slices.Sorted(maps.Keys(d.Parameters)) {
		if err := d.Template.check(name, d.Parameters[name]); err != nil {
			return nil, err
		}
	}
	deployed := parametersOf(stack)
	if hub, ok := deployed[parameterHub]; ok && hub != d.Hub {
		return nil, fmt.Errorf("stack %s has hub %s, not %s; set --hub %s, or choose another --stack", d.Stack, hub,
			d.Hub, hub)
	}
	if _, ok := deployed[parameterHub]; deployed != nil && !ok {
		return nil, fmt.Errorf("stack %s was not created from this template; choose another --stack", d.Stack)
	}
	given := map[string]string{parameterHub: d.Hub}
	maps.Copy(given, d.Parameters)
	return given, nil
}

// changeSetName returns a name that depends on the content, so that a repeated run finds the change set of the
// interrupted one.
func changeSetName(templateURL string, parameters, tags map[string]string) string {
	h := sha256.New()
	fmt.Fprintln(h, templateURL)
	for _, all := range []map[string]string{parameters, tags} {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(h, "%q=%q\n", key, all[key])
		}
		fmt.Fprintln(h)
	}
	return "perdure-" + hex.EncodeToString(h.Sum(nil))[:16]
}

// upload builds the functions, uploads what the bucket does not have, and adds the parameters for the code. It returns
// the URL of the template.
func (d *deployment) upload(ctx context.Context, plan *values) (templateURL string, err error) {
	functions, err := d.Functions(ctx, plan.effective[parameterCPU])
	if err != nil {
		return "", err
	}
	if err := d.Code.Ensure(ctx); err != nil {
		return "", err
	}
	plan.set[parameterBucket], plan.set[parameterPrefix] = d.Code.Bucket(), codePrefix
	for i := range functions {
		f := &functions[i]
		plan.set[functionNames[i].parameter] = f.BuildID()
		if err := d.uploadNew(ctx, f.Name, codePrefix+f.BuildID()+".zip", "application/zip", f.archive); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256(d.Template.Body)
	key := "templates/" + hex.EncodeToString(sum[:]) + ".json"
	err = d.uploadNew(ctx, "template", key, "application/json",
		func() ([]byte, error) { return d.Template.Body, nil })
	return d.Code.URL(key), err
}

// uploadNew uploads an object unless it exists.
func (d *deployment) uploadNew(
	ctx context.Context, name, key, mediaType string, content func() ([]byte, error),
) error {
	exists, err := d.Code.Has(ctx, key)
	if err != nil || exists {
		return err
	}
	body, err := content()
	if err != nil {
		return err
	}
	d.printf("uploading %s, %d KiB, to %s", name, (len(body)+1023)/1024, d.Code.Bucket())
	return d.Code.Put(ctx, key, mediaType, body)
}

// settle returns the stack in a state in which it can be changed, or nil if it does not exist. If a change is running,
// it waits for the end.
func (d *deployment) settle(ctx context.Context) (*Stack, error) {
	stack, err := d.Stacks.DescribeStack(ctx, d.Stack)
	if err != nil || stack == nil {
		return nil, err
	}
	if isRunning(stack.Status) && !strings.HasPrefix(stack.Status, "DELETE") {
		d.printf("stack %s is %s; following the change", d.Stack, stack.Status)
		d.state = Changing
		if _, err := d.follow(ctx, stack.ID, ""); err != nil {
			return nil, err
		}
		d.state = NotChanged
		if stack, err = d.settled(ctx, stack.ID); err != nil {
			return nil, err
		}
	}
	return stack, checkStatus(stack)
}

// Statuses of stacks.
const (
	statusReview           = "REVIEW_IN_PROGRESS"
	statusRollbackComplete = "ROLLBACK_COMPLETE"
	statusRollbackFailed   = "UPDATE_ROLLBACK_FAILED"
)

// isRunning reports whether CloudFormation changes a stack with this status.
func isRunning(status string) bool {
	return strings.HasSuffix(status, "_IN_PROGRESS") && status != statusReview
}

// checkStatus returns an error if a stack cannot be changed, with the fix.
func checkStatus(stack *Stack) error {
	var fix string
	switch status := stack.Status; {
	case status == statusRollbackComplete:
		fix = "its creation failed and was rolled back; delete it with aws cloudformation delete-stack --stack-name " +
			term.ShellQuote(stack.Name) + ", then run the command again"
	case status == statusRollbackFailed:
		fix = "its rollback failed; fix the cause, then run aws cloudformation continue-update-rollback --stack-name " +
			term.ShellQuote(stack.Name)
	case status == "UPDATE_FAILED": // of an update without rollback
		fix = "its update failed; run aws cloudformation rollback-stack --stack-name " + term.ShellQuote(stack.Name)
	case strings.HasPrefix(status, "IMPORT") && strings.HasSuffix(status, "_FAILED"):
		fix = "fix the cause in the console"
	case strings.HasPrefix(status, "DELETE_IN_PROGRESS"):
		fix = "wait until it is deleted, then run the command again"
	case strings.HasSuffix(status, "_FAILED"):
		fix = "delete it with aws cloudformation delete-stack --stack-name " + term.ShellQuote(stack.Name) +
			", or fix the cause in the console"
	default:
		return nil
	}
	return fmt.Errorf("stack %s is %s: %s", stack.Name, stack.Status, fix)
}

// settled returns a stack after the end of a change. The status of a stack can be older than its events.
func (d *deployment) settled(ctx context.Context, stackID string) (*Stack, error) {
	for {
		stack, err := d.Stacks.DescribeStack(ctx, stackID)
		switch {
		case err != nil:
			return nil, err
		case stack == nil:
			return nil, fmt.Errorf("stack %s was deleted", d.Stack)
		case !isRunning(stack.Status):
			return stack, nil
		}
		if err := d.Sleep(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
}

// errConcurrent explains an error that a concurrent deployment causes.
var errConcurrent = errors.New("another deployment of this stack is running or has just ended; run the command again")
