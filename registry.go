package perdure

import "github.com/perdure/perdure/internal/registry"

// Registry holds the orchestrations, activities and entities of a program by name. Create it with NewRegistry, fill it
// with AddOrchestration, AddActivity and AddEntity, and run it with package lambdahandler, dispatch or perduretest. A
// Registry is safe for concurrent use, except while functions are added.
type Registry registry.Registry

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return (*Registry)(registry.New()) }

// code returns the registry for lookups.
func (r *Registry) code() *registry.Registry { return (*registry.Registry)(r) }
