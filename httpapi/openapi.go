package httpapi

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openAPIDocument []byte

func openAPI(c *call) error {
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(openAPIDocument) // an error means that the caller has disconnected
	return nil
}

// health reports that the handler runs. It calls no other service, because a restart does not fix an outage of another
// service.
func health(c *call) error { return c.reply(http.StatusOK, map[string]string{"status": "ok"}) }
