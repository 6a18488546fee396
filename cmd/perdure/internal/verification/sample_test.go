package verification

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/cmd/perdure/internal/scan"
)

// A sample has a share of each version and all instances of small versions. Repeated draws are equal.
func TestSample_severalVersions_hasShareOfEach(t *testing.T) {
	t.Parallel()
	drawnOf := func(most int) (ids []string, by map[scan.Version]int) {
		s, by := newSample(), map[scan.Version]int{}
		for n := range 100_000 {
			of := scan.Version{Orchestration: "many", Version: "1"}
			if n%20_000 == 0 {
				of = scan.Version{Orchestration: "few", Version: "1"}
			}
			s.offer(of, fmt.Sprint("i", n), most)
		}
		for _, d := range s.choose(most) {
			by[d.of]++
			ids = append(ids, d.id)
		}
		return ids, by
	}
	ids, by := drawnOf(100)
	if by[scan.Version{Orchestration: "few", Version: "1"}] != 5 ||
		by[scan.Version{Orchestration: "many", Version: "1"}] != 95 {
		t.Errorf("chosen: %v", by)
	}
	if again, _ := drawnOf(100); strings.Join(again, " ") != strings.Join(ids, " ") {
		t.Error("a repeated draw has other instances")
	}
	if _, by := drawnOf(6); by[scan.Version{Orchestration: "few", Version: "1"}] != 3 {
		t.Errorf("of six: %v", by)
	}
}
