// Package cdk is for deploying perdure task hubs with the AWS CDK: [TaskHub] is
// the construct a team puts into its own stack, [NewReferenceStack] the stack
// that `cdk deploy` and the local cloud create as it is.
//
// Every prop may be a CDK token, so one synthesised template serves several hubs
// through its parameters. Synthesis is deterministic: the same props and the same
// binaries give the same template, byte for byte.
package cdk
