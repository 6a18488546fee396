package collector

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// batch counts its notifications.
type batch struct{ notified int }

func (b *batch) ContextEnded() { b.notified++ }

// Results within a few milliseconds are yielded together, in the order of the batch.
func TestAll_resultsAtOnce_areSortedAndTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c Collector[int]
		c.Init(3, cmp.Compare[int], nil, &batch{})
		go func() {
			c.Add(2)
			c.Add(1)
			time.Sleep(time.Second)
			c.Add(0)
		}()
		var got [][]int
		for results := range c.All {
			got = append(got, results)
		}
		if len(got) != 2 || !slices.Equal(got[0], []int{1, 2}) || !slices.Equal(got[1], []int{0}) || !c.Done() {
			t.Errorf("results %v, done %v; want [1 2] and [0]", got, c.Done())
		}
	})
}

// The batch is notified once of the end of its context, and its results are still collected.
func TestAll_contextEnds_batchIsNotifiedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c Collector[int]
		b, ended := &batch{}, make(chan struct{})
		c.Init(1, cmp.Compare[int], ended, b)
		go func() {
			close(ended)
			time.Sleep(time.Minute)
			c.Add(7)
		}()
		var got []int
		for results := range c.All {
			got = append(got, results...)
		}
		if b.notified != 1 || !c.Notified() || !slices.Equal(got, []int{7}) {
			t.Errorf("notified %d times, results %v", b.notified, got)
		}
	})
}
