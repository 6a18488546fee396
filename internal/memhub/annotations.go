package memhub

import (
	"context"
	"slices"

	"github.com/perdure/perdure/provider"
)

// annotations adds notes to instances.
type annotations struct {
	*base

	instances *instances
}

// Annotate implements provider.Annotations.
func (st *annotations) Annotate(ctx context.Context, instanceID string, n provider.Note) error {
	return st.call(ctx, func() error {
		in, err := st.instances.find(instanceID)
		if err == nil && (n.ID == "" || !slices.ContainsFunc(in.Notes, n.Equal)) {
			in.Notes = provider.AddNote(in.Notes, n)
		}
		return err
	})
}
