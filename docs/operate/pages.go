// Package operate contains the pages of this directory, for programs that search them.
package operate

import "embed"

// Pages holds the pages by file name, such as runbooks.md.
//
//go:embed *.md
var Pages embed.FS
