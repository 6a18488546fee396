// Package awscall makes calls to AWS: it retries calls that failed temporarily, limits the retries of an operation, and
// runs calls concurrently.
package awscall
