// Package template embeds the CloudFormation template of a task hub, which needs no CDK to deploy. A test of infra/cdk
// writes it from the CDK construct.
package template

import _ "embed"

// JSON is the template. Its parameters have the settings of the hub and the location of the functions' code.
//
//go:embed template.json
var JSON []byte
