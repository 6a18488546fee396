package perdure

import (
	"fmt"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/registry"
)

// Registry holds the orchestrations, activities and entities of a program by name. Create it with NewRegistry, fill it
// with AddOrchestration, AddActivity and AddEntity, and run it with package lambdahandler, dispatch or perduretest.
// Adding is not safe for concurrent use. Everything else is.
type Registry registry.Registry

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return (*Registry)(registry.New()) }

// code is the registry to those who look something up in it.
func (r *Registry) code() *registry.Registry { return (*registry.Registry)(r) }

// mustName panics if name is empty or not valid UTF-8. JSON in the history would change invalid UTF-8.
func mustName(kind, name string) {
	if name == "" {
		panic("perdure: " + kind + ": name is empty")
	}
	if !utf8.ValidString(name) {
		panic(fmt.Sprintf("perdure: %s: name %q is not valid UTF-8", kind, name))
	}
}
