package admin

import (
	"encoding/base64"
	"errors"
	"reflect"
	"testing"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// FuzzParsePosition checks that a cursor of Reconcile is rejected with a FieldError, or is encoded and parsed
// unchanged. doc is the document of a position before its encoding.
func FuzzParsePosition(f *testing.F) {
	for _, p := range []position{
		{},
		{Page: "eyJiIjoieCJ9"},
		{Page: "x", Instances: []string{"a", "b"}},
		{PagesDone: true},
		{PagesDone: true, Instances: []string{"a"}},
	} {
		f.Add(p.String(), "{}")
	}
	f.Add("reconcile.", `{"at":"x","over":true}`)
	f.Add("reconcile.e30\n", `{"at":"reconcile.e30"}`)
	f.Add("reconcile.e31", `{"also":[""]}`)
	f.Fuzz(func(t *testing.T, cursor, doc string) {
		for _, text := range []string{cursor, positionPrefix + base64.RawURLEncoding.EncodeToString([]byte(doc))} {
			p, err := parsePosition(text)
			if err != nil {
				if e, ok := errors.AsType[*provider.FieldError](err); !ok || e.Field != inputcheck.FieldCursor {
					t.Errorf("%q: error without the field: %v", text, err)
				}
				continue
			}
			again, err := parsePosition(p.String())
			if err != nil || again.Page != p.Page || again.PagesDone != p.PagesDone ||
				len(p.Instances) > 0 && !reflect.DeepEqual(again.Instances, p.Instances) {
				t.Errorf("%q is %+v, then %+v, error %v", text, p, again, err)
			}
			for _, id := range p.Instances {
				if err := inputcheck.InstanceID(id); err != nil {
					t.Errorf("%q has the instance %q: %v", text, id, err)
				}
			}
		}
	})
}
