package hubadmin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// functions checks each function that processes a queue.
func (x *examination) functions(ctx context.Context, mappings []Mapping) {
	if x.Functions == nil {
		return
	}
	seen := map[string]bool{}
	for i := range mappings {
		m := &mappings[i]
		if m.Queue == "" || seen[m.functionARN] {
			continue
		}
		seen[m.functionARN] = true
		of := "function " + m.Function
		c, err := x.Functions.GetFunctionConfiguration(ctx,
			&lambda.GetFunctionConfigurationInput{FunctionName: &m.functionARN})
		if err != nil {
			x.reportUnread(of, err)
			continue
		}
		x.configuration(of, m.Queue, c)
		x.limits(ctx, of, unqualified(m.functionARN))
		x.role(ctx, of, m.Queue, aws.ToString(c.Role))
	}
}

func (x *examination) configuration(of, queue string, c *lambda.GetFunctionConfigurationOutput) {
	if c.LastUpdateStatus == lambdatypes.LastUpdateStatusFailed || c.State == lambdatypes.StateFailed {
		x.report(of, "the last deployment failed: "+aws.ToString(c.LastUpdateStatusReason)+aws.ToString(c.StateReason),
			"the function runs its previous code, or does not run", redeploy)
	}
	works := time.Duration(aws.ToInt32(c.Timeout)) * time.Second
	if hidden, known := x.visibility[queue]; known && hidden < works {
		x.report(of, fmt.Sprintf("the timeout %v exceeds the visibility timeout %v of queue %s", works, hidden, queue),
			"a message can be redelivered while it is being processed", redeploy)
	}
	if c.Environment == nil {
		return
	}
	for name, want := range map[string]string{
		"PERDURE_HUB": x.Config.Name, "PERDURE_TABLE": x.Config.Table, "PERDURE_INBOX_URL": x.Config.InboxURL,
		"PERDURE_PAYLOAD_BUCKET": x.Config.PayloadBucket,
	} {
		if is, set := c.Environment.Variables[name]; set && is != want {
			x.report(of, fmt.Sprintf("%s is %q instead of %q", name, is, want),
				"the function reads and writes the resources of another hub", redeploy)
		}
	}
}

// limits checks settings that prevent a function from running.
func (x *examination) limits(ctx context.Context, of, function string) {
	concurrency, err := x.Functions.GetFunctionConcurrency(ctx,
		&lambda.GetFunctionConcurrencyInput{FunctionName: &function})
	switch {
	case err != nil:
		x.reportUnread("reserved concurrency of "+of, err)
	case concurrency.ReservedConcurrentExecutions != nil && *concurrency.ReservedConcurrentExecutions == 0:
		x.report(of, "the reserved concurrency is 0", "the function does not run, and its messages wait",
			"run aws lambda delete-function-concurrency"+orRedeploy)
	}
	recursion, err := x.Functions.GetFunctionRecursionConfig(ctx,
		&lambda.GetFunctionRecursionConfigInput{FunctionName: &function})
	switch {
	case err != nil:
		x.reportUnread("recursive loop detection of "+of, err)
	case recursion.RecursiveLoop != lambdatypes.RecursiveLoopAllow:
		x.report(of, "recursive loop detection is enabled",
			"Lambda drops invocations after a chain of about 16 messages",
			"set it to Allow with aws lambda put-function-recursion-config"+orRedeploy)
	}
}

const sendMessage = "sqs:SendMessage"

// right is a set of actions on a resource.
type right struct {
	resource string
	actions  []string
}

// rights returns the permissions that the function of a queue requires.
func (x *examination) rights(queue string) []right {
	table := right{
		x.tableARN, []string{"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"},
	}
	own := right{
		x.arns[queue],
		[]string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"},
	}
	inbox := right{x.arns[provider.QueueInbox], []string{sendMessage}}
	needed := []right{table, own, inbox}
	switch queue {
	case provider.QueueInbox:
		for name := range x.Config.WorkQueues {
			needed = append(needed, right{x.arns[name], []string{sendMessage}})
		}
		needed = append(needed, right{x.arns[provider.QueueTimers], []string{sendMessage}})
	case provider.QueueTimers:
		needed[0].actions = append(needed[0].actions, "dynamodb:DeleteItem")
		needed = append(needed, right{x.arns[provider.QueueTimers], []string{sendMessage}})
	default:
	}
	return needed
}

// role checks the permissions of a function's role with the IAM policy simulator.
func (x *examination) role(ctx context.Context, of, queue, role string) {
	if x.Roles == nil || role == "" {
		return
	}
	var denied []string
	for _, r := range x.rights(queue) {
		if r.resource == "" {
			continue // it could not be read, which was reported before
		}
		out, err := x.Roles.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{
			PolicySourceArn: &role, ActionNames: r.actions, ResourceArns: []string{r.resource},
		})
		if err != nil {
			x.reportUnread("role of "+of, err)
			return
		}
		for i := range out.EvaluationResults {
			if e := &out.EvaluationResults[i]; e.EvalDecision != iamtypes.PolicyEvaluationDecisionTypeAllowed {
				denied = append(denied, aws.ToString(e.EvalActionName)+" on "+r.resource)
			}
		}
	}
	if len(denied) > 0 {
		slices.Sort(denied)
		x.report(of, "the role lacks permissions: "+strings.Join(denied, ", "), "invocations of the function fail",
			redeploy+"; also check permissions boundaries and organization policies")
	}
}

// schedules checks the schedule group of the hub.
func (x *examination) schedules(ctx context.Context) {
	const of = "schedule group"
	if x.Schedules == nil || x.Config.TimerMode != dynamo.TimersSchedules || x.Config.ScheduleGroup == "" {
		return
	}
	out, err := x.Schedules.GetScheduleGroup(ctx, &scheduler.GetScheduleGroupInput{Name: &x.Config.ScheduleGroup})
	switch {
	case isMissingGroup(err) || err == nil && out.State != schedulertypes.ScheduleGroupStateActive:
		x.report(of, x.Config.ScheduleGroup+" does not exist or is being deleted",
			"timers of more than 30 minutes never fire",
			redeploy+", and then run perdure reconcile")
	case err != nil:
		x.reportUnread(of, err)
	}
}
