// Package coldstart tests the cold start of the functions: the size of each binary, and the time until a process
// requests its first invocation.
package coldstart
