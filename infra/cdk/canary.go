package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// Canary configures gradual deployments. CodeDeploy shifts the invocations of the orchestrator and the workers to a new
// build, and rolls back if the new build fails. Both builds run during the deployment, and the turns of an instance can
// alternate between them. Each build must therefore be able to process the decisions of the other build. CodeDeploy
// shifts the workers before the orchestrator, so that the activities of new code exist. The renewer and the API are
// deployed immediately.
type Canary struct {
	// DeploymentConfig is the deployment configuration. Default: 10 percent, and the rest after 5 minutes.
	DeploymentConfig awscodedeploy.ILambdaDeploymentConfig
	// Alarms are additional alarms that roll back a deployment. The alarms for errors and blocked instances of the new
	// build always do. An alarm that is active at the start of a deployment also rolls it back.
	Alarms []awscloudwatch.IAlarm
}

const (
	// liveAlias is the alias that event source mappings invoke.
	liveAlias = "live"
	// newlyBlocked marks an instance that a build has blocked and no earlier build. It is an attribute of the
	// orchestrator's log events instance.blocked and turn.incompatible.
	newlyBlocked = "newlyBlocked"
	// blockedOnNewer marks an instance that a build blocked first because of a decision of newerBuild. It counts for
	// newerBuild.
	blockedOnNewer, newerBuild = "blockedOnNewer", "newerBuild"
	// canaryMinutes is the period of the alarms of a deployment. Other alarms have a period of five minutes.
	canaryMinutes = 1
)

// canaries creates the deployment resources of a hub.
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
	c.application = awscodedeploy.NewLambdaApplication(h.Construct, jsii.String("Deployments"),
		&awscodedeploy.LambdaApplicationProps{
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

// shift creates the alias and the deployment group of a function.
func (c canaries) shift(
	id string, function awslambda.Function, more func(awslambda.Version) []awscloudwatch.IAlarm,
) awslambda.Alias {
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
	group := awscodedeploy.NewLambdaDeploymentGroup(c.Construct, jsii.String(id+"Deployments"),
		&awscodedeploy.LambdaDeploymentGroupProps{
			Application: c.application, Alias: alias, Alarms: &alarms, Role: c.role,
			DeploymentConfig: c.props.Canary.DeploymentConfig,
		})
	alias.Node().AddDependency(group)
	return alias
}

// errorsOfVersion creates an alarm for the errors of one version. Errors of the previous version must not roll back a
// deployment that fixes them.
func (c canaries) errorsOfVersion(
	id string, function awslambda.Function, version awslambda.Version,
) awscloudwatch.IAlarm {
	return c.alarm(id, version, "Errors", "Invocations of the new build of "+id+" fail",
		awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/Lambda"), MetricName: jsii.String("Errors"),
			DimensionsMap: &map[string]*string{
				"FunctionName":    function.FunctionName(),
				"Resource":        jsii.String(*function.FunctionName() + ":" + liveAlias),
				"ExecutedVersion": version.Version(),
			},
			Period: awscdk.Duration_Minutes(jsii.Number(canaryMinutes)), Statistic: jsii.String("Sum"),
		}))
}

// blockedByBuild creates alarms for instances that the new build of the orchestrator blocks, and for instances that the
// previous build blocks because of a decision of the new build. Instances that were blocked before do not count,
// because a build that fixes another fault must be deployable.
func (c canaries) blockedByBuild(version awslambda.Version) []awscloudwatch.IAlarm {
	const dimension = "build"
	namespace := jsii.String("perdure/" + c.props.HubName)
	for _, of := range []struct{ id, is, build string }{
		{"NewlyBlocked", newlyBlocked, "buildId"}, {"BlockedOnNewer", blockedOnNewer, newerBuild},
	} {
		awslogs.NewMetricFilter(c.Construct, jsii.String(of.id), &awslogs.MetricFilterProps{
			LogGroup:        c.Orchestrator.LogGroup(),
			FilterPattern:   awslogs.FilterPattern_Literal(jsii.String("{ $." + of.is + " IS TRUE }")),
			MetricNamespace: namespace, MetricName: jsii.String(newlyBlocked), MetricValue: jsii.String("1"),
			Dimensions: &map[string]*string{dimension: jsii.String("$." + of.build)},
		})
	}
	const description = "The new build blocks instances, or the previous build cannot process decisions of the new one"
	metric := awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: namespace, MetricName: jsii.String(newlyBlocked),
		DimensionsMap: &map[string]*string{dimension: jsii.String(c.builds["Orchestrator"])},
		Period:        awscdk.Duration_Minutes(jsii.Number(canaryMinutes)), Statistic: jsii.String("Sum"),
	})
	return []awscloudwatch.IAlarm{c.alarm("Orchestrator", version, "Blocked", description, metric)}
}

// alarm creates an alarm for a version. Its name contains the logical ID of the version, which changes with the code
// and configuration of the function. With a fixed name, CloudFormation would update the existing alarm, which would
// remain active, and an active alarm would roll back the next deployment.
func (c canaries) alarm(
	id string, version awslambda.Version, kind, description string, metric awscloudwatch.Metric,
) awscloudwatch.IAlarm {
	name := "Canary" + kind + "-" + id
	shifted, _ := version.Node().DefaultChild().(awscdk.CfnElement)
	alarm := awscloudwatch.NewAlarm(c.Construct, jsii.String(name+"Alarm"), &awscloudwatch.AlarmProps{
		AlarmName: jsii.String(*c.name(name) + "-" + *shifted.LogicalId()), // resolved after the rest of the function
		AlarmDescription: jsii.String(description + ". CodeDeploy rolls back the deployment. " +
			"Read the log of the function. Runbook: docs/operate/alarms.md, Canary" + kind),
		Metric: metric, Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(1),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
	c.notify(alarm)
	return alarm
}
