// Package scenarios is one table of what orchestrations do, each with what must come of it. It is run in virtual time, with a crash
// at every AWS call (tests/engine), and on deployed functions (tests/e2e).
package scenarios
