package dynamo_test

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

func TestNew_missingField_errorNamesIt(t *testing.T) {
	t.Parallel()
	whole := dynamo.HubConfig{Name: "h", Table: "t", InboxURL: "u"}
	for field, corrupt := range map[string]func(*dynamo.HubConfig){
		"hub": func(h *dynamo.HubConfig) {
			h.Name = ""
		}, "table": func(h *dynamo.HubConfig) {
			h.Table = ""
		}, "inboxUrl": func(h *dynamo.HubConfig) { h.InboxURL = "" },
	} {
		h := whole
		corrupt(&h)
		_, err := dynamo.New(h, dynamo.Clients{})
		if e, ok := errors.AsType[*provider.FieldError](err); !ok || e.Field != field {
			t.Errorf("without %s: %v", field, err)
		}
	}
	p, err := dynamo.New(whole, dynamo.Clients{})
	if err != nil || p.Config().Table != "t" {
		t.Errorf("%+v, %v", p, err)
	}
}
