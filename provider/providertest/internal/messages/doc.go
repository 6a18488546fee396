// Package messages tests starts and messages between instances.
package messages
