package httpapi

import (
	"net/http"

	"github.com/perdure/perdure/client"
)

func (i instances) annotate(c *call) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	var note string
	if err := c.body(map[string]any{"note": &note}); err != nil {
		return err
	}
	var opts []client.AnnotateOption
	switch key, given, err := c.idempotencyKey(); {
	case err != nil:
		return err
	case given:
		opts = append(opts, client.WithNoteID(key))
	}
	if err := i.client.Annotate(c.ctx(), id, note, opts...); err != nil {
		return err
	}
	c.audit(id, "")
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
