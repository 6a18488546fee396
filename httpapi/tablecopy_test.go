package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
)

func TestHandler_callerReordersOperations_routesKeepTheirs(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	slices.Reverse(api.Operations())
	h.call(t, http.MethodPost, inUse+"/cancel", `{}`)
	if log := h.log.String(); !strings.Contains(log, "operation=cancel") {
		t.Errorf("audit line of another operation: %s", log)
	}
}
