package httpapi

import "net/http"

func (i instances) annotate(c *call) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	var note string
	if err := c.body(map[string]any{"note": &note}); err != nil {
		return err
	}
	if err := i.client.Annotate(c.ctx(), id, note); err != nil {
		return err
	}
	c.audit(id, "")
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
