package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/internal/policy"
)

// scheduling has the EventBridge Scheduler resources for timers of more than 15 minutes.
type scheduling struct {
	group        string
	groupARN     string
	schedulesARN string // all schedules of the group
	role         awsiam.Role
}

func (h *TaskHub) addScheduling() {
	name := h.prefix()
	group := awsscheduler.NewCfnScheduleGroup(h.Construct, jsii.String("Schedules"),
		&awsscheduler.CfnScheduleGroupProps{
			Name: jsii.String(name),
		})
	h.schedule.group = *group.Ref()
	h.schedule.groupARN = *group.AttrArn()
	h.schedule.schedulesARN = *h.stack.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("scheduler"),
		Resource:     jsii.String("schedule"),
		ResourceName: jsii.String(h.schedule.group + "/*"),
	})
	// Undelivered schedules move to the dead-letter queue of the timers, where the sweeper recovers them.
	h.schedule.role = awsiam.NewRole(h.Construct, jsii.String("ScheduleRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
			Conditions: &map[string]any{"StringEquals": map[string]any{
				"aws:SourceAccount": h.stack.Account(),
				"aws:SourceArn":     h.schedule.groupARN,
			}},
		}),
		InlinePolicies: &map[string]awsiam.PolicyDocument{timersName: policy.Document(
			append(h.keyPermissions(), policy.Allow(policy.ARNs(h.Timers, h.TimersDeadLetters), policy.Send))...,
		)},
		PermissionsBoundary: h.props.PermissionsBoundary,
	})
}
