// Package provider is the contract between the engine and what stores and carries its work: the Provider interface, the
// messages and work items that travel, and the errors that a caller acts on.
//
// A provider keeps one task hub. Its heart is AckOrchestrationItem: a turn is committed by creating the next segment of an
// execution's history, on the condition that nobody has created it, and everything the turn decided is read off that segment
// again if the sending has to be repeated. Rules cited as R1, R2 … are those of docs/design.md.
package provider
