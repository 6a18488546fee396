package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// Canary has CodeDeploy shift the invocations of the orchestrator and of the workers to a new build bit by bit, and back
// when the new build fails. Old and new build work beside one another meanwhile: an instance's turns may alternate
// between them, so each must be able to go on with what the other has decided. The workers are shifted before the
// orchestrator, so that the activities which new code calls are there. The renewer and the API are deployed at once.
type Canary struct {
	// Shift is how much is shifted when. Default: a tenth, and the rest after five minutes.
	Shift awscodedeploy.ILambdaDeploymentConfig
	// Alarms turn a deployment back, beside those of the new build's own errors. One that is on when a deployment begins
	// turns that back too, whatever it brings.
	Alarms []awscloudwatch.IAlarm
}

const (
	// liveAlias is what the mappings point at.
	liveAlias = "live"
	// newlyBlocked counts the instances that a build has blocked and no build before it. It is an attribute of the
	// orchestrator's log events instance.blocked and turn.incompatible.
	newlyBlocked = "newlyBlocked"
	// blockedOnNewer says that a build was the first to block an instance, at what newerBuild has decided: that counts as that build's doing, too.
	blockedOnNewer, newerBuild = "blockedOnNewer", "newerBuild"
	// A deployment is turned back within minutes, while the other alarms look at five at a time.
	canaryMinutes = 1
)

// canaries shift invocations for a hub.
type canaries struct {
	*TaskHub

	application awscodedeploy.LambdaApplication
	role        awsiam.Role
}

func (h *TaskHub) addCanaries() {
	if h.props.Canary == nil {
		return
	}
	c := canaries{TaskHub: h}
	c.application = awscodedeploy.NewLambdaApplication(h.Construct, jsii.String("Deployments"), &awscodedeploy.LambdaApplicationProps{
		ApplicationName: h.givenName("deployments"),
	})
	c.role = awsiam.NewRole(h.Construct, jsii.String("DeploymentsRole"), &awsiam.RoleProps{
		AssumedBy:           awsiam.NewServicePrincipal(jsii.String("codedeploy.amazonaws.com"), nil),
		PermissionsBoundary: h.props.PermissionsBoundary,
	})

	for i := range h.WorkQueues {
		work := &h.WorkQueues[i]
		work.Alias = c.shift("Worker-"+work.Name, work.Worker, nil)
	}
	h.OrchestratorAlias = c.shift("Orchestrator", h.Orchestrator, c.blockedByBuild)
	for _, work := range h.WorkQueues {
		h.OrchestratorAlias.Node().AddDependency(work.Alias)
	}
}

// shift makes the alias of a function, and what moves it from version to version.
func (c canaries) shift(id string, function awslambda.Function, more func(awslambda.Version) []awscloudwatch.IAlarm) awslambda.Alias {
	version := function.CurrentVersion()
	alias := awslambda.NewAlias(c.Construct, jsii.String(id+"Alias"), &awslambda.AliasProps{
		AliasName: jsii.String(liveAlias), Version: version,
	})

	alarms := []interfacesawscloudwatch.IAlarmRef{c.errorsOfVersion(id, function, version)}
	if more != nil {
		for _, alarm := range more(version) {
			alarms = append(alarms, alarm)
		}
	}
	for _, alarm := range c.props.Canary.Alarms {
		alarms = append(alarms, alarm)
	}
	group := awscodedeploy.NewLambdaDeploymentGroup(c.Construct, jsii.String(id+"Deployments"), &awscodedeploy.LambdaDeploymentGroupProps{
		Application: c.application, Alias: alias, Alarms: &alarms, Role: c.role, DeploymentConfig: c.props.Canary.Shift,
	})
	alias.Node().AddDependency(group)
	return alias
}

// errorsOfVersion is an alarm of the invocations of one version alone: what the version before it does must not turn back
// the deployment that mends it.
func (c canaries) errorsOfVersion(id string, function awslambda.Function, version awslambda.Version) awscloudwatch.IAlarm {
	return c.alarm(id, version, "Errors", "Invocations of the new build of "+id+" fail", awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/Lambda"), MetricName: jsii.String("Errors"),
		DimensionsMap: &map[string]*string{
			"FunctionName": function.FunctionName(), "Resource": jsii.String(*function.FunctionName() + ":" + liveAlias), "ExecutedVersion": version.Version(),
		},
		Period: awscdk.Duration_Minutes(jsii.Number(canaryMinutes)), Statistic: jsii.String("Sum"),
	}))
}

// blockedByBuild is an alarm of instances that the new build of the orchestrator blocks, or has the build before it block. Those that were blocked
// before it do not count, or a build that mends another fault could not be deployed.
func (c canaries) blockedByBuild(version awslambda.Version) []awscloudwatch.IAlarm {
	const dimension = "build"
	namespace := jsii.String("perdure/" + c.props.HubName)
	for _, of := range []struct{ id, is, build string }{{"NewlyBlocked", newlyBlocked, "buildId"}, {"BlockedOnNewer", blockedOnNewer, newerBuild}} {
		awslogs.NewMetricFilter(c.Construct, jsii.String(of.id), &awslogs.MetricFilterProps{
			LogGroup:        c.Orchestrator.LogGroup(),
			FilterPattern:   awslogs.FilterPattern_Literal(jsii.String("{ $." + of.is + " IS TRUE }")),
			MetricNamespace: namespace, MetricName: jsii.String(newlyBlocked), MetricValue: jsii.String("1"),
			Dimensions: &map[string]*string{dimension: jsii.String("$." + of.build)},
		})
	}
	return []awscloudwatch.IAlarm{c.alarm("Orchestrator", version, "Blocked", "The new build blocks instances that were not blocked before, or the build before it blocks what the new one has decided", awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: namespace, MetricName: jsii.String(newlyBlocked),
		DimensionsMap: &map[string]*string{dimension: jsii.String(c.builds["Orchestrator"])},
		Period:        awscdk.Duration_Minutes(jsii.Number(canaryMinutes)), Statistic: jsii.String("Sum"),
	}))}
}

// alarm is one of a version, and is called after it, or CloudFormation would change the alarm in place: CloudWatch keeps the state of one whose
// metric changes, so that it would be on when the next deployment begins, and turn that back. The logical id of a version changes with all that
// is shifted: code, and what is configured beside it.
func (c canaries) alarm(id string, version awslambda.Version, kind, description string, metric awscloudwatch.Metric) awscloudwatch.IAlarm {
	name := "Canary" + kind + "-" + id
	shifted, _ := version.Node().DefaultChild().(awscdk.CfnElement)
	alarm := awscloudwatch.NewAlarm(c.Construct, jsii.String(name+"Alarm"), &awscloudwatch.AlarmProps{
		AlarmName:        jsii.String(*c.name(name) + "-" + *shifted.LogicalId()), // which awscdk knows when all else of the function is known
		AlarmDescription: jsii.String(description + ": the deployment is turned back. Runbook: docs/operations.md, Alarms, Canary" + kind),
		Metric:           metric, Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(1),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
	if c.props.AlarmTopic != nil {
		action := awscloudwatchactions.NewSnsAction(c.props.AlarmTopic)
		alarm.AddAlarmAction(action)
		alarm.AddOkAction(action)
	}
	return alarm
}
