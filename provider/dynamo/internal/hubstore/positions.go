package hubstore

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Positions stores how far the sweeper's searches have come. It is safe for concurrent use.
type Positions struct {
	table *table.Table
	log   *slog.Logger
}

// NewPositions returns the positions in a table.
func NewPositions(t *table.Table, log *slog.Logger) *Positions { return &Positions{table: t, log: log} }

// attrPosition holds the position as JSON.
const attrPosition = "mark"

// Read reads the position of a duty. If there is none, or none that this release can read, it leaves into
// unchanged, and the duty starts from the beginning.
func (ps *Positions) Read(ctx context.Context, duty string, into any) error {
	it, err := ps.table.Get(ctx, "", table.SweepPositionKey(duty), provider.Eventual)
	if at := table.GetString(it, attrPosition); err == nil && at != "" {
		if err := json.Unmarshal([]byte(at), into); err != nil {
			ps.log.WarnContext(ctx, "sweep position unreadable, starting over",
				"event", logevent.SweepPositionUnreadable, "duty", duty, "error", err)
		}
	}
	return err
}

// Put stores the position of a duty. If two sweeps are concurrent, the last write counts, and instances that
// the other one has processed since are checked again.
func (ps *Positions) Put(ctx context.Context, duty string, mark any) error {
	at, err := json.Marshal(mark)
	if err != nil {
		return fmt.Errorf("dynamo: position of the sweeper: %s: %w", duty, err)
	}
	it := table.SweepPositionKey(duty)
	it[attrPosition] = table.Str(string(at))
	return ps.table.PutItem(ctx, "", it)
}
