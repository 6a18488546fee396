// Package guides is the code of the guides: a page a capability, each of whose code blocks is a piece of a file of this package.
package guides
