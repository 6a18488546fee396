package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

// GrantRead lets grantee find the hub and read it: Status, Wait, History and List
// of package client.
func (h *TaskHub) GrantRead(grantee awsiam.IGrantable) {
	h.grant(grantee, h.readStatements())
}

// GrantStart lets grantee start orchestrations, at once or with a delay, and read
// what came of them.
func (h *TaskHub) GrantStart(grantee awsiam.IGrantable) {
	h.grant(grantee, append(h.readStatements(),
		allow(h.tableARNs(), writeItems...),
		allow(arns(h.Inbox, h.Timers), send),
		h.payloadWrites()))
}

// GrantCancel lets grantee send to instances, whatever it sends (IAM cannot tell
// messages apart): Cancel, CancelActivity, Terminate and Raise.
func (h *TaskHub) GrantCancel(grantee awsiam.IGrantable) {
	h.grant(grantee, append(h.readStatements(), allow(arns(h.Inbox), send), h.payloadWrites()))
}

// GrantPurge lets grantee delete instances (R17).
func (h *TaskHub) GrantPurge(grantee awsiam.IGrantable) {
	h.grant(grantee, append(h.readStatements(),
		allow(h.tableARNs(), concat(writeItems, deleteItems)...),
		allow(arns(h.Inbox), send),
		allow([]string{h.schedule.schedulesARN}, "scheduler:DeleteSchedule")))
}

// GrantAPI lets grantee make every call of the HTTP API, signed for execute-api,
// or for lambda where the API is a function URL.
func (h *TaskHub) GrantAPI(grantee awsiam.IGrantable) {
	h.grant(grantee, []awsiam.PolicyStatement{
		allow([]string{h.api.invokeARN},
			"execute-api:Invoke", "lambda:InvokeFunctionUrl", "lambda:InvokeFunction"),
	})
}

func (h *TaskHub) grant(grantee awsiam.IGrantable, statements []awsiam.PolicyStatement) {
	for _, statement := range statements {
		if statement != nil {
			grantee.GrantPrincipal().AddToPrincipalPolicy(statement)
		}
	}
}

func (h *TaskHub) readStatements() []awsiam.PolicyStatement {
	parameter := *h.stack.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("ssm"),
		Resource:     jsii.String("parameter"),
		ResourceName: jsii.String(h.ConfigParameter[1:]),
	})
	statements := []awsiam.PolicyStatement{
		allow([]string{parameter}, "ssm:GetParameter"),
		allow(h.tableARNs(indexByCreation, indexByAttention), readItems...),
	}
	if h.props.PayloadBucket != nil {
		objects := []string{*h.props.PayloadBucket.ArnForObjects(jsii.String("*"))}
		statements = append(statements, allow(objects, "s3:GetObject"))
	}
	return statements
}

// payloadWrites is nil without a payload bucket.
func (h *TaskHub) payloadWrites() awsiam.PolicyStatement {
	if h.props.PayloadBucket == nil {
		return nil
	}
	return allow([]string{*h.props.PayloadBucket.ArnForObjects(jsii.String("*"))}, "s3:PutObject")
}
