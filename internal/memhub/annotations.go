package memhub

import (
	"context"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/notes"
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
		if err == nil && (n.ID == "" || !notes.Contains(in.Notes, &n)) {
			in.Notes = notes.Add(in.Notes, n)
		}
		return err
	})
}
