package hubstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// attrPosition holds the position as JSON.
const attrPosition = "mark"

// ReadPosition reads the position of a duty. If there is none, or none that this release can read, it leaves into
// unchanged, and the duty starts from the beginning.
func (hs *Store) ReadPosition(ctx context.Context, duty string, into any) error {
	it, err := hs.table.Get(ctx, "", table.SweepPositionKey(duty), provider.Eventual)
	if at := table.GetString(it, attrPosition); err == nil && at != "" {
		if err := json.Unmarshal([]byte(at), into); err != nil {
			hs.log.WarnContext(ctx, "sweep position unreadable, starting over",
				"event", logevent.SweepPositionUnreadable, "duty", duty, "error", err)
		}
	}
	return err
}

// PutPosition stores the position of a duty. If two sweeps are concurrent, the last write counts, and instances that
// the other one has processed since are checked again.
func (hs *Store) PutPosition(ctx context.Context, duty string, mark any) error {
	at, err := json.Marshal(mark)
	if err != nil {
		return fmt.Errorf("dynamo: position of the sweeper: %s: %w", duty, err)
	}
	it := table.SweepPositionKey(duty)
	it[attrPosition] = table.Str(string(at))
	return hs.table.Put(ctx, "", &dynamodb.PutItemInput{Item: it})
}
