package perduretest

import "reflect"

// BubbleType is that of an Env's hub as its Client sees it.
var BubbleType = reflect.TypeFor[*clientAdapter]()

// Drive is what moves an Env's clock.
func (e *Env) Drive(f func()) { e.drive(f) }

// Others is what others than the test's goroutine have an activity do that runs outside of virtual time.
func (e *Env) Others() <-chan func() { return e.network.calls }
