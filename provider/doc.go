// Package provider is the contract between the engine and the service that stores and carries its work: the Provider
// interface, the messages and work items that are sent, and the errors that a caller acts on.
//
// A provider keeps one task hub. Its central operation is AckOrchestrationItem: a turn is committed by creating the
// next segment of an execution's history, on the condition that it does not exist yet, and everything that the turn
// decided is read from that segment again if the sending has to be repeated. Rules cited as R1, R2 … are those of
// docs/internals/rules.md.
package provider
