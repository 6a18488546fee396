package perduretest

import "reflect"

// BubbleType is the type of the backend of an Env's Client.
var BubbleType = reflect.TypeFor[*clientAdapter]()

// Drive runs a function that moves the clock of an Env.
func (e *Env) Drive(f func()) { e.drive(f) }

// Others returns the calls that other goroutines pass to an activity outside of virtual time.
func (e *Env) Others() <-chan func() { return e.network.calls }
