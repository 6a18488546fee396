// Package provider defines the interface between the engine and the services that store its state and transport its
// messages. It contains the Provider interface, the messages and work items, and the errors.
//
// A provider stores one task hub. AckOrchestrationItem commits a turn. The commit creates the next segment of an
// execution's history, on condition that the segment does not exist. A dispatch then sends the outputs of the turn. A
// redispatch reads the outputs from the segment and sends them again. Rule numbers such as R1 refer to
// docs/internals/rules.md.
package provider
