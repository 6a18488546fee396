package httpapi

import (
	_ "embed"
	"net/http"
	"net/url"
)

//go:embed openapi.json
var openAPIDocument []byte

func (h *handler) openAPI(w http.ResponseWriter, _ *http.Request, _ url.Values) error {
	w.Header().Set(headerType, "application/json")
	_, _ = w.Write(openAPIDocument) // an error means that the caller is gone
	return nil
}

// health answers that the handler runs. It asks no other service, whose outage a restart would not mend.
func (h *handler) health(w http.ResponseWriter, _ *http.Request, _ url.Values) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}
