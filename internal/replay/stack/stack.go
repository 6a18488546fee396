// Package stack records stacks of goroutines and shows the user code in them.
package stack

import (
	"runtime/debug"
	"strings"
)

// maxBytes limits the stacks in errors and in the history.
const maxBytes = 8 << 10

// Current returns the stack of the calling goroutine, truncated like a stack in an error.
func Current() string { return Truncate(debug.Stack()) }

// Truncate returns the first 8 KiB of a stack as valid UTF-8.
func Truncate(b []byte) string {
	return strings.ToValidUTF8(string(b[:min(len(b), maxBytes)]), "")
}
