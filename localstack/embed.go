// Package localstack embeds the scripts that run a hub on a local cloud. The perdure command unpacks them if there is
// no checkout of this repository.
package localstack

import "embed"

// Files contains the scripts, their requirements files and the template of the stack.
//
//go:embed *.py requirements.txt requirements-localstack.txt template.golden.json
var Files embed.FS
