// Package fakeprovider is the client's half of a task hub in memory, for tests of what sits on top of a client. It runs no
// orchestration: a test says what happened to an instance with Append.
package fakeprovider
