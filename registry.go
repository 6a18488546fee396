package perdure

import (
	"fmt"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/registry"
)

// Registry holds the orchestrations and activities that a program knows by name: NewRegistry makes one, AddOrchestration and AddActivity
// fill it, and the functions of package lambdahandler, package dispatch and package perduretest run what it holds. Fill it before the
// program serves: adding is not safe for concurrent use, everything else is.
type Registry registry.Registry

// NewRegistry makes an empty registry.
func NewRegistry() *Registry { return (*Registry)(registry.New()) }

// code is the registry to those who look something up in it.
func (r *Registry) code() *registry.Registry { return (*registry.Registry)(r) }

// mustName panics on a name that history could not hold: what is not UTF-8 would come back from it as another name.
func mustName(kind, name string) {
	if name == "" {
		panic("perdure: " + kind + " with an empty name")
	}
	if !utf8.ValidString(name) {
		panic(fmt.Sprintf("perdure: %s with a name that is not UTF-8: %q", kind, name))
	}
}
