package errtree_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/perdure/perdure/internal/errtree"
)

var (
	errA = errors.New("a")
	errB = errors.New("b")
)

func is(want error) func(error) bool {
	return func(err error) bool { return err == want } //nolint:errorlint // one layer at a time
}

func TestEvery_matchesEachBranch(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		errA:                            true,
		fmt.Errorf("wrapped: %w", errA): true,
		errors.Join(errA, fmt.Errorf("x: %w", errA)): true,
		errors.Join(errA, errB):                      false,
		errB:                                         false,
	} {
		if got := errtree.Every(err, is(errA)); got != want {
			t.Errorf("Every(%q) = %v", err, got)
		}
	}
}

func TestAny_findsAnErrorInTheTree(t *testing.T) {
	t.Parallel()
	if !errtree.Any(errors.Join(errB, fmt.Errorf("wrapped: %w", errA)), is(errA)) || errtree.Any(errB, is(errA)) {
		t.Error("Any did not visit each error of the tree")
	}
}

func TestSplit_returnsTheLargestPartsWithoutAMatch(t *testing.T) {
	t.Parallel()
	other := fmt.Errorf("other: %w", errB)
	picked, rest := errtree.Split(fmt.Errorf("both: %w", errors.Join(other, fmt.Errorf("wrapped: %w", errA))),
		func(err error) (error, bool) { return err, is(errA)(err) })
	if !slices.Equal(picked, []error{errA}) || !slices.Equal(rest, []error{other}) {
		t.Errorf("picked %q, rest %q", picked, rest)
	}
}
