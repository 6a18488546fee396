// Package localstack holds the scripts that run a hub on a local cloud, for the perdure command to unpack where no checkout of
// this repository is.
package localstack

import "embed"

// Files are the scripts, what they install, and the template of the stack that they deploy.
//
//go:embed *.py requirements.txt requirements-localstack.txt template.golden.json
var Files embed.FS
