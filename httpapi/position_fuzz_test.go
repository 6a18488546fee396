package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/perdure/perdure/provider"
)

// FuzzPositionOf checks that a Last-Event-ID is rejected with an error that names the header or the parameter, or is
// the ID of the position, and that the header takes precedence.
func FuzzPositionOf(f *testing.F) {
	for _, id := range []string{"01JX.7", "01JX.0", "01JX.end", "a.b.1", ".1", "01JX.", "01JX.+1", "01JX.-1", "7", ""} {
		f.Add(id, "01JX.3")
		f.Add("", id)
	}
	f.Fuzz(func(t *testing.T, header, parameter string) {
		c := &call{r: &http.Request{Header: http.Header{}}, query: url.Values{paramLastEventID: {parameter}}}
		c.r.Header.Set(headerLastEventID, header)
		text, want := header, headerLastEventID
		if header == "" {
			text, want = parameter, paramLastEventID
		}
		p, field, err := positionOf(c)
		if e, ok := errors.AsType[*provider.FieldError](err); field != want || err != nil && (!ok || e.Field != want) {
			t.Errorf("%q, %q: field %s, error %v", header, parameter, field, err)
		}
		if err == nil && text != "" && (p.id() != text || p.event < 0) {
			t.Errorf("%q is %+v, whose ID is %q", text, p, p.id())
		}
	})
}
