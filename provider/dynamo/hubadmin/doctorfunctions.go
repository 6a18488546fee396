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

// functions examines the functions that queues are mapped to, each once.
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
		c, err := x.Functions.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &m.functionARN})
		if err != nil {
			x.unread(of, err)
			continue
		}
		x.configuration(of, m.Queue, c)
		x.limits(ctx, of, unqualified(m.functionARN))
		x.role(ctx, of, m.Queue, aws.ToString(c.Role))
	}
}

// configuration looks at what a function is deployed with.
func (x *examination) configuration(of, queue string, c *lambda.GetFunctionConfigurationOutput) {
	if c.LastUpdateStatus == lambdatypes.LastUpdateStatusFailed || c.State == lambdatypes.StateFailed {
		x.wrong(of, "its last deployment has failed: "+aws.ToString(c.LastUpdateStatusReason)+aws.ToString(c.StateReason), "it runs the code of before, or none", redeploy)
	}
	works := time.Duration(aws.ToInt32(c.Timeout)) * time.Second
	if hidden, known := x.visibility[queue]; known && hidden < works {
		x.wrong(of, fmt.Sprintf("it may work for %v, and messages of queue %s are hidden for %v", works, queue, hidden), "a message is delivered again while it is handled", redeploy)
	}
	if c.Environment == nil {
		return
	}
	for name, want := range map[string]string{"PERDURE_HUB": x.Where.Name, "PERDURE_TABLE": x.Where.Table, "PERDURE_INBOX_URL": x.Where.InboxURL, "PERDURE_PAYLOAD_BUCKET": x.Where.PayloadBucket} {
		if is, set := c.Environment.Variables[name]; set && is != want {
			x.wrong(of, fmt.Sprintf("its %s is %s, and that of the hub is %s", name, is, want), "it works on another hub: instances and messages are not where they are looked for", redeploy)
		}
	}
}

// limits looks at what keeps a function from running.
func (x *examination) limits(ctx context.Context, of, function string) {
	concurrency, err := x.Functions.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &function})
	switch {
	case err != nil:
		x.unread(of+", its concurrency", err)
	case concurrency.ReservedConcurrentExecutions != nil && *concurrency.ReservedConcurrentExecutions == 0:
		x.wrong(of, "its reserved concurrency is 0", "it never runs, and its messages wait", "aws lambda delete-function-concurrency, or "+redeploy)
	}
	recursion, err := x.Functions.GetFunctionRecursionConfig(ctx, &lambda.GetFunctionRecursionConfigInput{FunctionName: &function})
	switch {
	case err != nil:
		x.unread(of+", its recursion", err)
	case recursion.RecursiveLoop != lambdatypes.RecursiveLoopAllow:
		x.wrong(of, "Lambda takes chains of messages for loops (RecursiveLoop)", "after about 16 hops of an instance its invocations are dropped", redeploy)
	}
}

const sendMessage = "sqs:SendMessage"

// right is what a function of a queue does with a resource.
type right struct {
	resource string
	actions  []string
}

// rights returns what the function of a queue cannot do without.
func (x *examination) rights(queue string) []right {
	table := right{x.tableARN, []string{"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"}}
	own := right{x.arns[queue], []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"}}
	inbox := right{x.arns[provider.QueueInbox], []string{sendMessage}}
	needed := []right{table, own, inbox}
	switch queue {
	case provider.QueueInbox:
		for name := range x.Where.WorkQueues {
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

// role simulates the policies of a function's role.
func (x *examination) role(ctx context.Context, of, queue, role string) {
	if x.Roles == nil || role == "" {
		return
	}
	var denied []string
	for _, r := range x.rights(queue) {
		if r.resource == "" {
			continue // it could not be read, and that is a finding
		}
		out, err := x.Roles.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &role, ActionNames: r.actions, ResourceArns: []string{r.resource}})
		if err != nil {
			x.unread(of+", its role", err)
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
		x.wrong(of, "its role may not: "+strings.Join(denied, ", "), "its invocations fail", redeploy+"; a permissions boundary or a policy of the organisation may deny it, too")
	}
}

// schedules looks for the group of the hub's schedules.
func (x *examination) schedules(ctx context.Context) {
	const of = "schedule group"
	if x.Schedules == nil || x.Where.Timers != dynamo.TimersSchedules || x.Where.ScheduleGroup == "" {
		return
	}
	out, err := x.Schedules.GetScheduleGroup(ctx, &scheduler.GetScheduleGroupInput{Name: &x.Where.ScheduleGroup})
	switch {
	case isNoGroup(err) || err == nil && out.State != schedulertypes.ScheduleGroupStateActive:
		x.wrong(of, x.Where.ScheduleGroup+" is not there, or is being deleted", "timers further away than 15 minutes never fire", redeploy+", then perdure reconcile")
	case err != nil:
		x.unread(of, err)
	}
}
