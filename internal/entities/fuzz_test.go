package entities_test

import (
	"testing"

	"github.com/perdure/perdure/internal/entities"
)

// FuzzParse checks that an instance ID is the ID of the parsed entity and key, or of no entity.
func FuzzParse(f *testing.F) {
	for _, id := range []string{"@sum@7", "@sum@a@b", "@@", "@sum@", "@@a", "order-7", "sum@7", ""} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		entity, key, ok := entities.Parse(id)
		if !ok {
			return
		}
		if entities.Mark+entity+entities.Mark+key != id || entity == "" || key == "" || entities.HasKey(entity) {
			t.Errorf("%q is entity %q, key %q", id, entity, key)
		}
	})
}
