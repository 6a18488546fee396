package development

import (
	"slices"
	"testing"
)

func TestVetArgs_flags_arePassedToVettool(t *testing.T) {
	t.Parallel()
	got := vetArgs("/bin/perdure", "clock", false, true, nil)
	if want := []string{
		"vet", "-vettool=/bin/perdure", "-perdure.disable=clock", "-perdure.warnings=false", "-json", "./...",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
