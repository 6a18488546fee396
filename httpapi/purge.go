package httpapi

import (
	"net/http"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/request"
)

func (i instances) purge(c *call) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	force, err := request.Bool(c.query, paramForce)
	if err != nil {
		return err
	}
	children, err := request.Bool(c.query, "withChildren")
	if err != nil {
		return err
	}
	createdAt, err := request.Time(c.query, "createdAt")
	if err != nil {
		return err
	}
	var opts []client.PurgeOption
	if !createdAt.IsZero() {
		opts = append(opts, client.IfCreatedAt(createdAt))
	}
	if force {
		opts = append(opts, client.Force())
	}
	if children {
		opts = append(opts, client.WithChildren())
	}
	if err := i.client.Purge(c.ctx(), id, opts...); err != nil {
		return err
	}
	c.audit(id, "")
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
