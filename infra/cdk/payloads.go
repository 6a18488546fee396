package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"
)

// mailDays is how long the copy of a payload is kept that is sent with a message: a queue and its dead letters keep one for 14 days each, and who
// redrives it begins again.
const mailDays = 60

// Actions on payloads. A copy needs those of a read and of a write. Who may not list is told of an object that is not there that access is denied.
const (
	listPayloads   = "s3:ListBucket"
	getPayload     = "s3:GetObject"
	putPayload     = "s3:PutObject"
	deletePayloads = "s3:DeleteObject"
)

// addPayloads makes the bucket for large payloads, where the hub is to have one, unless it was given.
func addPayloads(h *TaskHub) {
	if h.props.PayloadBucket != nil || !h.props.LargePayloads {
		h.Payloads = h.props.PayloadBucket
		return
	}
	props := &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		EnforceSSL:        jsii.Bool(true),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		RemovalPolicy:     h.props.TableRemovalPolicy, // histories refer to what is in it
		LifecycleRules: &[]*awss3.LifecycleRule{
			{Id: jsii.String("messages"), Prefix: jsii.String(h.props.HubName + "/m/"), Expiration: awscdk.Duration_Days(jsii.Number(mailDays))},
		},
	}
	if h.props.EncryptionKey != nil {
		props.Encryption, props.EncryptionKey, props.BucketKeyEnabled = awss3.BucketEncryption_KMS, h.props.EncryptionKey, jsii.Bool(true)
	}
	h.Payloads = awss3.NewBucket(h.Construct, jsii.String("Payloads"), props)
}

// payloadPermissions are actions on the payloads of the hub; none where it has no bucket.
func payloadPermissions(h *TaskHub, actions ...string) []awsiam.PolicyStatement {
	if h.Payloads == nil {
		return nil
	}
	return []awsiam.PolicyStatement{
		allow([]string{*h.Payloads.BucketArn()}, listPayloads),
		allow([]string{*h.Payloads.ArnForObjects(jsii.String(h.props.HubName + "/*"))}, actions...),
	}
}

// payloadEnvironment is for all functions.
func (h environments) payloadEnvironment() environment {
	if h.Payloads == nil {
		return nil
	}
	return environment{"PERDURE_PAYLOAD_BUCKET": *h.Payloads.BucketName()}
}
