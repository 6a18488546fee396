package dynamo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/logevent"
)

// skWatch is the prefix of the sort keys of the items that hold how far a duty of the watch has come. The bare key
// belongs to earlier releases, which had one mark for all duties.
const skWatch = "watch"

// attrMark holds the mark, as JSON.
const attrMark = "mark"

func watchKey(duty string) item { return item{attrPK: str(pkHub), attrSK: str(skWatch + "#" + duty)} }

// readMark reads how far a duty has come. It leaves into unchanged where there is no mark, or none that this release
// can read: the duty then begins again, which is harmless.
func (p *Provider) readMark(ctx context.Context, duty string, into any) error {
	it, err := p.getWatchItem(ctx, watchKey(duty))
	if at := getString(it, attrMark); err == nil && at != "" {
		if err := json.Unmarshal([]byte(at), into); err != nil {
			p.log.WarnContext(ctx, "sweep position unreadable, starting over",
				"event", logevent.SweepPositionUnreadable, "duty", duty, "error", err)
		}
	}
	return err
}

func (p *Provider) getWatchItem(ctx context.Context, key item) (item, error) {
	var out *dynamodb.GetItemOutput
	err := call(ctx, "DynamoDB.GetItem", "", func() (err error) {
		out, err = p.table.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.hub.Table, Key: key})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// putMark stores how far a duty has come. Of two concurrent watches the last to write decides: what the other one has
// done since is looked at again.
func (p *Provider) putMark(ctx context.Context, duty string, mark any) error {
	at, err := json.Marshal(mark)
	if err != nil {
		return fmt.Errorf("dynamo: position of the sweeper: %s: %w", duty, err)
	}
	it := watchKey(duty)
	it[attrMark] = str(string(at))
	return call(ctx, "DynamoDB.PutItem", "", func() error {
		_, err := p.table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.hub.Table, Item: it})
		return err
	})
}
