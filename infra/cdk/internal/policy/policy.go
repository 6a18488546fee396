// Package policy defines the IAM actions and statements of hubs. No role has a wildcard action.
package policy

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// Actions on the table and on queues. TransactWriteItems needs the actions of its parts.
var (
	ReadItems   = []string{"dynamodb:GetItem", "dynamodb:Query"}
	WriteItems  = []string{"dynamodb:PutItem", "dynamodb:UpdateItem"}
	CheckItems  = []string{"dynamodb:ConditionCheckItem"} // for retries
	DeleteItems = []string{"dynamodb:DeleteItem"}         // for purges
	Consume     = []string{
		"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes",
	}
)

// Actions on messages.
const (
	Send = "sqs:SendMessage"
	Lock = "sqs:ChangeMessageVisibility"
)

// Actions on payloads. A copy needs read and write permissions. Without ListPayloads, S3 returns "access denied" for a
// missing object.
const (
	ListPayloads   = "s3:ListBucket"
	GetPayload     = "s3:GetObject"
	PutPayload     = "s3:PutObject"
	DeletePayloads = "s3:DeleteObject"
)

// UseKey has the actions that functions and schedules need on the encryption key.
var UseKey = []string{
	"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext",
	"kms:ReEncryptFrom", "kms:ReEncryptTo",
}

// Allow returns a statement that allows actions on resources.
func Allow(resources []string, actions ...string) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:   jsii.Strings(actions...),
		Resources: jsii.Strings(resources...),
	})
}

// InvokeURL returns the statements that allow calls of the URLs of functions. They require both actions
// (https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html). Without their conditions the grantee could invoke the
// functions directly, with an event that names any caller.
func InvokeURL(functions ...string) []awsiam.PolicyStatement {
	url := Allow(functions, "lambda:InvokeFunctionUrl")
	url.AddCondition(jsii.String("StringEquals"), map[string]any{"lambda:FunctionUrlAuthType": "AWS_IAM"})
	function := Allow(functions, "lambda:InvokeFunction")
	function.AddCondition(jsii.String("Bool"), map[string]any{"lambda:InvokedViaFunctionUrl": "true"})
	return []awsiam.PolicyStatement{url, function}
}

// Document returns a policy with statements.
func Document(statements ...awsiam.PolicyStatement) awsiam.PolicyDocument {
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements})
}

// ARNs returns the ARNs of queues. It skips nil.
func ARNs(queues ...awssqs.Queue) []string {
	all := make([]string, 0, len(queues))
	for _, q := range queues {
		if q != nil {
			all = append(all, *q.QueueArn())
		}
	}
	return all
}
