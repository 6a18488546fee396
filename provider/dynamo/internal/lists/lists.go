// Package lists reads pages of instances for clients and jobs from the indexes of the table.
package lists

import (
	"log/slog"

	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Lists reads lists of instances. It is safe for concurrent use.
type Lists struct {
	table     *table.Table
	instances *instances.Store
	log       *slog.Logger
}

// New returns the lists of a hub.
func New(t *table.Table, i *instances.Store, log *slog.Logger) *Lists {
	return &Lists{table: t, instances: i, log: log}
}
