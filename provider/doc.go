// Package provider defines the interface between the engine and the service that stores its state and transports its
// messages: the Provider interface, the messages and work items, and the errors.
//
// A provider holds one task hub. AckOrchestrationItem commits a turn: it creates the next segment of an execution's
// history, on condition that the segment does not exist. A dispatch sends the outputs of the turn, and a redispatch
// reads them from the segment and sends them again. Rule numbers such as R1 refer to docs/internals/rules.md.
package provider
