package httpapi

import (
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
)

// restart starts the orchestration of an ended instance again, as a new instance. The optional body overrides values of
// the ended instance.
func (i instances) restart(c *call) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	opts, err := readRestart(c)
	if err != nil {
		return err
	}
	restarted, err := i.client.Restart(c.ctx(), id, opts...)
	if err != nil {
		return err
	}
	c.audit(id, "")
	return replyStarted(c, NewStartResponse(restarted))
}

func readRestart(c *call) ([]client.StartOption, error) {
	body, err := request.All(c.w, c.r)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	var f startFields
	if err := request.Object(body,
		map[string]any{
			problem.FieldInstanceID: &f.id, fieldVersion: &f.version, fieldDelay: &f.delay, fieldFrom: &f.from,
			fieldTags: &f.tags, "idempotencyKey": &f.key,
		}); err != nil {
		return nil, err
	}
	opts, err := f.options()
	if f.tags != nil {
		opts = append(opts, client.WithTags(f.tags))
	}
	return opts, err
}
