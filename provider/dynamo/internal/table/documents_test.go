package table

import (
	"testing"
	"testing/synctest"
)

// Tests of applications run in consecutive bubbles of testing/synctest, and the encoder outlives each bubble.
func TestEncoder_usedInSeveralBubbles_works(t *testing.T) {
	t.Parallel()
	fresh := newEncoder()
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			if len(fresh.EncodeAll([]byte("x"), nil)) == 0 {
				t.Error("the encoder returned no bytes")
			}
		})
	}
}
