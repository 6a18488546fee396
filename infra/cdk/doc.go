// Package cdk deploys perdure task hubs with the AWS CDK. [TaskHub] is a construct for your own stack. Package
// reference has a complete stack with one hub, which cdk deploy and the local cloud use.
//
// A prop can be a CDK token, so that one template with parameters can deploy several hubs. Synthesis is deterministic:
// the same props and binaries produce the same template.
package cdk
